#include "lookout/controller/priority_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lookout/testing/fake_clock.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/stopped.h"

namespace lookout::controller {
namespace {

using namespace std::chrono_literals;

class PriorityQueueTest : public testing::Test {
 protected:
  PriorityQueueOptions options(unsigned fair_share = 0) const {
    PriorityQueueOptions out;
    out.name = "test";
    out.loop = loop_;
    out.clock = clock_;
    out.fair_share = fair_share;
    return out;
  }
  static Request named(const std::string& name) { return Request("ns", std::string_view(name)); }
  static std::string next(PriorityQueue& queue) {
    const auto item = queue.try_get();
    return item ? item->request.name : "nothing";
  }
  /// The next request, which gets ready after this time.
  std::string next_after(PriorityQueue& queue, Clock::Duration by) const {
    return advance_until_ready(queue, by) ? next(queue) : "not ready";
  }
  bool advance_until_ready(PriorityQueue& queue, Clock::Duration by) const {
    if (!test::eventually([&] { return clock_->sleepers() > 0; })) return false;
    clock_->advance(by);
    return test::eventually([&] { return queue.size() > 0; });
  }

  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(1u);
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
};

TEST_F(PriorityQueueTest, OrdersByPriorityThenArrival) {
  PriorityQueue queue(options());
  queue.add(named("initial-1"), kLowPriority);
  queue.add(named("initial-2"), kLowPriority);
  queue.add(named("live-1"));
  queue.add(named("live-2"));
  EXPECT_EQ(next(queue), "live-1");
  EXPECT_EQ(next(queue), "live-2");
  EXPECT_EQ(next(queue), "initial-1");
  EXPECT_EQ(next(queue), "initial-2");
  EXPECT_EQ(next(queue), "nothing");
}

TEST_F(PriorityQueueTest, ARequestThatIsAddedAgainKeepsTheHigherPriority) {
  PriorityQueue queue(options());
  queue.add(named("a"), kLowPriority);
  queue.add(named("b"), -1);
  queue.add(named("a"), 5);
  queue.add(named("a"), kLowPriority);
  EXPECT_EQ(queue.size(), 2u);
  const auto first = queue.try_get();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->request.name, "a");
  EXPECT_EQ(first->priority, 5);
  EXPECT_EQ(next(queue), "b");
}

TEST_F(PriorityQueueTest, UrgentRequestsDoNotStarveOthers) {
  PriorityQueue queue(options(4));
  queue.add(named("patient"), kLowPriority);
  std::vector<std::string> order;
  for (int i = 0; i < 8; ++i) {
    queue.add(named("live-" + std::to_string(i)));
    queue.add(named("more-" + std::to_string(i)));
    order.push_back(next(queue));
  }
  EXPECT_EQ(std::count(order.begin(), order.end(), "patient"), 1);
  EXPECT_EQ(order[3], "patient");
}

TEST_F(PriorityQueueTest, ARequestInProcessingIsNotReturnedAgain) {
  PriorityQueue queue(options());
  queue.add(named("a"));
  EXPECT_EQ(next(queue), "a");
  queue.add(named("a"), 7);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(next(queue), "nothing");
  queue.done(named("a"));
  const auto again = queue.try_get();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->priority, 7);
  queue.done(named("a"));
  EXPECT_EQ(next(queue), "nothing");
}

TEST_F(PriorityQueueTest, ReportsRequestsInProcessing) {
  PriorityQueue queue(options());
  queue.add(named("a"));
  queue.add(named("b"));
  queue.add(named("c"));
  const auto began = clock_->now();
  EXPECT_EQ(next(queue), "a");
  clock_->advance(1s);
  const auto second = queue.try_get();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->since, began + 1s);
  auto working = queue.working();
  ASSERT_EQ(working.size(), 2u);
  EXPECT_EQ(working[0].request, named("a"));
  EXPECT_EQ(working[0].since, began);
  EXPECT_EQ(working[1].request, named("b"));
  EXPECT_EQ(working[1].since, began + 1s);
  queue.done(named("a"));
  queue.done_and_hold(named("b"));
  EXPECT_TRUE(queue.working().empty());
}

