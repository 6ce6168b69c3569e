// Ownership and release of handler registrations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/gate.h"
#include "tests/support/thrown.h"

namespace lookout::informer {
namespace {

using namespace std::chrono_literals;
using lookout::test::Gate;
using lookout::test::get;
using lookout::test::refusal;
using test::Recorder;
using testing::ElementsAre;
using testing::IsEmpty;

static_assert(!std::is_copy_constructible_v<HandlerRegistration>);
static_assert(std::is_nothrow_move_constructible_v<HandlerRegistration>);
static_assert(std::is_nothrow_move_assignable_v<HandlerRegistration>);

class RegistrationTest : public test::SlowHandlerTest {
 protected:
  Recorder recorder_;
};

TEST_F(RegistrationTest, LeavingTheScopeEndsTheHandler) {
  auto& informer = run();
  const auto captured = std::make_shared<int>(0);
  {
    auto handler = recorder_.handler();
    handler.on_synced = [captured] {};
    const auto registration = informer.add_handler(std::move(handler));
    handler = {};
    source_->put("a/x");
    recorder_.wait(1);
    EXPECT_EQ(captured.use_count(), 2);
  }
  EXPECT_EQ(captured.use_count(), 1) << "what the handler captured is gone";
  source_->put("a/y");
  settle();
  EXPECT_THAT(recorder_.events(), ElementsAre("+a/x@101"));
}

TEST_F(RegistrationTest, LeavingTheScopeWaitsForTheRunningCall) {
  auto registration = std::make_unique<HandlerRegistration>(run().add_handler(slow()));
  source_->put("a/x");
  ASSERT_TRUE(begun_.wait());
  auto gone = lookout::test::start([&] { registration.reset(); });
  EXPECT_EQ(gone.wait_for(50ms), std::future_status::timeout);
  go_on_.open();
  get(gone);
  EXPECT_EQ(calls_, 1);
}

TEST_F(RegistrationTest, WaitForSyncOnTheEventLoopDoesNotBlock) {
  auto& informer = make();
  const auto registration = informer.add_handler(recorder_.handler());
  const auto wait_on_loop = [&] {
    std::promise<bool> done;
    boost::asio::post(loop_->context(), [&] {
      try {
        done.set_value(registration.wait_for_sync());
      } catch (...) {
        done.set_exception(std::current_exception());
      }
    });
    return get(done.get_future());
  };
  EXPECT_THROW(wait_on_loop(), InvalidArgument);
  informer.start();
  ASSERT_TRUE(registration.wait_for_sync());
  EXPECT_TRUE(wait_on_loop()) << "there is nothing to wait for";
}

TEST_F(RegistrationTest, AHandlerDoesNotWaitForItself) {
  source_->put("a/x");
  std::stop_source stop;
  Gate added;
  std::atomic<bool> refused{false};
  std::optional<HandlerRegistration> registration;
  auto& informer = make();
  registration = informer.add_handler({.on_add = [&](const api::Object&) {
    try {
      registration->wait_for_sync(stop.get_token());
    } catch (const InvalidArgument&) {
      refused = true;
    }
    added.open();
  }});
  informer.start();
  EXPECT_TRUE(added.wait(10s)) << "it waits";
  stop.request_stop();
  EXPECT_TRUE(registration->wait_for_sync());
  EXPECT_TRUE(refused);
}

TEST_F(RegistrationTest, AHandlerMayDestroyItsOwnRegistration) {
  auto& informer = run();
  std::optional<HandlerRegistration> registration;
  Gate added;
  std::promise<void> gone;
  registration = informer.add_handler({.on_add = [&](const api::Object&) {
    EXPECT_TRUE(added.wait());
    ++calls_;
    registration.reset();
    gone.set_value();
  }});
  added.open();
  source_->put("a/x");
  lookout::test::wait_for(gone.get_future());
  source_->put("a/y");
  settle();
  informer.shutdown();
  EXPECT_EQ(calls_, 1);
}

TEST_F(RegistrationTest, AReleasedHandlerStaysUsable) {
  auto& informer = run();
  {
    auto registration = informer.add_handler(recorder_.handler("mine"));
    registration.release();
    EXPECT_TRUE(registration.wait_for_sync());
    EXPECT_EQ(registration.name(), "mine");
  }
  source_->put("a/x");
  EXPECT_THAT(recorder_.wait(1), ElementsAre("+a/x@101"));
}

TEST_F(RegistrationTest, AReleasedHandlerCanBeRemoved) {
  auto& informer = run();
  auto registration = informer.add_handler(recorder_.handler());
  registration.release();
  registration.remove();
  source_->put("a/x");
  settle();
  EXPECT_THAT(recorder_.events(), IsEmpty());
}

TEST_F(RegistrationTest, AnAssignmentRemovesThePreviousHandler) {
  auto& informer = run();
  Recorder second;
  auto registration = informer.add_handler(recorder_.handler());
  registration = informer.add_handler(second.handler());
  source_->put("a/x");
  EXPECT_THAT(second.wait(1), ElementsAre("+a/x@101"));
  EXPECT_THAT(recorder_.events(), IsEmpty());
}

TEST_F(RegistrationTest, AMoveTransfersTheHandler) {
  auto& informer = run();
  std::vector<HandlerRegistration> registrations;
  for (int i = 0; i < 20; ++i) registrations.push_back(informer.add_handler(recorder_.handler()));
  HandlerRegistration moved = std::move(registrations.back());
  registrations.clear();
  EXPECT_TRUE(moved);
  source_->put("a/x");
  EXPECT_THAT(recorder_.wait(1), ElementsAre("+a/x@101"));
  settle();
  moved.drain();
  EXPECT_THAT(recorder_.events(), ElementsAre("+a/x@101"));
}

TEST_F(RegistrationTest, AnEmptyOneOwnsNothing) {
  HandlerRegistration none;
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.has_synced());
  none.release();
  none.remove();
  none = HandlerRegistration();
}

TEST_F(RegistrationTest, ADetachedHandlerReceivesQueuedNotifications) {
  auto& informer = run();
  {
    auto registration = informer.add_handler(slow());
    source_->put("a/x");
    ASSERT_TRUE(begun_.wait());
    source_->put("a/y");
    settle();
    registration.detach();
  }
  auto last = informer.add_handler(recorder_.handler());
  go_on_.open();
  // (An idle informer releases a detached handler when everything is delivered.)
  const auto deadline = std::chrono::steady_clock::now() + lookout::test::kLongestWait;
  while (calls_ < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(calls_, 2);
}

TEST_F(RegistrationTest, MayOutliveTheInformer) {
  auto registration = run().add_handler(recorder_.handler());
  source_->put("a/x");
  recorder_.wait(1);
  informer_.reset();
  registration.remove();
  EXPECT_EQ(registration.backlog(), 0u);
}

TEST_F(RegistrationTest, RemoveAndDrainOnTheEventLoopAreRefused) {
  auto registration = run().add_handler(recorder_.handler("mine"));
  std::promise<std::vector<std::string>> refused;
  boost::asio::post(loop_->context(), [&] {
    refused.set_value({refusal<InvalidArgument>([&] { registration.remove(); }),
                       refusal<InvalidArgument>([&] { registration.drain(); })});
  });
  const std::string rest =
      " of the handler mine on the event loop could deadlock: use detach(), or call it on another "
      "thread";
  EXPECT_THAT(get(refused.get_future()), ElementsAre("remove()" + rest, "drain()" + rest));
  source_->put("a/x");
  EXPECT_THAT(recorder_.wait(1), ElementsAre("+a/x@101")) << "the handler stays";
  registration.remove();
}

/// The handler needs the loop, which has one thread.
TEST_F(RegistrationTest, AHandlerThatWaitsForTheEventLoopIsNotRemovedThere) {
  loop_ = std::make_shared<EventLoop>(1);
  pool_ = std::make_shared<HandlerPool>(loop_);
  std::promise<void> ran;
  auto registration = run().add_handler({.on_add = [&](const api::Object&) {
    begun_.open();
    EXPECT_TRUE(go_on_.wait());
    const auto nothing = []() -> Awaitable<void> { co_return; };
    loop_->run(nothing());
    ran.set_value();
  }});
  source_->put("a/x");
  ASSERT_TRUE(begun_.wait());
  std::promise<void> refused;
  boost::asio::post(loop_->context(), [&] {
    go_on_.open();
    EXPECT_THROW(registration.remove(), InvalidArgument);
    EXPECT_THROW(registration.drain(), InvalidArgument);
    refused.set_value();
  });
  lookout::test::wait_for(refused.get_future());
  lookout::test::wait_for(ran.get_future());
  registration.drain();
}

TEST_F(RegistrationTest, RemovalOnTheEventLoopDoesNotWait) {
  auto registration = std::make_shared<HandlerRegistration>(run().add_handler(slow()));
  source_->put("a/x");
  ASSERT_TRUE(begun_.wait());
  std::promise<void> gone;
  boost::asio::post(loop_->context(), [&gone, registration = std::move(registration)]() mutable {
    registration.reset();
    gone.set_value();
  });
  lookout::test::wait_for(gone.get_future());
  EXPECT_EQ(calls_, 0);
  go_on_.open();
  informer_->shutdown();
  EXPECT_EQ(calls_, 1) << "a shutdown waits for the call that was left";
}

}  // namespace
}  // namespace lookout::informer
