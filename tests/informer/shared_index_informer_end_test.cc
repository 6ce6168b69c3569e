// The end of an informer: how it stops, and what it releases.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/rest/error.h"
#include "tests/informer/informer_fixture.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/own_resources.h"
#include "tests/support/stopped.h"

namespace lookout::informer {
namespace {

using test::FakeSource;

class SharedIndexInformerEndTest : public test::InformerTest {};

TEST_F(SharedIndexInformerEndTest, AStoppedInformerCannotBeRestarted) {
  source_->put("a/x");
  auto& informer = run();
  EXPECT_FALSE(informer.stopped());
  informer.stop();
  EXPECT_TRUE(informer.stopped());
  EXPECT_TRUE(informer.started()) << "it has been";
  informer.stop();
  informer.shutdown();
  EXPECT_TRUE(informer.wait_for_sync()) << "it was synced before";
  EXPECT_EQ(contents(informer.store()), source_->contents()) << "what it knew, it still knows";
  informer.start();
  source_->put("a/y");
  EXPECT_EQ(informer.store().size(), 1u);
  EXPECT_THROW(informer.add_handler({}).release(), InvalidArgument);
}

TEST_F(SharedIndexInformerEndTest, AStopDeliversQueuedNotifications) {
  Recorder recorder;
  std::promise<void> begun;
  std::promise<void> go;
  auto handler = recorder.handler();
  handler.on_add = [&, on_add = handler.on_add](const api::Object& object, Origin origin) {
    if (object.key() == "a/0") {
      begun.set_value();
      lookout::test::wait_for(go.get_future());
    }
    on_add(object, origin);
  };
  auto& informer = run();
  informer.add_handler(std::move(handler)).release();
  for (int i = 0; i < 10; ++i) source_->put("a/" + std::to_string(i));
  lookout::test::wait_for(begun.get_future());
  settle();
  informer.stop();
  go.set_value();
  EXPECT_EQ(recorder.wait(10).size(), 10u);
}

TEST_F(SharedIndexInformerEndTest, AStopEndsWaiting) {
  source_->pause();
  auto& informer = make();
  Recorder recorder;
  const auto registration = informer.add_handler(recorder.handler());
  informer.start();
  auto informer_synced = std::async(std::launch::async, [&] { return informer.wait_for_sync(); });
  auto handler_synced =
      std::async(std::launch::async, [&] { return registration.wait_for_sync(); });
  ASSERT_TRUE(source_->wait_until_held_up());
  informer.shutdown();
  EXPECT_FALSE(lookout::test::get(informer_synced));
  EXPECT_FALSE(lookout::test::get(handler_synced));
  EXPECT_EQ(informer.store().size(), 0u);
}

TEST_F(SharedIndexInformerEndTest, AStopTokenEndsWaiting) {
  source_->pause();
  auto& informer = make();
  informer.start();
  EXPECT_FALSE(lookout::test::stopped(
      [&](const std::stop_token& stop) { return informer.wait_for_sync(stop); }));
}

TEST_F(SharedIndexInformerEndTest, ShutsDownInEveryState) {
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 5; ++i) source_->put("a/" + std::to_string(i));
    if (round % 3 == 0) source_->fail_list(api::StatusError::internal_error("oops"));
    options_.reflector.resync_period = round % 2 == 0 ? 1h : 0h;
    std::atomic<int> calls{0};
    make();
    const auto count = [&](const api::Object&) { ++calls; };
    informer_->add_handler({.on_add = count}).release();
    informer_->start();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    informer_->shutdown();
    const int then = calls;
    source_->put("a/later");
    EXPECT_EQ(calls, then) << "nothing runs after a shutdown";
    informer_.reset();
  }
}

TEST_F(SharedIndexInformerEndTest, AShutdownEndsAfterAClockHasThrown) {
  options_.reflector.clock = std::make_shared<test::BrokenClock>();
  options_.reflector.watch_error_handler = [](std::string_view, const std::exception&) {};
  const rest::TransportError refused(rest::TransportError::Kind::kRefused, "no server");
  source_->fail_watch(refused);
  source_->fail_list(refused);
  make().start();
  ASSERT_TRUE(eventually([&] { return informer_->last_failure().has_value(); }));
  auto ended = std::async(std::launch::async, [&] { informer_->shutdown(); });
  lookout::test::wait_for(ended);
}