TEST_F(PriorityQueueTest, EachRequestWakesAWaitingThread) {
  PriorityQueue queue(options());
  std::vector<std::future<std::string>> threads;
  for (int i = 0; i < 3; ++i) {
    threads.push_back(std::async(std::launch::async, [&] {
      const auto item = queue.get();
      return item ? item->request.name : "nothing";
    }));
  }
  std::vector<std::string> got;
  queue.add(named("a"));
  queue.add_after(named("b"), 1s);
  EXPECT_TRUE(test::eventually([&] { return clock_->sleepers() > 0; }));
  clock_->advance(1s);
  EXPECT_TRUE(test::eventually([&] { return queue.working().size() == 2; }));
  queue.add(named("a"));
  queue.done(named("a"));
  for (auto& thread : threads) got.push_back(test::get(std::move(thread)));
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, (std::vector<std::string>{"a", "a", "b"}));
}

TEST_F(PriorityQueueTest, AHeldRequestDoesNotBlockOthers) {
  PriorityQueue queue(options());
  queue.add(named("a"));
  EXPECT_EQ(next(queue), "a");
  queue.add(named("a"));
  queue.done_and_hold(named("a"));
  EXPECT_EQ(queue.held(), 1u);
  queue.add(named("b"));
  EXPECT_EQ(next(queue), "b");
  EXPECT_EQ(next(queue), "nothing");
  queue.release(named("a"));
  EXPECT_EQ(queue.held(), 0u);
  EXPECT_EQ(next(queue), "a");
}

TEST_F(PriorityQueueTest, ADelayPassesByTheClock) {
  PriorityQueue queue(options());
  queue.add_after(named("late"), 10s);
  queue.add_after(named("soon"), 1s);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(next_after(queue, 1s), "soon");
  EXPECT_EQ(next(queue), "nothing");
  EXPECT_EQ(next_after(queue, 9s), "late");
}

TEST_F(PriorityQueueTest, TheEarlierOfTwoDelaysApplies) {
  PriorityQueue queue(options());
  queue.add_after(named("a"), 1s);
  queue.add_after(named("a"), 3s);
  queue.add_after(named("b"), 30s);
  queue.add_after(named("b"), 10s);
  EXPECT_EQ(next_after(queue, 1s), "a");
  queue.done(named("a"));
  EXPECT_EQ(next_after(queue, 9s), "b");
  queue.done(named("b"));
  // The later times are dropped.
  clock_->advance(1h);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(next(queue), "nothing");
  // Both can be delayed again.
  queue.add_after(named("a"), 1s);
  EXPECT_EQ(next_after(queue, 1s), "a");
}

TEST_F(PriorityQueueTest, ARequestAddedDuringItsProcessingRunsOnceMore) {
  PriorityQueue queue(options());
  queue.add(named("a"));
  EXPECT_EQ(next(queue), "a");
  for (int i = 0; i < 3; ++i) queue.add(named("a"));
  queue.add(named("b"));
  // It does not block others.
  EXPECT_EQ(next(queue), "b");
  queue.done(named("a"));
  EXPECT_EQ(next(queue), "a");
  queue.done(named("a"));
  EXPECT_EQ(next(queue), "nothing");
}

TEST_F(PriorityQueueTest, AnImmediateAddReplacesADelay) {
  PriorityQueue queue(options());
  queue.add_after(named("a"), 1h);
  queue.add(named("a"));
  EXPECT_EQ(next(queue), "a");
  queue.done(named("a"));
  clock_->advance(2h);
  EXPECT_EQ(next(queue), "nothing");
}

