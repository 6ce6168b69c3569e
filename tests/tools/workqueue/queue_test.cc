#include "lookout/tools/workqueue/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "lookout/testing/fake_clock.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/stopped.h"

namespace lookout::workqueue {
namespace {

using namespace std::chrono_literals;

/// Takes all queued items, and marks each as done.
template <class Q>
std::vector<std::string> drain(Q& queue) {
  std::vector<std::string> out;
  while (queue.size() > 0) {
    out.push_back(*queue.get());
    queue.done(out.back());
  }
  return out;
}

TEST(QueueTest, ReturnsItemsInArrivalOrder) {
  Queue<std::string> queue;
  for (const char* item : {"b", "a", "c"}) queue.add(item);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_THAT(drain(queue), ElementsAre("b", "a", "c"));
}

TEST(QueueTest, QueuesAnItemOnce) {
  Queue<std::string> queue;
  for (const char* item : {"a", "b", "a", "a"}) queue.add(item);
  EXPECT_THAT(drain(queue), ElementsAre("a", "b"));
}

TEST(QueueTest, AnItemAddedDuringProcessingIsProcessedAgain) {
  Queue<std::string> queue;
  queue.add("a");
  ASSERT_EQ(queue.get(), "a");
  queue.add("a");
  queue.add("a");
  EXPECT_EQ(queue.size(), 0u) << "never twice at a time";
  queue.add("b");
  queue.done("a");
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_THAT(drain(queue), ElementsAre("b", "a"));
}

TEST(QueueTest, ADoneItemCanBeAddedAgain) {
  Queue<std::string> queue;
  queue.add("a");
  queue.done(*queue.get());
  EXPECT_EQ(queue.size(), 0u);
  queue.add("a");
  EXPECT_THAT(drain(queue), ElementsAre("a"));
}

TEST(QueueTest, DoneAppliesOnlyToItemsInProcessing) {
  Queue<std::string> queue;
  queue.done("a");
  queue.add("a");
  queue.done("a");
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.get(), "a");
}

TEST(QueueTest, SizeCountsQueuedItems) {
  Queue<std::string> queue;
  queue.add("a");
  EXPECT_EQ(queue.size(), 1u);
  queue.add("b");
  queue.add("a");
  EXPECT_EQ(queue.size(), 2u) << "each once";
  ASSERT_TRUE(queue.get());
  EXPECT_EQ(queue.size(), 1u);
}

TEST(QueueTest, AcceptsAnyHashableKey) {
  struct Key {
    std::string ns;
    int shard;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const { return std::hash<std::string>()(key.ns); }
  };
  Queue<Key, Hash> queue;
  queue.add({"shop", 1});
  queue.add({"shop", 2});
  queue.add({"shop", 1});
  EXPECT_EQ(queue.size(), 2u);
}

TEST(QueueTest, KeepsNothingOfDoneItems) {
  Queue<std::shared_ptr<int>> queue;
  auto item = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = item;
  queue.add(item);
  queue.done(*queue.get());
  item.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(QueueTest, WorkIsDoneAtItsDestruction) {
  Queue<std::string> queue;
  queue.add("a");
  {
    const auto work = queue.next();
    ASSERT_TRUE(work);
    EXPECT_EQ(**work, "a");
    EXPECT_EQ((*work)->size(), 1u);
    queue.add("a");
    EXPECT_EQ(queue.size(), 0u);
  }
  EXPECT_EQ(queue.size(), 1u);
}

// --------------------------------------------------------------------------------- priorities

TEST(PriorityOrderTest, TheHighestPriorityComesFirst) {
  Queue<std::string> queue({.order = std::make_unique<PriorityOrder<std::string>>()});
  queue.add("low", -1);
  queue.add("a");
  queue.add("b");
  queue.add("high", 5);
  EXPECT_THAT(drain(queue), ElementsAre("high", "a", "b", "low"));
}

TEST(PriorityOrderTest, AddingAgainOnlyRaisesThePriority) {
  Queue<std::string> queue({.order = std::make_unique<PriorityOrder<std::string>>()});
  queue.add("a", 1);
  queue.add("b", 2);
  queue.add("c", 3);
  queue.add("a", 9);
  queue.add("c", 0);
  EXPECT_THAT(drain(queue), ElementsAre("a", "c", "b"));
}

TEST(PriorityOrderTest, AddingAgainWithTheSamePriorityKeepsThePlace) {
  Queue<std::string> queue({.order = std::make_unique<PriorityOrder<std::string>>()});
  queue.add("a", 1);
  queue.add("b", 1);
  queue.add("a", 1);
  EXPECT_THAT(drain(queue), ElementsAre("a", "b"));
}

TEST(PriorityOrderTest, AnItemAddedDuringProcessingKeepsTheHighestPriority) {
  Queue<std::string> queue({.order = std::make_unique<PriorityOrder<std::string>>()});
  queue.add("a", 1);
  ASSERT_TRUE(queue.get());
  queue.add("a", 2);
  queue.add("a", 7);
  queue.add("a", 2);
  queue.add("b", 5);
  queue.done("a");
  EXPECT_THAT(drain(queue), ElementsAre("a", "b"));
}

/// Last in, first out; records touched items.
class StackOrder : public Order<std::string> {
 public:
  explicit StackOrder(std::vector<std::string>& touched) : touched_(touched) {}
  void push(std::string item, int) override { items_.push_back(std::move(item)); }
  void touch(const std::string& item, int) override { touched_.push_back(item); }
  std::string pop() override {
    std::string item = std::move(items_.back());
    items_.pop_back();
    return item;
  }
  std::size_t size() const override { return items_.size(); }

 private:
  std::vector<std::string>& touched_;
  std::vector<std::string> items_;
};

TEST(QueueTest, AcceptsAnyOrder) {
  std::vector<std::string> touched;
  Queue<std::string> queue({.order = std::make_unique<StackOrder>(touched)});
  queue.add("a");
  queue.add("b");
  queue.add("a");
  EXPECT_THAT(touched, ElementsAre("a"));
  EXPECT_EQ(queue.get(), "b");
  queue.add("b");
  EXPECT_THAT(touched, ElementsAre("a")) << "what is being processed does not wait";
}

/// Throws while `fails` is set.
class FailingOrder : public FifoOrder<std::string> {
 public:
  explicit FailingOrder(const bool& fails) : fails_(fails) {}
  void push(std::string item, int priority) override {
    if (fails_) throw std::runtime_error("no order");
    FifoOrder<std::string>::push(std::move(item), priority);
  }

 private:
  const bool& fails_;
};

TEST(QueueTest, AnItemWhoseOrderThrewMayBeAddedAgain) {
  bool fails = true;
  Queue<std::string> queue({.order = std::make_unique<FailingOrder>(fails)});
  EXPECT_THROW(queue.add("a"), std::runtime_error);
  fails = false;
  queue.add("a");
  ASSERT_EQ(queue.size(), 1u);
  ASSERT_EQ(queue.get(), "a");
  queue.add("a");
  fails = true;
  EXPECT_THROW(queue.done("a"), std::runtime_error);
  fails = false;
  queue.add("a");
  ASSERT_EQ(queue.size(), 1u) << "it is not being processed";
  ASSERT_EQ(queue.get(), "a");
  queue.done("a");
  EXPECT_TRUE(queue.shut_down_with_drain());
}

// ------------------------------------------------------------------------------------ the end

TEST(QueueTest, AfterAShutdownNothingIsAddedAndQueuedItemsAreReturned) {
  Queue<std::string> queue;
  queue.add("a");
  EXPECT_FALSE(queue.shutting_down());
  queue.shut_down();
  EXPECT_TRUE(queue.shutting_down());
  queue.add("b");
  EXPECT_EQ(queue.get(), "a");
  EXPECT_EQ(queue.get(), std::nullopt);
}

TEST(QueueTest, AShutdownEndsAllWaiting) {
  Queue<std::string> queue;
  std::vector<std::future<std::optional<std::string>>> waiting;
  for (int i = 0; i < 4; ++i)
    waiting.push_back(std::async(std::launch::async, [&] { return queue.get(); }));
  queue.shut_down();
  for (auto& result : waiting) EXPECT_EQ(lookout::test::get(result), std::nullopt);
}

/// Reports the calls of size(), which a thread makes before it waits for an item.
class ReportingOrder : public FifoOrder<std::string> {
 public:
  explicit ReportingOrder(std::function<void()> on_size) : on_size_(std::move(on_size)) {}
  std::size_t size() const override {
    on_size_();
    return FifoOrder<std::string>::size();
  }

 private:
  const std::function<void()> on_size_;
};

TEST(QueueTest, AnItemAddedDuringProcessingWakesAWorker) {
  const auto main_thread = std::this_thread::get_id();
  std::atomic<bool> waits{false};
  Queue<std::string> queue({.order = std::make_unique<ReportingOrder>([&] {
                              if (std::this_thread::get_id() != main_thread) waits = true;
                            })});
  queue.add("a");
  ASSERT_EQ(queue.get(), "a");
  queue.add("a");
  auto other = std::async(std::launch::async, [&] { return queue.get(); });
  // It holds the mutex from that call until it waits.
  ASSERT_TRUE(test::eventually([&] { return waits.load(); }));
  queue.done("a");
  EXPECT_TRUE(test::eventually([&] { return queue.size() == 0; }, 10s));
  queue.shut_down();
  EXPECT_EQ(lookout::test::get(other), "a");
}

TEST(QueueTest, AStopEndsAWait) {
  Queue<std::string> queue;
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return queue.get(stop.get_token()); });
  stop.request_stop();
  EXPECT_EQ(lookout::test::get(waiting), std::nullopt);
  queue.add("a");
  EXPECT_EQ(queue.get(stop.get_token()), std::nullopt);
  EXPECT_EQ(queue.get(), "a") << "it was left for others";
}

