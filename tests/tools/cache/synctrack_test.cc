#include "lookout/tools/cache/synctrack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lookout/api/error.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/gate.h"
#include "tests/support/hold_up.h"

namespace lookout::cache {
namespace {

using test::Gate;
using test::HoldUp;

TEST(AsyncTrackerTest, IsSyncedWhenAllInitialItemsAreFinished) {
  AsyncTracker<std::string> tracker;
  EXPECT_FALSE(tracker.has_synced());
  tracker.start("x");
  tracker.start("y");
  tracker.finished("x");
  tracker.finished("y");
  EXPECT_FALSE(tracker.has_synced()) << "more may come";
  tracker.start("z");
  tracker.upstream_has_synced();
  EXPECT_FALSE(tracker.has_synced());
  tracker.finished("unknown");
  EXPECT_FALSE(tracker.has_synced());
  tracker.finished("z");
  EXPECT_TRUE(tracker.has_synced());
  tracker.start("later");
  EXPECT_TRUE(tracker.has_synced()) << "it stays so";
}

TEST(AsyncTrackerTest, IsSyncedWithoutItems) {
  AsyncTracker<int> tracker;
  tracker.upstream_has_synced();
  EXPECT_TRUE(tracker.has_synced());
}

TEST(AsyncTrackerTest, CanBeWaitedFor) {
  AsyncTracker<int> tracker;
  tracker.start(1);
  tracker.upstream_has_synced();
  auto waiting = std::async(std::launch::async, [&] { return tracker.wait_for_sync(); });
  tracker.finished(1);
  EXPECT_TRUE(lookout::test::get(waiting));
  AsyncTracker<int> never;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(never.wait_for_sync(stop.get_token()));
}

TEST(AsyncTrackerTest, ManyStartAndFinishAtATime) {
  AsyncTracker<int> tracker;
  for (int i = 0; i < 1000; ++i) tracker.start(i);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&tracker, t] {
      for (int i = t; i < 1000; i += 4) tracker.finished(i);
    });
  }
  tracker.upstream_has_synced();
  EXPECT_TRUE(tracker.wait_for_sync());
}

TEST(LazyTest, IsNeverOlderThanTheLastNotification) {
  std::atomic<int> reality{0};
  Lazy<int> lazy([&] { return reality.load(); });
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const int set = ++reality;
        lazy.notify();
        EXPECT_GE(lazy.get(), set);
      }
    });
  }
}

TEST(LazyTest, IsEvaluatedOnlyAfterANotification) {
  int evaluated = 0;
  Lazy<int> lazy([&] { return ++evaluated; });
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(lazy.get(), 1);
  EXPECT_EQ(lazy.get(), 1);
  lazy.notify();
  lazy.notify();
  EXPECT_EQ(lazy.get(), 2);
}

TEST(LazyTest, ConcurrentReadersShareAnEvaluation) {
  std::atomic<int> evaluated{0};
  HoldUp hold;
  Lazy<int> lazy([&] {
    hold.pass();
    return ++evaluated;
  });
  std::vector<std::future<int>> asking;
  for (int i = 0; i < 4; ++i)
    asking.push_back(std::async(std::launch::async, [&] { return lazy.get(); }));
  EXPECT_TRUE(hold.reached());
  hold.release();
  for (auto& result : asking) EXPECT_EQ(lookout::test::get(result), 1);
}

TEST(LazyTest, ANotificationDuringTheEvaluationIsNotLost) {
  std::atomic<int> reality{1};
  HoldUp hold;
  std::atomic<bool> slow{true};
  Lazy<int> lazy([&] {
    const int seen = reality;
    if (slow.exchange(false)) {
      hold.pass();
    }
    return seen;
  });
  auto early = std::async(std::launch::async, [&] { return lazy.get(); });
  EXPECT_TRUE(hold.reached());
  reality = 2;
  lazy.notify();
  EXPECT_EQ(lazy.get(), 2) << "it does not wait for what is out of date";
  hold.release();
  EXPECT_EQ(lookout::test::get(early), 1);
  EXPECT_EQ(lazy.get(), 2);
}

TEST(LazyTest, AReaderWaitsForAtMostOneEvaluation) {
  constexpr std::size_t kChanges = 10;
  std::atomic<std::size_t> reality{0};
  std::vector<Gate> begun(kChanges);
  std::vector<Gate> go_on(kChanges);
  std::atomic<std::size_t> evaluated{0};
  Lazy<std::size_t> lazy([&] {
    const std::size_t seen = reality;
    ++evaluated;
    begun[seen].open();
    EXPECT_TRUE(go_on[seen].wait());
    return seen;
  });
  std::vector<std::future<std::size_t>> asking;
  for (std::size_t i = 0; i < kChanges; ++i) {
    reality = i;
    lazy.notify();
    asking.push_back(std::async(std::launch::async, [&] { return lazy.get(); }));
    // None of the earlier evaluations has ended.
    ASSERT_TRUE(begun[i].wait());
  }
  for (std::size_t i = kChanges; i-- > 0;) {
    go_on[i].open();
    EXPECT_EQ(test::get(asking[i]), i);
  }
  EXPECT_EQ(lazy.get(), kChanges - 1);
  EXPECT_EQ(evaluated, kChanges) << "the work was done once for each change";
}

TEST(LazyTest, AFailureIsNotCached) {
  bool fails = true;
  Lazy<int> lazy([&] {
    if (fails) throw std::runtime_error("not now");
    return 7;
  });
  EXPECT_THROW(lazy.get(), std::runtime_error);
  fails = false;
  EXPECT_EQ(lazy.get(), 7);
}

TEST(LazyTest, NoLockIsHeldDuringTheEvaluation) {
  Lazy<int>* self = nullptr;
  int evaluated = 0;
  Lazy<int> lazy([&] {
    if (++evaluated == 1) {
      EXPECT_THROW(self->get(), InvalidArgument) << "it would wait for itself";
      self->notify();
      EXPECT_EQ(self->get(), 2) << "this is another one";
      return 1;
    }
    return evaluated;
  });
  self = &lazy;
  EXPECT_EQ(lazy.get(), 1);
  EXPECT_EQ(lazy.get(), 2);
}

TEST(LazyTest, AfterAFailureAWaitingReaderTriesAgain) {
  std::atomic<int> evaluated{0};
  HoldUp hold;
  Lazy<int> lazy([&] {
    if (++evaluated > 1) return 7;
    hold.pass();
    throw std::runtime_error("not now");
  });
  auto first = std::async(std::launch::async, [&] { return lazy.get(); });
  EXPECT_TRUE(hold.reached());
  auto second = std::async(std::launch::async, [&] { return lazy.get(); });
  hold.release();
  EXPECT_THROW(test::get(first), std::runtime_error);
  EXPECT_EQ(test::get(second), 7);
  EXPECT_EQ(evaluated, 2);
}

}  // namespace
}  // namespace lookout::cache