TEST_F(PriorityQueueTest, ADelayThatEndsDuringProcessingAppliesAfterIt) {
  PriorityQueue queue(options());
  queue.add(named("a"));
  EXPECT_EQ(next(queue), "a");
  queue.add_after(named("a"), 1s);
  ASSERT_TRUE(test::eventually([&] { return clock_->sleepers() > 0; }));
  clock_->advance(1s);
  ASSERT_TRUE(test::eventually([&] { return clock_->sleepers() == 0; }));
  EXPECT_EQ(next(queue), "nothing");
  queue.done(named("a"));
  EXPECT_TRUE(test::eventually([&] { return queue.size() == 1; }));
}

TEST_F(PriorityQueueTest, RetriesWaitLongerUntilForget) {
  PriorityQueue queue(options());
  queue.add_rate_limited(named("a"));
  EXPECT_EQ(queue.num_requeues(named("a")), 1);
  EXPECT_EQ(next_after(queue, 5ms), "a");
  queue.add_rate_limited(named("a"));
  queue.done(named("a"));
  ASSERT_TRUE(test::eventually([&] { return clock_->next_wake() == 10ms; }));
  ASSERT_TRUE(advance_until_ready(queue, 10ms));
  queue.forget(named("a"));
  EXPECT_EQ(queue.num_requeues(named("a")), 0);
}

TEST_F(PriorityQueueTest, AStopAndAShutdownWakeWaiters) {
  PriorityQueue queue(options());
  EXPECT_FALSE(test::stopped([&](const std::stop_token& stop) { return queue.get(stop); }));
  auto ended = std::async(std::launch::async, [&] { return queue.get(); });
  queue.shut_down();
  EXPECT_FALSE(test::get(ended));
  // The backlog is dropped.
  queue.add(named("a"));
  EXPECT_FALSE(queue.get());
}

TEST_F(PriorityQueueTest, ReportsWhenARequestIsReady) {
  PriorityQueue queue(options());
  std::atomic<int> told{0};
  queue.on_ready([&] { ++told; });
  queue.add(named("a"));
  EXPECT_EQ(told, 1);
  EXPECT_EQ(next(queue), "a");
  queue.add(named("a"));
  EXPECT_EQ(told, 1);
  queue.done(named("a"));
  EXPECT_EQ(told, 2);
  queue.add_after(named("b"), 1s);
  EXPECT_EQ(told, 2);
  ASSERT_TRUE(test::eventually([&] { return clock_->sleepers() > 0; }));
  clock_->advance(1s);
  EXPECT_TRUE(test::eventually([&] { return told == 3; }));
}

TEST_F(PriorityQueueTest, ReportsWhenAReleasedRequestIsReady) {
  PriorityQueue queue(options());
  std::atomic<int> told{0};
  queue.on_ready([&] { ++told; });
  queue.add(named("a"));
  EXPECT_EQ(next(queue), "a");
  queue.add(named("a"));
  queue.done_and_hold(named("a"));
  EXPECT_EQ(told, 1);
  queue.release(named("a"));
  EXPECT_EQ(told, 2);
}

TEST_F(PriorityQueueTest, TheQueueDurationExcludesDelays) {
  PriorityQueue queue(options());
  queue.add_after(named("a"), 10s);
  ASSERT_TRUE(advance_until_ready(queue, 10s));
  clock_->advance(1s);
  EXPECT_EQ(next(queue), "a");
  queue.add_after(named("b"), 1h);
  clock_->advance(10s);
  queue.add(named("b"));
  clock_->advance(1s);
  EXPECT_EQ(next(queue), "b");
  std::vector<metrics::Sample> samples;
  queue.collect(samples);
  const auto duration = std::find_if(samples.begin(), samples.end(), [](const auto& sample) {
    return sample.name == "workqueue_queue_duration_seconds";
  });
  ASSERT_NE(duration, samples.end());
  EXPECT_EQ(duration->count, 2u);
  EXPECT_DOUBLE_EQ(duration->sum, 2);
}

