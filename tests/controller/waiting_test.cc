// Waits of controllers and managers: coroutines that ignore cancellation, and threads.
#include "controller/waiting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"

namespace lookout::controller::detail {
namespace {

/// A coroutine that a test can cancel.
class Cancellable {
 public:
  explicit Cancellable(Awaitable<void> task) {
    boost::asio::co_spawn(strand_, std::move(task),
                          boost::asio::bind_cancellation_slot(
                              cancel_.slot(), [this](const std::exception_ptr& error) {
                                if (error) {
                                  done_.set_exception(error);
                                } else {
                                  done_.set_value();
                                }
                              }));
  }

  /// Call end() first.
  ~Cancellable() {
    // The signal's handler refers to the loop.
    std::promise<void> cleared;
    boost::asio::post(strand_, [&] {
      cancel_.slot().clear();
      cleared.set_value();
    });
    test::get(cleared.get_future());
  }
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;

  void cancel() {
    boost::asio::post(strand_, [this] { cancel_.emit(boost::asio::cancellation_type::terminal); });
  }
  /// Waits for the end, and throws what the coroutine throws.
  void end() { test::get(done_.get_future()); }

 private:
  boost::asio::cancellation_signal cancel_;
  std::promise<void> done_;
  EventLoop loop_{2u};  // its destructor destroys the coroutine
  const boost::asio::strand<boost::asio::io_context::executor_type> strand_ =
      boost::asio::make_strand(loop_.context());
};

class UncancelledTest : public testing::Test {
 protected:
  Awaitable<void> until(std::stop_token stop) {
    begun_ = true;
    co_await detail::wait_for(Clock::real(), std::move(stop));
    ended_ = true;
  }

  /// Runs until a cancellation or stop_.
  Awaitable<void> until_either() {
    return cancel_as_stop([this](std::stop_token either) { return until(std::move(either)); },
                          stop_.get_token());
  }

  bool has_begun() const {
    return test::eventually([&] { return begun_.load(); });
  }
  void expect_end(Cancellable& call) const {
    EXPECT_NO_THROW(call.end());
    EXPECT_TRUE(ended_);
  }

  std::stop_source stop_;
  std::atomic<bool> begun_{false};
  std::atomic<bool> ended_{false};
};

TEST_F(UncancelledTest, ACancellationIsReportedAndNotForwarded) {
  std::atomic<bool> told{false};
  Cancellable call(uncancelled(until(stop_.get_token()), [&] { told = true; }));
  EXPECT_TRUE(has_begun());
  call.cancel();
  EXPECT_TRUE(test::eventually([&] { return told.load(); }));
  EXPECT_FALSE(ended_);
  stop_.request_stop();
  expect_end(call);
}

TEST_F(UncancelledTest, ACancellationMayActAsAStop) {
  Cancellable call(until_either());
  EXPECT_TRUE(has_begun());
  EXPECT_FALSE(ended_);
  call.cancel();
  expect_end(call);
}

TEST_F(UncancelledTest, AStopIsForwarded) {
  Cancellable call(until_either());
  stop_.request_stop();
  expect_end(call);
}

Awaitable<void> failing() {
  co_await Clock::real()->sleep(std::chrono::milliseconds(1), std::stop_token());
  throw std::runtime_error("not feeling like that");
}

TEST_F(UncancelledTest, AnErrorIsRethrown) {
  Cancellable call(uncancelled(failing()));
  EXPECT_THROW(call.end(), std::runtime_error);
}

/// A clock without timers.
class BrokenClock : public Clock {
 public:
  TimePoint now() const override { return Clock::real()->now(); }
  Awaitable<bool> sleep(Duration, std::stop_token) override { throw 7; }
};

TEST(WaitForTest, AnEventDoesNotNeedAClock) {
  EventLoop loop(1);
  std::stop_source event;
  auto waited = std::async(std::launch::async, [&] {
    loop.run(detail::wait_for(std::make_shared<BrokenClock>(), event.get_token()));
  });
  EXPECT_EQ(waited.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  event.request_stop();
  EXPECT_NO_THROW(test::get(waited));
}

TEST(OnThreadTest, TheEventLoopGoesOnAlthoughTheClockThrows) {
  EventLoop loop(1);
  test::Gate begun;
  std::promise<void> posted;
  const std::function<void()> needs_the_loop = [&] {
    begun.open();
    test::wait_for(posted.get_future());
  };
  auto ran = std::async(std::launch::async, [&] {
    loop.run(on_thread(std::make_shared<BrokenClock>(), needs_the_loop));
  });
  EXPECT_TRUE(begun.wait());
  boost::asio::post(loop.context(), [&] { posted.set_value(); });
  EXPECT_NO_THROW(test::get(ran));
}

/// A thread type with a limited number of instances.
class ScarceThread : public std::jthread {
 public:
  explicit ScarceThread(const std::function<void()>& work) : std::jthread(begin(work)) {}

  static inline std::atomic<int> left_{0};

 private:
  static std::jthread begin(const std::function<void()>& work) {
    if (left_-- <= 0)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return std::jthread(work);
  }
};

TEST(EndOfTest, ALimitBeyondTheClocksRangeIsTheMaximum) {
  using namespace std::chrono_literals;
  const auto now = Clock::real()->now();
  EXPECT_EQ(detail::end_of(5ms, now), now + 5ms);
  EXPECT_EQ(detail::end_of(0ms, now), now);
  EXPECT_EQ(detail::end_of(std::chrono::milliseconds::min(), now), now);
  EXPECT_GT(detail::end_of(std::chrono::milliseconds::max(), now), now + 24h * 365);
}

TEST(RunOnThreadsTest, RunsOnTheRequestedNumberOfThreads) {
  std::atomic<int> runs{0};
  run_on_threads(
      3, [&] { ++runs; }, [] { FAIL() << "there were enough"; });
  EXPECT_EQ(runs, 3);
}

TEST(RunOnThreadsTest, IfAThreadCannotBeCreatedTheOthersEnd) {
  test::Gate given_up;
  std::atomic<int> ended{0};
  ScarceThread::left_ = 2;
  const auto work = [&] {
    EXPECT_TRUE(given_up.wait());
    ++ended;
  };
  EXPECT_THROW(run_on_threads<ScarceThread>(5, work, [&] { given_up.open(); }), std::system_error);
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace lookout::controller::detail
