#include "lookout/base/alarm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lookout/base/error.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/tools/workqueue/rate_limiting_queue.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;

class AlarmTest : public testing::Test {
 protected:
  /// Runs `what` on the event loop and waits for its end.
  template <class F>
  void on_loop(F what) {
    // Shared: the loop may still be inside set_value() when this has returned.
    const auto done = std::make_shared<std::promise<void>>();
    boost::asio::post(loop_->context(), [done, &what] {
      what();
      done->set_value();
    });
    const auto future = done->get_future();
    test::wait_for(future);
  }
  void expect_sleepers(std::size_t count) {
    EXPECT_TRUE(test::eventually([&] { return clock_->sleepers() == count; }));
  }

  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(1u);
};

TEST_F(AlarmTest, MayBeSetOnTheEventLoop) {
  std::atomic<int> rung{0};
  Alarm alarm(loop_, clock_, [&] { ++rung; });
  on_loop([&] { alarm.set(clock_->now() + 5s); });
  expect_sleepers(1);
  on_loop([&] { alarm.set(clock_->now() + 2s); });
  EXPECT_TRUE(test::eventually([&] { return clock_->next_wake() == 2s; }));
  clock_->advance(2s);
  EXPECT_TRUE(test::eventually([&] { return rung == 1; }));
}

TEST_F(AlarmTest, NeverRingsWithinSet) {
  std::mutex mutex;  // a lock that `ring` also takes
  std::promise<void> rung;
  Alarm alarm(loop_, clock_, [&] {
    const std::lock_guard lock(mutex);
    rung.set_value();
  });
  on_loop([&] {
    const std::lock_guard lock(mutex);
    alarm.set(clock_->now());
  });
  test::wait_for(rung.get_future());
  on_loop([] {});  // the call has returned
}

TEST_F(AlarmTest, MayBeSetByItsOwnCallback) {
  std::atomic<int> rung{0};
  std::unique_ptr<Alarm> alarm;
  alarm = std::make_unique<Alarm>(loop_, clock_, [&] {
    if (++rung < 3) alarm->set(clock_->now() + 1s);
  });
  alarm->set(clock_->now());
  for (int i = 1; i < 3; ++i) {
    EXPECT_TRUE(test::eventually([&] { return rung == i && clock_->sleepers() == 1; }));
    clock_->advance(1s);
  }
  EXPECT_TRUE(test::eventually([&] { return rung == 3; }));
  on_loop([&] { alarm.reset(); });
}

TEST_F(AlarmTest, ItsEndEndsTheSleepAndReleasesTheCallback) {
  const auto captured = std::make_shared<int>(0);
  {
    Alarm alarm(loop_, clock_, [captured] {});
    alarm.set(clock_->now() + 1h);
    expect_sleepers(1);
  }
  EXPECT_TRUE(test::eventually([&] { return captured.use_count() == 1; }));
}

TEST_F(AlarmTest, DoesNotRingAfterItsEnd) {
  std::atomic<int> rung{0};
  test::Gate ended;
  {
    Alarm alarm(loop_, clock_, [&] { ++rung; });
    alarm.set(clock_->now() + 1s);
    expect_sleepers(1);
    boost::asio::post(loop_->context(), [&] { EXPECT_TRUE(ended.wait()); });
    // Its time has come, but the loop is busy until its end.
    clock_->advance(1s);
  }
  ended.open();
  expect_sleepers(0);
  on_loop([] {});
  EXPECT_EQ(rung, 0);
}

TEST_F(AlarmTest, RingsAgainAfterAnException) {
  std::atomic<int> rung{0};
  Alarm alarm(loop_, clock_, [&] {
    if (++rung == 1) throw std::runtime_error("no");
    if (rung == 2) throw 7;
  });
  for (int i = 1; i <= 3; ++i) {
    alarm.set(clock_->now() + 1s);
    expect_sleepers(1);
    clock_->advance(1s);
    EXPECT_TRUE(test::eventually([&] { return rung == i; }));
  }
}

/// A clock that throws once in each of its functions, if it is armed.
class FaultyClock : public test::FakeClock {
 public:
  TimePoint now() const override {
    if (now_throws_.exchange(false)) throw std::runtime_error("no time");
    return FakeClock::now();
  }
  Awaitable<bool> sleep(Duration duration, std::stop_token stop) override {
    if (sleep_throws_.exchange(false)) throw 7;
    return FakeClock::sleep(duration, std::move(stop));
  }
  void arm() {
    now_throws_ = true;
    sleep_throws_ = true;
  }
  bool has_thrown() const { return !now_throws_ && !sleep_throws_; }

 private:
  mutable std::atomic<bool> now_throws_{false};
  std::atomic<bool> sleep_throws_{false};
};

TEST_F(AlarmTest, RingsAfterItsClockHasFailed) {
  const auto clock = std::make_shared<FaultyClock>();
  std::atomic<int> rung{0};
  Alarm alarm(loop_, clock, [&] { ++rung; });
  const auto time = clock->now() + 1h;
  clock->arm();
  alarm.set(time);
  // It asks the clock again after a pause; a new time does so at once.
  ASSERT_TRUE(test::eventually([&] {
    alarm.set(time - 1ms);
    return clock->has_thrown() && clock->sleepers() == 1;
  }));
  clock->advance(1h);
  EXPECT_TRUE(test::eventually([&] { return rung == 1; }));
}

TEST_F(AlarmTest, NeedsACallback) { EXPECT_THROW(Alarm(loop_, clock_, nullptr), InvalidArgument); }

// The same for code that uses an alarm: a coroutine or a watch error handler that adds with a
// delay.
TEST_F(AlarmTest, ADelayingQueueMayBeAddedToOnTheEventLoop) {
  workqueue::DelayingQueueOptions<int> options;
  options.clock = clock_;
  options.loop = loop_;
  workqueue::DelayingQueue<int> queue(std::move(options));
  on_loop([&] {
    queue.add_after(2, 2s);
    queue.add_after(1, 1s);
  });
  EXPECT_TRUE(test::eventually([&] { return clock_->next_wake() == 1s; }));
  clock_->advance(2s);
  EXPECT_EQ(queue.get(), 1);
  EXPECT_EQ(queue.get(), 2);
}

/// A comparison that throws for an item.
class Picky : public workqueue::Order<int> {
 public:
  void touch(const int&, int) override {}
  void push(int item, int) override {
    if (item < 0) throw std::runtime_error("no negative ones");
    waiting_.push_back(item);
  }
  std::size_t size() const override { return waiting_.size(); }
  int pop() override {
    const int first = waiting_.front();
    waiting_.erase(waiting_.begin());
    return first;
  }

 private:
  std::vector<int> waiting_;
};

TEST_F(AlarmTest, AnItemThatCannotBeAddedDoesNotDelayOthers) {
  workqueue::DelayingQueueOptions<int> options;
  options.clock = clock_;
  options.loop = loop_;
  options.order = std::make_unique<Picky>();
  workqueue::DelayingQueue<int> queue(std::move(options));
  queue.add_after(-1, 1s);
  queue.add_after(1, 1s);
  queue.add_after(2, 2s);
  EXPECT_TRUE(test::eventually([&] { return clock_->next_wake() == 1s; }));
  clock_->advance(1s);
  EXPECT_EQ(queue.get(), 1);
  EXPECT_TRUE(test::eventually([&] { return clock_->next_wake() == 1s; }));
  clock_->advance(1s);
  EXPECT_EQ(queue.get(), 2);
}

}  // namespace
}  // namespace lookout