TEST_F(PriorityQueueTest, ARaisedRequestKeepsItsAge) {
  PriorityQueue queue(options(2));
  queue.add(named("old"), kLowPriority);
  for (const char* name : {"live-1", "live-2", "live-3"}) queue.add(named(name));
  queue.add(named("old"), kLowPriority + 1);
  EXPECT_EQ(next(queue), "live-1");
  // Every second request is the oldest.
  EXPECT_EQ(next(queue), "old");
}

TEST_F(PriorityQueueTest, ManyRequestsKeepTheirOrder) {
  // More requests than the initial hash table holds.
  PriorityQueue queue(options());
  for (int i = 0; i < 5000; ++i) queue.add(named(std::to_string(i)), i % 7 == 0 ? 1 : 0);
  int seen = 0;
  bool low = false;
  while (const auto item = queue.try_get()) {
    ++seen;
    if (item->priority == 0) low = true;
    EXPECT_FALSE(low && item->priority == 1);
    queue.done(item->request);
  }
  EXPECT_EQ(seen, 5000);
}

TEST_F(PriorityQueueTest, CountsByPriority) {
  PriorityQueue queue(options());
  queue.add(named("a"), 3);
  queue.add(named("b"));
  queue.add(named("c"));
  std::vector<metrics::Sample> samples;
  queue.collect(samples);
  double high = -1;
  double normal = -1;
  double adds = -1;
  for (const auto& sample : samples) {
    if (sample.name == "workqueue_adds_total") adds = sample.value;
    if (sample.name != "workqueue_depth") continue;
    if (sample.labels.back().second == "3") high = sample.value;
    if (sample.labels.back().second == "0") normal = sample.value;
  }
  EXPECT_EQ(high, 1);
  EXPECT_EQ(normal, 2);
  EXPECT_EQ(adds, 3);
}

TEST_F(PriorityQueueTest, ARaisedRequestIsLastOfItsNewPriority) {
  PriorityQueue queue(options());
  queue.add(named("a"));
  queue.add(named("b"), 1);
  queue.add(named("a"), 1);
  EXPECT_EQ(next(queue), "b");
  EXPECT_EQ(next(queue), "a");
}

TEST_F(PriorityQueueTest, ALaterTimeDoesNotDelayAReadyRequest) {
  PriorityQueue queue(options());
  queue.add(named("a"));
  queue.add_after(named("a"), 1h);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(next(queue), "a");
  queue.done(named("a"));
  EXPECT_EQ(next(queue), "nothing");
}

TEST_F(PriorityQueueTest, ARequestThatBecomesReadyIsOrderedByItsPriority) {
  PriorityQueue queue(options());
  queue.add(named("initial"), kLowPriority);
  queue.add_after(named("live"), 1s);
  ASSERT_TRUE(test::eventually([&] { return clock_->sleepers() > 0; }));
  clock_->advance(1s);
  ASSERT_TRUE(test::eventually([&] { return queue.size() == 2; }));
  EXPECT_EQ(next(queue), "live");
  EXPECT_EQ(next(queue), "initial");
}

TEST_F(PriorityQueueTest, AWaitingWorkerGetsARequestAtOnce) {
  PriorityQueue queue(options());
  auto got = std::async(std::launch::async, [&] { return queue.get(); });
  queue.add_after(named("a"), 1h);
  queue.add(named("a"));
  const auto item = test::get(got);
  ASSERT_TRUE(item);
  EXPECT_EQ(item->request.name, "a");
}

TEST_F(PriorityQueueTest, EachRequestHasItsOwnRateLimit) {
  PriorityQueueOptions limited = options();
  limited.rate_limiter = std::make_shared<workqueue::ItemExponentialFailureRateLimiter<Request>>(
      5ms, std::chrono::seconds(1000));
  for (int i = 0; i < 7; ++i) limited.rate_limiter->when(named("b"));
  PriorityQueue queue(limited);
  queue.add_rate_limited(named("a"));
  queue.add_rate_limited(named("b"));
  EXPECT_EQ(next_after(queue, 5ms), "a");
  EXPECT_EQ(next(queue), "nothing");
  EXPECT_EQ(next_after(queue, 635ms), "b");
}

