// The end of a factory and of its informers.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <memory>

#include "lookout/api/error.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1.h"
#include "tests/informer/factory_fixture.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/matchers.h"
#include "tests/support/own_resources.h"

namespace lookout::informer {
namespace {

class FactoryLifetimeTest : public test::FactoryFixture {};

TEST_F(FactoryLifetimeTest, AShutdownStopsAllInformers) {
  auto& factory = make();
  const auto pods = factory.informer<Pod>();
  const auto never_started = factory.informer<Node>();
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  factory.shutdown();
  factory.shutdown();
  EXPECT_TRUE(identity(pods)->stopped());
  EXPECT_TRUE(identity(never_started)->stopped());
  EXPECT_THROW(factory.informer<Pod>(), InvalidArgument);
  EXPECT_THROW(pods.add_handler({}).release(), InvalidArgument);
  const auto requests = server_.requests().size();
  factory.start();
  EXPECT_EQ(server_.requests().size(), requests);
  EXPECT_TRUE(factory.wait_for_cache_sync());
}

TEST_F(FactoryLifetimeTest, AShutdownEndsWaiting) {
  server_.answer_lists(500, "{}");
  auto& factory = make();
  factory.informer<Pod>();
  factory.start();
  auto waiting = std::async(std::launch::async, [&] { return factory.wait_for_cache_sync(); });
  EXPECT_TRUE(server_.wait_for("pods"));
  factory.shutdown();
  EXPECT_FALSE(lookout::test::get(waiting));
}

TEST_F(FactoryLifetimeTest, LeavesNoThread) {
  const auto before = lookout::test::thread_count();
  {
    SharedInformerFactory factory(rest::Client(server_.config()),
                                  {.use_watch_list = false, .clock = clock_});
    const auto pods = factory.informer<Pod>();
    const auto registration = pods.add_handler({});
    factory.start();
    EXPECT_TRUE(registration.wait_for_sync());
    EXPECT_TRUE(server_.wait_for("watch="));
  }
  // All threads have ended, except those of the server, which served the closed connections.
  EXPECT_TRUE(
      lookout::test::eventually([&] { return lookout::test::thread_count() <= before + 2; }));
}

TEST_F(FactoryLifetimeTest, ReferencesEndInAnyOrder) {
  server_.answer_lists(200, test::kTwoPods);
  for (const int first : {0, 1, 2}) {
    auto client = std::make_unique<rest::Client>(server_.config());
    auto factory = std::make_unique<SharedInformerFactory>(
        *client, FactoryOptions{.use_watch_list = false, .clock = clock_});
    auto pods = std::make_unique<SharedInformer<Pod>>(factory->informer<Pod>());
    auto registration = pods->add_handler({});
    factory->start();
    EXPECT_TRUE(registration.wait_for_sync());
    if (first == 0) client.reset();
    if (first == 1) pods.reset();
    factory.reset();
    client.reset();
    if (pods) {
      EXPECT_EQ(pods->lister().list().size(), 2u) << "what it knew, it still knows";
      EXPECT_TRUE(identity(*pods)->stopped());
    }
    registration.remove();
  }
}

TEST_F(FactoryLifetimeTest, NeedNotBeStarted) {
  make().informer<Pod>().add_handler({}).release();
  factory_.reset();
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(FactoryLifetimeTest, NothingBlocksOnTheEventLoop) {
  auto& factory = make();
  factory.informer<Pod>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  std::promise<void> done;
  boost::asio::post(client_.loop().context(), [&] {
    EXPECT_THROW(factory.shutdown(), InvalidArgument);
    EXPECT_TRUE(factory.wait_for_cache_sync()) << "no need to wait";
    factory_.reset();
    done.set_value();
  });
  lookout::test::wait_for(done.get_future());
}

TEST_F(FactoryLifetimeTest, AStoppedInformerMayBeRequestedAgain) {
  server_.answer_lists(200, test::kTwoPods);
  auto& factory = make();
  const auto first = factory.informer<Pod>();
  const auto nodes = factory.informer<Node>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_TRUE(factory.stop_informer<Pod>());
  EXPECT_TRUE(first.untyped_informer().stopped());
  EXPECT_EQ(first.lister().list().size(), 2u) << "its store stays with those who hold it";
  EXPECT_FALSE(nodes.untyped_informer().stopped());
  EXPECT_EQ(factory.informers().size(), 1u);
  EXPECT_FALSE(factory.stop_informer<Pod>()) << "it is not there any more";

  const auto second = factory.informer<Pod>();
  EXPECT_NE(identity(second), identity(first));
  std::promise<void> synced;
  const auto handler = second.add_handler({.on_synced = [&] { synced.set_value(); }});
  factory.start();
  lookout::test::wait_for(synced.get_future());
  EXPECT_EQ(second.lister().list().size(), 2u);
}

TEST_F(FactoryLifetimeTest, AnInformerStoppedByTheProgramIsReplacedOnRequest) {
  auto& factory = make();
  auto first = factory.informer<Pod>({.ns = "shop"});
  first.stop();
  const auto second = factory.informer<Pod>({.ns = "shop"});
  EXPECT_NE(identity(second), identity(first));
  EXPECT_EQ(identity(factory.informer<Pod>({.ns = "shop"})), identity(second));
}

TEST_F(FactoryLifetimeTest, AShutdownWaitsForInformersStoppedBefore) {
  server_.answer_lists(200, test::kTwoPods);
  auto& factory = make();
  auto first = factory.informer<Pod>();
  const auto captured = std::make_shared<int>(0);
  auto handler = first.add_handler({.on_add = [captured](const Pod&) {}});
  handler.release();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  first.stop();
  const auto second = factory.informer<Pod>();
  EXPECT_GT(captured.use_count(), 1);
  factory.shutdown();
  EXPECT_EQ(captured.use_count(), 1) << "nothing is left of the handlers of the first one";
}

TEST_F(FactoryLifetimeTest, AStopWaitsForHandlers) {
  server_.answer_lists(200, test::kTwoPods);
  auto& factory = make();
  const auto pods = factory.informer<Pod>();
  std::promise<void> begun;
  std::promise<void> go_on;
  std::atomic<int> calls{0};
  auto told = go_on.get_future().share();
  pods.add_handler({.on_add =
                        [&, told](const Pod&) {
                          if (++calls == 1) begun.set_value();
                          lookout::test::wait_for(told);
                        }})
      .release();
  factory.start();
  lookout::test::wait_for(begun.get_future());
  auto stopped = lookout::test::start([&] { return factory.stop_informer<Pod>(); });
  EXPECT_EQ(stopped.wait_for(50ms), std::future_status::timeout);
  go_on.set_value();
  EXPECT_TRUE(lookout::test::get(stopped));
  EXPECT_EQ(calls, 1);
}

TEST_F(FactoryLifetimeTest, ForgetDoesNotWait) {
  auto& factory = make();
  const auto pods = factory.for_resource(Pod::kResource);
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  // On the event loop, where a wait would deadlock.
  const auto forget = [&]() -> Awaitable<bool> { co_return factory.forget(pods); };
  EXPECT_TRUE(client_.loop().run(forget()));
  EXPECT_TRUE(pods->stopped());
  EXPECT_FALSE(factory.forget(pods));
  EXPECT_THAT(factory.informers(), IsEmpty());
  const auto again = factory.for_resource(Pod::kResource);
  EXPECT_NE(again, pods);
  factory.start();
  EXPECT_TRUE(again->wait_for_sync());
}

}  // namespace
}  // namespace lookout::informer
