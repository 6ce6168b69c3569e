#include "lookout/tools/workqueue/delaying_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/testing/fake_clock.h"
#include "lookout/tools/workqueue/rate_limiting_queue.h"
#include "tests/support/eventually.h"

namespace lookout::workqueue {
namespace {

using namespace std::chrono_literals;

class DelayingQueueTest : public testing::Test {
 protected:
  /// Advances the clock. A thread that this should wake must already sleep: see
  /// expect_next_after().
  void advance(Clock::Duration duration) { clock_->advance(duration); }
  void expect_next_after(Clock::Duration duration) {
    EXPECT_TRUE(test::eventually([&] { return clock_->next_wake() == duration; }));
  }
  /// The first of two items that are due together, after one and more seconds.
  std::string first_of_two(DelayingQueue<std::string>& queue) {
    expect_next_after(1s);
    advance(5s);
    EXPECT_TRUE(test::eventually([&] { return queue.size() == 2; }));
    return queue.get().value_or("nothing");
  }
  /// workqueue_retries_total; -1 if there is no such metric.
  static double retries(const DelayingQueue<std::string>& queue) {
    std::vector<metrics::Sample> all;
    queue.collect(all);
    const auto at = std::find_if(all.begin(), all.end(), [](const metrics::Sample& sample) {
      return sample.name == "workqueue_retries_total";
    });
    return at == all.end() ? -1 : at->value;
  }
  void expect_nothing_sleeps() {
    EXPECT_TRUE(test::eventually([&] { return clock_->sleepers() == 0; }));
  }

  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(1u);
  DelayingQueueOptions<std::string> options() {
    DelayingQueueOptions<std::string> out;
    out.clock = clock_;
    out.loop = loop_;
    return out;
  }
  DelayingQueueOptions<std::string> with_priorities() {
    auto out = options();
    out.order = std::make_unique<PriorityOrder<std::string>>();
    return out;
  }
};

TEST_F(DelayingQueueTest, AddsAfterTheDelay) {
  DelayingQueue<std::string> queue(options());
  queue.add_after("a", 50ms);
  expect_next_after(50ms);
  advance(49ms);
  expect_next_after(1ms);
  EXPECT_EQ(queue.size(), 0u);
  advance(1ms);
  EXPECT_EQ(queue.get(), "a");
  queue.done("a");
  expect_nothing_sleeps();
  advance(1h);
  EXPECT_EQ(queue.size(), 0u) << "once";
}

TEST_F(DelayingQueueTest, WithoutADelayAddsAtOnce) {
  DelayingQueue<std::string> queue(options());
  queue.add_after("a", 0s);
  queue.add_after("b", -1s);
  EXPECT_EQ(queue.size(), 2u);
}

TEST_F(DelayingQueueTest, ADelayMayExceedTheClocksRange) {
  DelayingQueue<std::string> queue(options());
  queue.add_after("never", Clock::Duration::max());
  queue.add_after("soon", 50ms);
  expect_next_after(50ms);
  advance(50ms);
  EXPECT_EQ(queue.get(), "soon");
  queue.done("soon");
  EXPECT_TRUE(test::eventually([&] { return clock_->next_wake() > 24h * 365; }));
  EXPECT_EQ(queue.size(), 0u);
}

TEST_F(DelayingQueueTest, TheEarlierOfTwoTimesApplies) {
  DelayingQueue<std::string> queue(options());
  queue.add_after("later-first", 70ms);
  queue.add_after("later-first", 50ms);
  queue.add_after("earlier-first", 60ms);
  queue.add_after("earlier-first", 80ms);
  expect_next_after(50ms);
  advance(50ms);
  EXPECT_EQ(queue.get(), "later-first");
  expect_next_after(10ms);
  advance(10ms);
  EXPECT_EQ(queue.get(), "earlier-first");
  queue.done("later-first");
  queue.done("earlier-first");
  expect_nothing_sleeps();
  advance(1h);
  EXPECT_EQ(queue.size(), 0u);
}

TEST_F(DelayingQueueTest, ALaterItemDoesNotDelayAnEarlierOne) {
  DelayingQueue<std::string> queue(options());
  queue.add_after("late", 1h);
  expect_next_after(1h);
  queue.add_after("soon", 50ms);
  expect_next_after(50ms);
  advance(60ms);
  EXPECT_EQ(queue.get(), "soon");
  expect_next_after(1h - 60ms);
}

TEST_F(DelayingQueueTest, ItemsDueTogetherAreOrderedByTime) {
  DelayingQueue<std::string> queue(options());
  queue.add_after("third", 3s);
  queue.add_after("first", 1s);
  queue.add_after("second", 2s);
  queue.add_after("also-third", 3s);
  expect_next_after(1s);
  advance(10s);
  for (const char* item : {"first", "second", "third", "also-third"}) EXPECT_EQ(queue.get(), item);
}

TEST_F(DelayingQueueTest, AnImmediateItemMayBeAddedAgainLater) {
  DelayingQueue<std::string> queue(options());
  queue.add_after("a", 1s);
  queue.add("a");
  EXPECT_EQ(queue.get(), "a");
  queue.done("a");
  expect_next_after(1s);
  advance(1s);
  EXPECT_EQ(queue.get(), "a");
}

TEST_F(DelayingQueueTest, KeepsPriorities) {
  DelayingQueue<std::string> queue(with_priorities());
  queue.add_after("low", 1s);
  queue.add_after("high", 2s, 1);
  EXPECT_EQ(first_of_two(queue), "high");
}

TEST_F(DelayingQueueTest, KeepsTheHighestPriorityOfADelayedItem) {
  DelayingQueue<std::string> queue(with_priorities());
  queue.add_after("raised", 2s);
  queue.add_after("raised", 3s, 5);
  queue.add_after("raised", 3s, 1);
  queue.add_after("other", 1s, 4);
  EXPECT_EQ(first_of_two(queue), "raised");
}

TEST_F(DelayingQueueTest, AShutdownDropsItemsThatAreNotDue) {
  DelayingQueue<std::string> queue(options());
  queue.add_after("a", 1s);
  queue.shut_down();
  queue.add_after("b", 1s);
  advance(5s);
  EXPECT_EQ(queue.get(), std::nullopt);
  expect_nothing_sleeps();
}

TEST_F(DelayingQueueTest, AShutdownReleasesDelayedItems) {
  using Item = std::shared_ptr<int>;
  for (const bool drain : {false, true}) {
    SCOPED_TRACE(drain);
    DelayingQueueOptions<Item> shared;
    shared.clock = clock_;
    shared.loop = loop_;
    DelayingQueue<Item> queue(std::move(shared));
    const auto item = std::make_shared<int>(1);
    queue.add_after(item, 1h);
    EXPECT_GT(item.use_count(), 1);
    if (drain) {
      EXPECT_TRUE(queue.shut_down_with_drain());
    } else {
      queue.shut_down();
    }
    EXPECT_EQ(item.use_count(), 1);
  }
}

TEST_F(DelayingQueueTest, ReleasesItsTimers) {
  {
    DelayingQueue<std::string> queue(options());
    queue.add_after("a", 1s);
    expect_next_after(1s);
  }
  expect_nothing_sleeps();
}

TEST_F(DelayingQueueTest, AcceptsALoopAndAClock) {
  DelayingQueue<std::string> queue;
  queue.add_after("a", 1ms);
  EXPECT_EQ(queue.get(), "a");
}

TEST_F(DelayingQueueTest, CountsRetries) {
  auto named = options();
  named.name = "pods";
  DelayingQueue<std::string> queue(std::move(named));
  queue.add_after("a", 1s);
  queue.add_after("a", 0s);
  queue.add("a");
  EXPECT_EQ(retries(queue), 2);
}

TEST_F(DelayingQueueTest, ManyThreadsAddConcurrently) {
  DelayingQueue<int> queue;
  constexpr int kItems = 500;
  {
    std::vector<std::jthread> adders;
    for (int i = 0; i < 4; ++i) {
      adders.emplace_back([&, i] {
        for (int n = i; n < kItems; n += 4) queue.add_after(n, std::chrono::microseconds(n % 97));
      });
    }
  }
  std::vector<bool> seen(kItems);
  for (int i = 0; i < kItems; ++i) {
    const auto item = queue.get();
    ASSERT_TRUE(item);
    EXPECT_FALSE(seen[static_cast<std::size_t>(*item)]);
    seen[static_cast<std::size_t>(*item)] = true;
    queue.done(*item);
  }
}

// ------------------------------------------------------------------------------- rate limiting

TEST_F(DelayingQueueTest, ARateLimitingQueueWaitsLongerEachTime) {
  RateLimitingQueueOptions<std::string> limited;
  limited.clock = clock_;
  limited.loop = loop_;
  limited.rate_limiter =
      std::make_shared<ItemExponentialFailureRateLimiter<std::string>>(1ms, 1000s);
  RateLimitingQueue<std::string> queue(std::move(limited));
  for (const auto wait : {1ms, 2ms, 4ms}) {
    queue.add_rate_limited("one");
    expect_next_after(wait);
    advance(wait);
    EXPECT_EQ(queue.get(), "one");
    queue.done("one");
    expect_nothing_sleeps();
  }
  EXPECT_EQ(queue.num_requeues("one"), 3);
  queue.add_rate_limited("two");
  expect_next_after(1ms);
  queue.forget("one");
  EXPECT_EQ(queue.num_requeues("one"), 0);
  EXPECT_EQ(queue.num_requeues("two"), 1);
  queue.add_rate_limited("one");
  advance(1ms);
  EXPECT_TRUE(test::eventually([&] { return queue.size() == 2; }));
}

TEST_F(DelayingQueueTest, ARateLimitingQueueHasADefault) {
  RateLimitingQueue<std::string> queue;
  queue.add_rate_limited("a");
  EXPECT_EQ(queue.get(), "a");
  EXPECT_EQ(queue.num_requeues("a"), 1);
}

}  // namespace
}  // namespace lookout::workqueue