TEST(QueueTest, ADrainWaitsForWaitingItems) {
  Queue<std::string> queue;
  queue.add("a");
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_FALSE(queue.shut_down_with_drain(stopped.get_token()));
  queue.done(*queue.get());
  EXPECT_TRUE(queue.shut_down_with_drain(stopped.get_token()));
}

TEST(QueueTest, ADrainWaitsForItemsInProcessing) {
  Queue<std::string> queue;
  queue.add("a");
  queue.add("b");
  const auto a = queue.get();
  auto drained = std::async(std::launch::async, [&] { return queue.shut_down_with_drain(); });
  ASSERT_TRUE(test::eventually([&] { return queue.shutting_down(); }));
  queue.done(*a);
  const auto b = queue.get();
  ASSERT_TRUE(b) << "what waits is still given out";
  EXPECT_EQ(queue.get(), std::nullopt);
  EXPECT_EQ(drained.wait_for(0s), std::future_status::timeout);
  queue.done(*b);
  EXPECT_TRUE(lookout::test::get(drained));
}

TEST(QueueTest, ADrainWaitsForItemsToBeProcessedAgain) {
  Queue<std::string> queue;
  queue.add("a");
  ASSERT_TRUE(queue.get());
  queue.add("a");
  auto drained = std::async(std::launch::async, [&] { return queue.shut_down_with_drain(); });
  ASSERT_TRUE(test::eventually([&] { return queue.shutting_down(); }));
  queue.done("a");
  ASSERT_EQ(queue.get(), "a");
  EXPECT_EQ(drained.wait_for(0s), std::future_status::timeout);
  queue.done("a");
  EXPECT_TRUE(lookout::test::get(drained));
}