TEST_F(PriorityQueueTest, CountsEachRequestOnceAndDelaysAsRetries) {
  PriorityQueue queue(options());
  const auto counted = [&](const std::string& name) {
    std::vector<metrics::Sample> samples;
    queue.collect(samples);
    for (const auto& sample : samples) {
      if (sample.name == name) return sample.value;
    }
    return -1.0;
  };
  queue.add(named("a"));
  queue.add(named("a"));
  EXPECT_EQ(counted("workqueue_adds_total"), 1);
  EXPECT_EQ(next(queue), "a");
  // A request that is being processed counts as another one.
  queue.add(named("a"));
  EXPECT_EQ(counted("workqueue_adds_total"), 2);
  EXPECT_EQ(counted("workqueue_depth"), 0);
  queue.done(named("a"));
  EXPECT_EQ(counted("workqueue_depth"), 1);
  EXPECT_EQ(next(queue), "a");
  queue.add_after(named("b"), 0s);
  EXPECT_EQ(counted("workqueue_retries_total"), 0);
  queue.add_after(named("c"), 1s);
  EXPECT_EQ(counted("workqueue_retries_total"), 1);
  EXPECT_EQ(counted("workqueue_depth"), 1);
  queue.add(named("c"));
  EXPECT_EQ(counted("workqueue_depth"), 2);
  EXPECT_EQ(counted("workqueue_adds_total"), 4);
}

TEST_F(PriorityQueueTest, AtMostTwentyFivePrioritiesHaveALabel) {
  PriorityQueue queue(options());
  const auto depths = [&] {
    std::map<std::string, double> out;
    std::vector<metrics::Sample> samples;
    queue.collect(samples);
    for (const auto& sample : samples) {
      if (sample.name == "workqueue_depth") out[sample.labels.back().second] = sample.value;
    }
    return out;
  };
  EXPECT_EQ(depths(), (std::map<std::string, double>{{"0", 0}}));
  for (int i = 0; i < 25; ++i) queue.add(named(std::to_string(i)), i);
  auto seen = depths();
  EXPECT_EQ(seen.size(), 25u);
  EXPECT_EQ(seen["24"], 1);
  // The first priorities keep their labels, even while they have no requests.
  while (const auto item = queue.try_get()) queue.done(item->request);
  for (int i = 25; i < 30; ++i) queue.add(named(std::to_string(i)), i);
  seen = depths();
  EXPECT_EQ(seen.size(), 26u);
  EXPECT_EQ(seen["24"], 0);
  EXPECT_EQ(seen["exceeded_cardinality_limit"], 5);
}

TEST_F(PriorityQueueTest, AShutdownWakesAllWorkers) {
  for (int round = 0; round < 20; ++round) {
    PriorityQueue queue(options(16));
    std::vector<std::future<void>> workers;
    workers.reserve(8);
    for (int worker = 0; worker < 8; ++worker) {
      workers.push_back(std::async(std::launch::async, [&queue, worker] {
        for (int i = 0;; ++i) {
          queue.add(named(std::to_string((i * 7 + worker) % 50)), i % 100);
          const auto item = queue.get();
          if (!item) return;
          queue.done(item->request);
        }
      }));
    }
    std::this_thread::sleep_for(1ms);
    queue.shut_down();
    for (auto& worker : workers) test::get(worker);
  }
}