TEST_F(SharedIndexInformerEndTest, AnInformerThatWasNeverStartedReleasesEverything) {
  const std::weak_ptr<FakeSource> source = source_;
  make().add_handler({}).release();
  const auto held = source.use_count();
  informer_.reset();
  EXPECT_LT(source.use_count(), held);
}

TEST_F(SharedIndexInformerEndTest, ReferencesEndInAnyOrder) {
  source_->put("a/x");
  Recorder recorder;
  auto& informer = run();
  auto registration = informer.add_handler(recorder.handler());
  EXPECT_TRUE(registration.wait_for_sync());
  const auto store = informer.shared_store();
  pool_.reset();
  loop_.reset();
  informer_.reset();
  EXPECT_EQ(store->size(), 1u);
  EXPECT_TRUE(registration.has_synced());
  EXPECT_EQ(registration.backlog(), 0u);
  registration.remove();
  registration.remove();
}

TEST_F(SharedIndexInformerEndTest, LeavesNoThread) {
  const auto before = lookout::test::thread_count();
  {
    const auto loop = std::make_shared<EventLoop>(3);
    const auto pool = std::make_shared<HandlerPool>(loop);
    SharedIndexInformer informer(source_, options_, loop, pool);
    Recorder recorder;
    const auto registration = informer.add_handler(recorder.handler());
    informer.start();
    EXPECT_TRUE(registration.wait_for_sync());
    EXPECT_GE(lookout::test::thread_count(), before + 3);
  }
  // (A thread of an earlier test may have ended meanwhile.)
  EXPECT_TRUE(eventually([&] { return lookout::test::thread_count() <= before; }));
}

TEST_F(SharedIndexInformerEndTest, NothingBlocksOnTheEventLoop) {
  auto& informer = run();
  source_->pause();  // the source does not send a new informer its list
  std::promise<void> done;
  boost::asio::post(loop_->context(), [&] {
    EXPECT_THROW(informer.shutdown(), InvalidArgument);
    EXPECT_TRUE(informer.wait_for_sync()) << "no need to wait";
    SharedIndexInformer fresh(source_, options_, loop_, pool_);
    fresh.add_handler({}).release();
    fresh.start();
    EXPECT_THROW(fresh.wait_for_sync(), InvalidArgument);
    done.set_value();
  });  // destroys `fresh`
  lookout::test::wait_for(done.get_future());
}

TEST_F(SharedIndexInformerEndTest, AHandlerMayHoldTheLastReference) {
  for (int round = 0; round < 20; ++round) {
    auto informer = std::make_shared<SharedIndexInformer>(source_, options_, loop_, pool_);
    std::promise<void> handed_over;
    std::promise<void> gone;
    const auto slot = std::make_shared<std::shared_ptr<SharedIndexInformer>>();
    informer
        ->add_handler({.on_add =
                           [&, slot](const api::Object&) {
                             lookout::test::wait_for(handed_over.get_future());
                             slot->reset();
                             gone.set_value();
                           }})
        .release();
    source_->put("only/x");
    informer->start();
    *slot = std::move(informer);
    handed_over.set_value();
    lookout::test::wait_for(gone.get_future());
    source_->remove("only/x");
  }
}

TEST_F(SharedIndexInformerEndTest, AThousandInformersShareAFewThreads) {
  for (int i = 0; i < 10; ++i) source_->put("a/" + std::to_string(i));
  const auto before = lookout::test::thread_count();
  const auto loop = std::make_shared<EventLoop>();
  const auto pool = std::make_shared<HandlerPool>(loop);
  std::vector<std::unique_ptr<SharedIndexInformer>> informers;
  std::atomic<int> additions{0};
  std::vector<HandlerRegistration> registrations;
  for (int i = 0; i < 1000; ++i) {
    informers.push_back(std::make_unique<SharedIndexInformer>(source_, options_, loop, pool));
    registrations.push_back(
        informers.back()->add_handler({.on_add = [&](const api::Object&) { ++additions; }}));
    informers.back()->start();
  }
  for (const auto& registration : registrations) ASSERT_TRUE(registration.wait_for_sync());
  EXPECT_EQ(additions, 10'000);
  EXPECT_LE(lookout::test::thread_count() - before, std::thread::hardware_concurrency() + 4);
  ASSERT_TRUE(source_->wait_until_watched(1000));
  source_->put("a/new");
  ASSERT_TRUE(source_->wait_until_watched(1000));
  for (const auto& informer : informers) ASSERT_EQ(informer->store().size(), 11u);
}

}  // namespace
}  // namespace lookout::informer