TEST(QueueTest, AShutdownOrAStopEndsADrain) {
  Queue<std::string> queue;
  queue.add("a");
  ASSERT_TRUE(queue.get());
  EXPECT_FALSE(lookout::test::stopped(
      [&](const std::stop_token& stop) { return queue.shut_down_with_drain(stop); }));
  std::atomic<bool> begun{false};
  auto drained = std::async(std::launch::async, [&] {
    begun = true;
    return queue.shut_down_with_drain();
  });
  ASSERT_TRUE(test::eventually([&] { return begun.load(); }));
  while (drained.wait_for(1ms) == std::future_status::timeout) queue.shut_down();
  EXPECT_FALSE(lookout::test::get(drained));
}

TEST(QueueTest, ADrainOfAnEmptyQueueReturnsAtOnce) {
  Queue<std::string> queue;
  EXPECT_TRUE(queue.shut_down_with_drain());
}

// ------------------------------------------------------------------------------------ metrics

class QueueMetricsTest : public testing::Test {
 protected:
  metrics::Sample sample(const std::string& name) const {
    std::vector<metrics::Sample> all;
    queue_.collect(all);
    for (auto& one : all) {
      if (one.name != name) continue;
      EXPECT_EQ(one.labels, (metrics::Collector::Labels{{"name", "pods"}}));
      return one;
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }
  double value(const std::string& name) const { return sample(name).value; }

  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  Queue<std::string> queue_{{.name = "pods", .clock = clock_}};
};

TEST_F(QueueMetricsTest, FollowAnItem) {
  queue_.add("a");
  EXPECT_EQ(value("workqueue_adds_total"), 1);
  EXPECT_EQ(value("workqueue_depth"), 1);
  clock_->advance(50us);

  ASSERT_TRUE(queue_.get());
  EXPECT_EQ(value("workqueue_depth"), 0);
  EXPECT_EQ(sample("workqueue_queue_duration_seconds").count, 1u);
  EXPECT_DOUBLE_EQ(sample("workqueue_queue_duration_seconds").sum, 5e-5);

  // The item is added again before it is done: another unit of work.
  queue_.add("a");
  queue_.add("a");
  EXPECT_EQ(value("workqueue_adds_total"), 2);
  EXPECT_EQ(value("workqueue_depth"), 1);
  clock_->advance(2s);
  EXPECT_DOUBLE_EQ(value("workqueue_unfinished_work_seconds"), 2);
  EXPECT_DOUBLE_EQ(value("workqueue_longest_running_processor_seconds"), 2);

  queue_.done("a");
  EXPECT_EQ(value("workqueue_unfinished_work_seconds"), 0);
  EXPECT_DOUBLE_EQ(sample("workqueue_work_duration_seconds").sum, 2);
  clock_->advance(1s);
  ASSERT_TRUE(queue_.get());
  EXPECT_DOUBLE_EQ(sample("workqueue_queue_duration_seconds").sum, 3.00005)
      << "it waited from the moment it was added again";
}

TEST_F(QueueMetricsTest, SumUpConcurrentWork) {
  queue_.add("a");
  queue_.add("b");
  ASSERT_TRUE(queue_.get());
  clock_->advance(3s);
  ASSERT_TRUE(queue_.get());
  clock_->advance(1s);
  EXPECT_DOUBLE_EQ(value("workqueue_unfinished_work_seconds"), 5);
  EXPECT_DOUBLE_EQ(value("workqueue_longest_running_processor_seconds"), 4);
}

TEST_F(QueueMetricsTest, CountDurationsInBuckets) {
  queue_.add("a");
  clock_->advance(50us);
  ASSERT_TRUE(queue_.get());
  const auto duration = sample("workqueue_queue_duration_seconds");
  ASSERT_EQ(duration.buckets.size(), metrics::kWorkQueueBuckets.size());
  for (const auto& [bound, count] : duration.buckets) EXPECT_EQ(count, bound >= 5e-5 ? 1u : 0u);
}

TEST(QueueTest, WithoutANameThereAreNoMetrics) {
  Queue<std::string> queue;
  queue.add("a");
  std::vector<metrics::Sample> all;
  queue.collect(all);
  EXPECT_TRUE(all.empty());
}

// ---------------------------------------------------------------------------------- at a time

TEST(QueueTest, ManyThreadsAddAndProcess) {
  constexpr int kWorkers = 4;
  constexpr int kAdders = 4;
  constexpr int kItems = 50;
  for (const bool drain : {false, true}) {
    Queue<int> queue;
    std::array<std::atomic<int>, kItems> at_work{};
    std::array<std::atomic<int>, kItems> added{};
    std::array<std::atomic<int>, kItems> seen{};
    std::vector<std::jthread> workers;
    for (int i = 0; i < kWorkers; ++i) {
      workers.emplace_back([&] {
        while (const auto item = queue.get()) {
          const auto at = static_cast<std::size_t>(*item);
          EXPECT_EQ(at_work[at].fetch_add(1), 0) << "never twice at a time";
          seen[at] = added[at].load();
          at_work[at].fetch_sub(1);
          queue.done(*item);
        }
      });
    }
    {
      std::vector<std::jthread> adders;
      for (int i = 0; i < kAdders; ++i) {
        adders.emplace_back([&, i] {
          for (int n = 0; n < 2000; ++n) {
            const int item = (n * 7 + i) % kItems;
            ++added[static_cast<std::size_t>(item)];
            queue.add(item);
          }
        });
      }
    }
    if (drain) {
      EXPECT_TRUE(queue.shut_down_with_drain());
    } else {
      queue.shut_down();
    }
    workers.clear();
    for (std::size_t i = 0; i < kItems; ++i)
      EXPECT_EQ(seen[i], added[i]) << "the last addition was not followed by work";
  }
}

TEST(QueueTest, AnAdderMayOutliveItsQueue) {
  auto queue = std::make_unique<Queue<std::string>>();
  const auto add = queue->adder();
  const auto copy = add;
  add("a");
  copy("a");
  EXPECT_EQ(queue->size(), 1u);
  queue.reset();
  add("b");
}

}  // namespace
}  // namespace lookout::workqueue