TEST_F(PriorityQueueTest, ARequestIsNeverProcessedConcurrently) {
  constexpr int kRequests = 50;
  PriorityQueue queue(options(16));
  std::array<std::atomic<int>, kRequests> out{};
  std::atomic<int> overlaps{0};
  std::atomic<int> given{0};
  std::vector<std::future<void>> threads;
  threads.reserve(12);
  for (int worker = 0; worker < 8; ++worker) {
    threads.push_back(std::async(std::launch::async, [&] {
      while (const auto item = queue.get()) {
        const auto index = static_cast<std::size_t>(std::stoi(item->request.name));
        if (out.at(index)++ != 0) ++overlaps;
        ++given;
        --out.at(index);
        queue.done(item->request);
      }
    }));
  }
  for (int adder = 0; adder < 4; ++adder) {
    threads.push_back(std::async(std::launch::async, [&, adder] {
      for (int i = 0; i < 2000; ++i) {
        const Request request = named(std::to_string((i * 13 + adder) % kRequests));
        if (i % 10 == 0) {
          queue.add_after(request, 1ms, i % 5);
        } else {
          queue.add(request, i % 5);
        }
      }
    }));
  }
  for (std::size_t i = 8; i < threads.size(); ++i) test::get(threads[i]);
  clock_->advance(1s);
  EXPECT_TRUE(test::eventually([&] { return queue.size() == 0; }));
  queue.shut_down();
  for (std::size_t i = 0; i < 8; ++i) test::get(threads[i]);
  EXPECT_EQ(overlaps, 0);
  EXPECT_GE(given, kRequests);
}

// --- with a debounce period

class PriorityQueueDebounceTest : public PriorityQueueTest {
 protected:
  std::unique_ptr<PriorityQueue> debounced() const {
    PriorityQueueOptions out = options();
    out.debounce = 10s;
    return std::make_unique<PriorityQueue>(std::move(out));
  }
};

TEST_F(PriorityQueueDebounceTest, ARequestWaitsForThePeriod) {
  const auto queue = debounced();
  queue->add(named("a"));
  EXPECT_EQ(queue->size(), 0u);
  clock_->advance(9s);
  EXPECT_EQ(next(*queue), "nothing");
  EXPECT_EQ(next_after(*queue, 1s), "a");
}

TEST_F(PriorityQueueDebounceTest, AnEventRestartsThePeriod) {
  const auto queue = debounced();
  queue->add(named("a"), kLowPriority);
  queue->add(named("b"));
  clock_->advance(6s);
  queue->add(named("a"), 1);
  EXPECT_EQ(next_after(*queue, 4s), "b");
  EXPECT_EQ(next(*queue), "nothing");
  ASSERT_TRUE(advance_until_ready(*queue, 6s));
  const auto item = queue->try_get();
  ASSERT_TRUE(item);
  EXPECT_EQ(item->request.name, "a");
  EXPECT_EQ(item->priority, 1);
  queue->done(item->request);
  EXPECT_EQ(next(*queue), "nothing");
}

TEST_F(PriorityQueueDebounceTest, EventsThatNeverPauseDelayARequestForTenPeriods) {
  const auto queue = debounced();
  for (int i = 0; i < 19; ++i) {
    queue->add(named("a"));
    EXPECT_EQ(next(*queue), "nothing");
    clock_->advance(5s);
  }
  queue->add(named("a"));
  EXPECT_EQ(next_after(*queue, 5s), "a");
}

TEST_F(PriorityQueueDebounceTest, EventsDoNotDelayRetries) {
  const auto queue = debounced();
  queue->add_after(named("a"), 5s);
  queue->add_after(named("b"), 15s);
  queue->add(named("a"));
  queue->add(named("b"));
  EXPECT_EQ(next_after(*queue, 5s), "a");
  // An event is reconciled before a later retry, and delays it no longer than that.
  queue->add(named("b"));
  clock_->advance(5s);
  EXPECT_EQ(next(*queue), "nothing");
  EXPECT_EQ(next_after(*queue, 5s), "b");
}

TEST_F(PriorityQueueDebounceTest, AnEventDuringProcessingWaitsForThePeriod) {
  const auto queue = debounced();
  queue->add(named("a"));
  EXPECT_EQ(next_after(*queue, 10s), "a");
  queue->add(named("a"));
  queue->done(named("a"));
  EXPECT_EQ(next(*queue), "nothing");
  EXPECT_EQ(next_after(*queue, 10s), "a");
}

}  // namespace
}  // namespace lookout::controller
