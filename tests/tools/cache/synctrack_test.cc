#include "lookout/tools/cache/synctrack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/gate.h"

namespace lookout::cache {
namespace {

using test::Gate;

TEST(AsyncTrackerTest, IsSyncedOnceWhatCameFirstHasBeenDealtWith) {
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

TEST(AsyncTrackerTest, IsSyncedWithNothing) {
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
  EXPECT_TRUE(waiting.get());
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

TEST(LazyTest, IsNeverOlderThanTheLastNotice) {
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

TEST(LazyTest, IsWorkedOutOnlyWhenSomethingChanged) {
  int evaluated = 0;
  Lazy<int> lazy([&] { return ++evaluated; });
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(lazy.get(), 1);
  EXPECT_EQ(lazy.get(), 1);
  lazy.notify();
  lazy.notify();
  EXPECT_EQ(lazy.get(), 2);
}

TEST(LazyTest, ThoseWhoAskMeanwhileShareTheWork) {
  std::atomic<int> evaluated{0};
  Gate begun;
  Gate go_on;
  Lazy<int> lazy([&] {
    begun.open();
    EXPECT_TRUE(go_on.wait());
    return ++evaluated;
  });
  std::vector<std::future<int>> asking;
  for (int i = 0; i < 4; ++i)
    asking.push_back(std::async(std::launch::async, [&] { return lazy.get(); }));
  EXPECT_TRUE(begun.wait());
  go_on.open();
  for (auto& result : asking) EXPECT_EQ(result.get(), 1);
}

TEST(LazyTest, AChangeMeanwhileIsNotMissed) {
  std::atomic<int> reality{1};
  Gate begun;
  Gate go_on;
  std::atomic<bool> slow{true};
  Lazy<int> lazy([&] {
    const int seen = reality;
    if (slow.exchange(false)) {
      begun.open();
      EXPECT_TRUE(go_on.wait());
    }
    return seen;
  });
  auto early = std::async(std::launch::async, [&] { return lazy.get(); });
  EXPECT_TRUE(begun.wait());
  reality = 2;
  lazy.notify();
  EXPECT_EQ(lazy.get(), 2) << "it does not wait for what is out of date";
  go_on.open();
  EXPECT_EQ(early.get(), 1);
  EXPECT_EQ(lazy.get(), 2);
}

TEST(LazyTest, AFailureIsNotKept) {
  bool fails = true;
  Lazy<int> lazy([&] {
    if (fails) throw std::runtime_error("not now");
    return 7;
  });
  EXPECT_THROW(lazy.get(), std::runtime_error);
  fails = false;
  EXPECT_EQ(lazy.get(), 7);
}

}  // namespace
}  // namespace lookout::cache
