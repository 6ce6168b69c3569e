// After an informer has shut down, it runs no code of the program, and the captures of its handlers
// are released, in every case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/informer/informer_fixture.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/gate.h"

namespace lookout::informer {
namespace {

using lookout::test::Gate;
using lookout::test::get;
using lookout::test::wait_for;

class LifetimeTest : public test::SlowHandlerTest {
 protected:
  /// Runs an informer with a handler whose first call blocks, and for which another one is queued.
  HandlerRegistration held_up() {
    auto registration = run().add_handler(slow());
    put_two();
    return registration;
  }
  void put_two() {
    source_->put("a/x");
    EXPECT_TRUE(begun_.wait());
    source_->put("a/y");
    settle();
  }
  /// Expects `end` to wait for the running call, and no further call.
  template <class F>
  void expect_to_wait(F end) {
    auto ended = lookout::test::start(std::move(end));
    // (Without the wait, it would almost always have returned by then.)
    EXPECT_EQ(ended.wait_for(50ms), std::future_status::timeout);
    EXPECT_EQ(calls_, 0);
    go_on_.open();
    get(ended);
    EXPECT_EQ(calls_, 1);
  }

  /// Expects a shutdown to wait for the call of a handler that has ended its own registration.
  template <class F>
  void expect_shutdown_to_wait_for_one_that(F end_itself) {
    std::optional<HandlerRegistration> registration;
    Gate added;
    registration = run().add_handler({.on_add = [&](const api::Object&) {
      EXPECT_TRUE(added.wait());
      end_itself(*registration);
      begun_.open();
      EXPECT_TRUE(go_on_.wait());
      ++calls_;
    }});
    added.open();
    put_two();
    expect_to_wait([this] { informer_->shutdown(); });
  }
};

TEST_F(LifetimeTest, AShutdownWaitsForHandlers) {
  held_up().release();
  expect_to_wait([this] { informer_->shutdown(); });
}

TEST_F(LifetimeTest, AShutdownWaitsForDetachedHandlers) {
  held_up().detach();
  expect_to_wait([this] { informer_->shutdown(); });
}

TEST_F(LifetimeTest, ADestructorWaitsForDetachedHandlers) {
  {
    auto registration = held_up();
    registration.detach();
  }
  expect_to_wait([this] { informer_.reset(); });
}

TEST_F(LifetimeTest, AShutdownWaitsForHandlersThatRemovedThemselves) {
  expect_shutdown_to_wait_for_one_that([](HandlerRegistration& self) { self.remove(); });
}

TEST_F(LifetimeTest, AShutdownWaitsForHandlersThatDetachedThemselves) {
  expect_shutdown_to_wait_for_one_that([](HandlerRegistration& self) { self.detach(); });
}

TEST_F(LifetimeTest, EachOfSeveralShutdownsWaits) {
  held_up().release();
  auto first = lookout::test::start([this] { informer_->shutdown(); });
  EXPECT_EQ(first.wait_for(50ms), std::future_status::timeout);
  expect_to_wait([this] { informer_->shutdown(); });
  get(first);
  informer_->shutdown();
}

TEST_F(LifetimeTest, AnInformerThatNeverRanCanBeShutDown) {
  auto& informer = make();
  auto registration = informer.add_handler(slow());
  registration.detach();
  informer.shutdown();
  informer.start();
  EXPECT_EQ(calls_, 0);
}

TEST_F(LifetimeTest, RemovedHandlersAreFreedExceptRunningOnes) {
  held_up().detach();
  for (int i = 0; i < 100; ++i) {
    auto registration = informer_->add_handler({});
    i % 2 == 0 ? registration.detach() : registration.remove();
  }
  expect_to_wait([this] { informer_->shutdown(); });
}

TEST_F(LifetimeTest, ADestructorOnTheEventLoopEndsDetachedHandlers) {
  auto captured = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = captured;
  auto registration =
      run().add_handler({.on_add = [this, held = std::move(captured)](const api::Object&) {
        begun_.open();
        EXPECT_TRUE(go_on_.wait());
        ++calls_;
      }});
  put_two();
  registration.detach();
  std::promise<void> gone;
  boost::asio::post(loop_->context(), [&] {
    informer_.reset();
    gone.set_value();
  });
  wait_for(gone.get_future());
  go_on_.open();
  EXPECT_TRUE(eventually([&] { return alive.expired(); }));
  EXPECT_EQ(calls_, 1) << "the queued notification is dropped";
}

TEST_F(LifetimeTest, AShutdownReleasesHandlers) {
  const auto captured = std::make_shared<int>(0);
  const auto handler = [&] {
    return EventHandler<api::Object>{
        .on_add = [captured](const api::Object&) { EXPECT_EQ(*captured, 0); }};
  };
  auto& informer = run();
  const auto kept = informer.add_handler(handler());
  auto detached = informer.add_handler(handler());
  informer.add_handler(handler()).release();
  source_->put("a/x");
  detached.detach();
  informer.shutdown();
  EXPECT_EQ(captured.use_count(), 1) << "registrations keep nothing of the program's";
  EXPECT_EQ(kept.exceptions(), 0u);
}

TEST_F(LifetimeTest, CapturesAreReleasedOnTheThreadThatShutsDown) {
  std::thread::id gone_on;
  std::shared_ptr<int> captured(new int(0), [&](const int* number) {
    gone_on = std::this_thread::get_id();
    delete number;
  });
  auto& informer = run();
  informer.add_handler({.on_add = [captured](const api::Object&) {}}).release();
  captured.reset();
  settle();
  informer.shutdown();
  EXPECT_EQ(gone_on, std::this_thread::get_id());
}

TEST_F(LifetimeTest, CapturesOfADetachedHandlerAreReleasedAfterDelivery) {
  auto captured = std::make_shared<int>(0);
  auto& informer = run();
  auto registration = informer.add_handler({.on_add = [captured](const api::Object&) {}});
  source_->put("a/x");
  settle();
  registration.drain();
  EXPECT_EQ(captured.use_count(), 1);
}

// ----------------------------------------------------------------------------- in a handler

TEST_F(LifetimeTest, AHandlerMayShutDownItsInformer) {
  std::promise<void> returned;
  run()
      .add_handler({.on_add =
                        [&](const api::Object&) {
                          informer_->shutdown();
                          returned.set_value();
                          EXPECT_TRUE(go_on_.wait());
                          ++calls_;
                        }})
      .release();
  source_->put("a/x");
  wait_for(returned.get_future());
  EXPECT_TRUE(informer_->stopped());
  expect_to_wait([this] { informer_->shutdown(); });
}

TEST_F(LifetimeTest, SeveralHandlersMayShutDownAtTheSameTime) {
  auto& informer = run();
  std::vector<Gate> in_call(2);
  std::vector<std::promise<void>> returned(2);
  for (std::size_t i = 0; i < 2; ++i) {
    informer
        .add_handler({.on_add =
                          [&, i](const api::Object&) {
                            in_call[i].open();
                            EXPECT_TRUE(in_call[1 - i].wait());
                            informer.shutdown();
                            returned[i].set_value();
                          }})
        .release();
  }
  source_->put("a/x");
  for (auto& one : returned) wait_for(one.get_future());
  informer.shutdown();
}

TEST_F(LifetimeTest, HandlersThatRemoveEachOtherDoNotDeadlock) {
  auto& informer = run();
  std::vector<HandlerRegistration> registrations(2);
  std::vector<Gate> in_call(2);
  std::vector<std::promise<void>> returned(2);
  Gate added;
  for (std::size_t i = 0; i < 2; ++i) {
    registrations[i] = informer.add_handler({.on_add = [&, i](const api::Object&) {
      EXPECT_TRUE(added.wait());
      in_call[i].open();
      EXPECT_TRUE(in_call[1 - i].wait());
      i == 0 ? registrations[1].remove() : registrations[0].drain();
      returned[i].set_value();
    }});
  }
  added.open();
  source_->put("a/x");
  for (auto& one : returned) wait_for(one.get_future());
  informer.shutdown();
}

TEST_F(LifetimeTest, AHandlerThatShutsDownAnotherInformerWaitsForItsHandlers) {
  held_up().release();
  // Like an informer of custom resources that exists as long as their definition.
  const auto definitions = std::make_shared<test::FakeSource>();
  SharedIndexInformer informer(definitions, options_, loop_, pool_);
  Gate entered;
  std::promise<int> seen;
  informer
      .add_handler({.on_add =
                        [&](const api::Object&) {
                          entered.open();
                          informer_->shutdown();
                          seen.set_value(calls_);
                        }})
      .release();
  informer.start();
  definitions->put("definition");
  EXPECT_TRUE(entered.wait());
  auto result = seen.get_future();
  EXPECT_EQ(result.wait_for(50ms), std::future_status::timeout);
  go_on_.open();
  EXPECT_EQ(get(result), 1);
  informer.shutdown();
}

// ------------------------------------------------------------------------ waits that must end

TEST_F(LifetimeTest, AStopEndsWaitingForAHandlersSync) {
  source_->pause();
  auto& informer = make();
  const auto before = informer.add_handler({});
  informer.start();
  const auto after = informer.add_handler({});
  const auto waits = [](const HandlerRegistration& registration) {
    return std::async(std::launch::async, [&registration] { return registration.wait_for_sync(); });
  };
  auto first = waits(before);
  auto second = waits(after);
  EXPECT_EQ(first.wait_for(10ms), std::future_status::timeout);
  informer.stop();
  EXPECT_FALSE(get(first));
  EXPECT_FALSE(get(second));
  EXPECT_FALSE(before.wait_for_sync()) << "one that begins later, too";
}

TEST_F(LifetimeTest, AHandlerStaysSyncedAfterAStop) {
  auto& informer = run();
  const auto registration = informer.add_handler({});
  EXPECT_TRUE(registration.wait_for_sync());
  informer.stop();
  EXPECT_TRUE(registration.wait_for_sync());
}

TEST_F(LifetimeTest, ADetachEndsWaitingForAHandlersSync) {
  source_->pause();
  auto& informer = make();
  auto registration = informer.add_handler({});
  informer.start();
  auto synced = std::async(std::launch::async, [&] { return registration.wait_for_sync(); });
  registration.detach();
  EXPECT_FALSE(get(synced));
}

}  // namespace
}  // namespace lookout::informer
