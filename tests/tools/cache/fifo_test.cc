#include "lookout/tools/cache/fifo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <latch>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/tools/cache/heap.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/matchers.h"
#include "tests/support/objects.h"
#include "tests/support/stopped.h"
#include "tests/tools/cache/changes.h"

namespace lookout::cache {
namespace {

using test::pod;

std::string take(Fifo& fifo) {
  const auto item = fifo.pop();
  if (!item) return "nothing";
  return item->object.key() + "@" + std::string(item->object.resource_version()) +
         (item->initial ? "i" : "");
}

TEST(FifoTest, CoalescesToTheLatestStateInTheFirstPlace) {
  Fifo fifo;
  apply_changes(fifo, {"+a/foo@10", "+a/bar@1", "~a/foo@11", "+a/foo@13", "+a/zab@30"});
  EXPECT_EQ(take(fifo), "a/foo@13");
  fifo.add(pod("a/foo", 14));  // it is queued again
  EXPECT_EQ(take(fifo), "a/bar@1");
  EXPECT_EQ(take(fifo), "a/zab@30");
  EXPECT_EQ(take(fifo), "a/foo@14");
  EXPECT_EQ(fifo.size(), 0u);
}

TEST(FifoTest, ListsAndGetsQueuedObjects) {
  Fifo fifo;
  fifo.add(pod("a/foo", 10));
  fifo.update(pod("a/foo", 15));
  EXPECT_THAT(fifo.list(), ElementsAre(pod("a/foo", 15)));
  EXPECT_THAT(fifo.list_keys(), ElementsAre("a/foo"));
  EXPECT_EQ(fifo.get_by_key("a/foo"), pod("a/foo", 15));
  take(fifo);
  EXPECT_FALSE(fifo.get_by_key("a/foo"));
  EXPECT_THAT(fifo.list(), IsEmpty());
}

TEST(FifoTest, AListReplacesQueuedObjects) {
  Fifo fifo;
  fifo.add(pod("a/gone", 1));
  fifo.add(pod("a/foo", 10));
  fifo.replace({pod("a/new", 5), pod("a/foo", 15)});
  EXPECT_EQ(take(fifo), "a/foo@15") << "it had its place";
  EXPECT_EQ(take(fifo), "a/new@5");
  EXPECT_EQ(fifo.size(), 0u);
}

TEST(FifoTest, RemovedObjectsAreNotPopped) {
  Fifo fifo;
  apply_changes(fifo, {"+a/x@1", "+a/y@2", "-a/x@3"});
  EXPECT_EQ(take(fifo), "a/y@2");
}

TEST(FifoTest, IsSyncedOnceTheFirstListHasBeenTakenOut) {
  Fifo fifo;
  EXPECT_FALSE(fifo.has_synced());
  fifo.replace({pod("a/x", 1), pod("a/y", 2)});
  fifo.add(pod("a/z", 3));
  EXPECT_FALSE(fifo.has_synced());
  EXPECT_EQ(take(fifo), "a/x@1i");
  EXPECT_FALSE(fifo.has_synced());
  EXPECT_EQ(take(fifo), "a/y@2i");
  EXPECT_TRUE(fifo.has_synced());
  EXPECT_EQ(take(fifo), "a/z@3");
  fifo.replace({pod("a/x", 1)});
  EXPECT_TRUE(fifo.has_synced());
}

TEST(FifoTest, IsSyncedWithoutARemovedObject) {
  Fifo fifo;
  fifo.replace({pod("a/x", 1), pod("a/y", 2)});
  fifo.remove(pod("a/x", 1));
  EXPECT_EQ(take(fifo), "a/y@2i");
  EXPECT_TRUE(fifo.has_synced());
}

TEST(FifoTest, IsSyncedByAnEmptyListOrAnythingElse) {
  Fifo empty;
  empty.replace({});
  EXPECT_TRUE(empty.has_synced());
  Fifo added;
  added.add(pod("a/x", 1));
  EXPECT_TRUE(added.has_synced());
}

TEST(FifoTest, RejectsObjectsWithoutAKey) {
  Fifo fifo;
  EXPECT_THROW(fifo.add(pod("a/")), InvalidArgument);
  EXPECT_THROW(fifo.replace({pod("a/")}), InvalidArgument);
  EXPECT_EQ(fifo.size(), 0u);
}

TEST(FifoTest, ClosingEndsAllWaiting) {
  Fifo fifo;
  constexpr int kThreads = 10;
  std::latch started(kThreads);
  std::vector<std::future<std::string>> waiting;
  for (int i = 0; i < kThreads; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] {
      started.count_down();
      return take(fifo);
    }));
  }
  lookout::test::wait_for(started);
  EXPECT_FALSE(fifo.closed());
  fifo.close();
  EXPECT_TRUE(fifo.closed());
  for (auto& result : waiting) EXPECT_EQ(lookout::test::get(result), "nothing");
  fifo.add(pod("a/x", 1));
  EXPECT_EQ(fifo.size(), 0u);
}

TEST(FifoTest, AStopEndsAWait) {
  Fifo fifo;
  EXPECT_FALSE(lookout::test::stopped([&](const std::stop_token& stop) { return fifo.pop(stop); }));
}

TEST(FifoTest, KeepsTheOrderOfEachThread) {
  constexpr int kAmount = 500;
  Fifo fifo;
  std::vector<std::jthread> threads;
  for (const std::string ns : {"a", "b"}) {
    threads.emplace_back([&fifo, ns] {
      for (int i = 1; i <= kAmount; ++i)
        fifo.add(pod(ns + "/" + std::to_string(i), static_cast<std::size_t>(i)));
    });
  }
  std::map<std::string, int> last;
  for (int i = 0; i < 2 * kAmount; ++i) {
    const auto item = fifo.pop();
    ASSERT_TRUE(item);
    const int version = std::stoi(std::string(item->object.resource_version()));
    EXPECT_EQ(version, ++last[std::string(item->object.ns())]);
  }
}

// --------------------------------------------------------------------------------------- heap

struct Thing {
  std::string name;
  int urgency;
  bool operator==(const Thing&) const = default;
};

class HeapTest : public testing::Test {
 protected:
  std::string take() {
    const auto thing = heap_.pop();
    return thing ? thing->name + "@" + std::to_string(thing->urgency) : "nothing";
  }
  void add(std::vector<Thing> things) {
    for (auto& thing : things) heap_.add(std::move(thing));
  }
  Heap<Thing> heap_{[](const Thing& thing) { return thing.name; },
                    [](const Thing& a, const Thing& b) { return a.urgency < b.urgency; }};
};

TEST_F(HeapTest, PopsTheSmallestItemFirst) {
  add({{"foo", 10}, {"bar", 1}, {"baz", 11}, {"zab", 30}});
  heap_.add({"foo", 13});  // replaces the earlier one
  EXPECT_EQ(take(), "bar@1");
  EXPECT_EQ(take(), "baz@11");
  EXPECT_FALSE(heap_.remove("baz"));
  heap_.add({"foo", 14});
  EXPECT_EQ(take(), "foo@14");
  EXPECT_EQ(take(), "zab@30");
}

TEST_F(HeapTest, ABulkAddWakesAWaiterWithTheFirstItem) {
  auto first = std::async(std::launch::async, [&] { return take(); });
  heap_.bulk_add({{"c", 3}, {"a", 1}, {"b", 2}});
  EXPECT_EQ(lookout::test::get(first), "a@1");
  EXPECT_EQ(take(), "b@2");
}

TEST_F(HeapTest, AddIfNotPresentKeepsExistingItems) {
  heap_.add_if_not_present({"foo", 10});
  heap_.add_if_not_present({"bar", 1});
  heap_.add_if_not_present({"foo", 13});
  EXPECT_EQ(heap_.size(), 2u);
  EXPECT_EQ(take(), "bar@1");
  EXPECT_EQ(take(), "foo@10");
  heap_.add_if_not_present({"bar", 14});
  EXPECT_EQ(take(), "bar@14");
}

TEST_F(HeapTest, RemovesByKey) {
  add({{"foo", 10}, {"bar", 1}, {"bal", 31}, {"baz", 11}});
  EXPECT_TRUE(heap_.remove("bar"));
  EXPECT_EQ(take(), "foo@10");
  EXPECT_FALSE(heap_.remove("nobody"));
  EXPECT_TRUE(heap_.remove("bal"));
  EXPECT_EQ(take(), "baz@11");
  EXPECT_EQ(heap_.size(), 0u);
}

TEST_F(HeapTest, AnUpdateFindsItsPlace) {
  add({{"foo", 10}, {"bar", 1}, {"bal", 31}, {"baz", 11}});
  heap_.update({"baz", 0});
  EXPECT_EQ(take(), "baz@0");
  heap_.update({"bar", 100});
  EXPECT_THAT(heap_.list_keys(), ElementsAre("foo", "bal", "bar"));
}

TEST_F(HeapTest, ListsAndGetsItems) {
  EXPECT_THAT(heap_.list(), IsEmpty());
  EXPECT_THAT(heap_.list_keys(), IsEmpty());
  add({{"foo", 10}, {"bar", 1}});
  EXPECT_EQ(heap_.get("foo"), (Thing{"foo", 10}));
  EXPECT_EQ(heap_.get("nobody"), std::nullopt);
  EXPECT_THAT(heap_.list(), ElementsAre(Thing{"bar", 1}, Thing{"foo", 10}));
  EXPECT_THAT(heap_.list_keys(), UnorderedElementsAre("foo", "bar"));
}

TEST_F(HeapTest, ClosingEndsWaiting) {
  auto waiting = std::async(std::launch::async, [&] { return take(); });
  EXPECT_FALSE(heap_.closed());
  heap_.close();
  EXPECT_TRUE(heap_.closed());
  EXPECT_EQ(lookout::test::get(waiting), "nothing");
  EXPECT_THROW(heap_.add({"x", 1}), InvalidArgument);
  EXPECT_THROW(heap_.add_if_not_present({"x", 1}), InvalidArgument);
  EXPECT_THROW(heap_.bulk_add({{"x", 1}}), InvalidArgument);
}

TEST_F(HeapTest, KeepsTheOrderWithConcurrentWriters) {
  constexpr int kAmount = 500;
  {
    std::vector<std::jthread> threads;
    for (const std::string side : {"a", "b"}) {
      threads.emplace_back([&, side] {
        for (int i = kAmount; i > 0; --i) heap_.add({side + std::to_string(i), i});
      });
    }
  }
  int last = 0;
  for (int i = 0; i < 2 * kAmount; ++i) {
    const auto thing = heap_.pop();
    ASSERT_TRUE(thing);
    EXPECT_GE(thing->urgency, last);
    last = thing->urgency;
  }
}

TEST_F(HeapTest, EqualItemsArePoppedInArrivalOrder) {
  add({{"c", 1}, {"a", 1}, {"b", 1}, {"first", 0}});
  heap_.add({"c", 1});  // arrives again
  EXPECT_EQ(take(), "first@0");
  EXPECT_EQ(take(), "a@1");
  EXPECT_EQ(take(), "b@1");
  EXPECT_EQ(take(), "c@1");
}

TEST_F(HeapTest, ABulkAddKeepsTheLastItemOfAKey) {
  heap_.add({"a", 9});
  heap_.bulk_add({{"a", 1}, {"b", 2}, {"a", 3}});
  EXPECT_THAT(heap_.list(), ElementsAre(Thing{"b", 2}, Thing{"a", 3}));
  EXPECT_EQ(heap_.size(), 2u);
}

TEST(HeapLockTest, ItsOrderMayUseTheHeap) {
  Heap<Thing>* self = nullptr;
  Heap<Thing> heap([](const Thing& thing) { return thing.name; },
                   [&](const Thing& a, const Thing& b) {
                     EXPECT_TRUE(self->get("a"));
                     EXPECT_GE(self->size(), 1u);
                     if (b.urgency == 2) self->remove("gone");
                     return a.urgency < b.urgency;
                   });
  self = &heap;
  for (const Thing& thing : {Thing{"a", 1}, Thing{"gone", 9}, Thing{"b", 2}, Thing{"c", 3}})
    heap.add(thing);
  EXPECT_THAT(heap.list_keys(), ElementsAre("a", "b", "c"));
}

/// Another change comes first in each round of a bulk_add(), as long as it is not held up.
TEST(HeapLockTest, ABulkAddEndsWhileAnotherThreadChangesTheHeap) {
  static thread_local bool adds_in_bulk = false;
  std::atomic<std::size_t> changes{0};
  Heap<Thing> heap(
      [](const Thing& thing) { return thing.name; },
      [&](const Thing& a, const Thing& b) {
        const std::size_t before = changes;
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
        while (adds_in_bulk && changes == before && std::chrono::steady_clock::now() < deadline)
          std::this_thread::yield();
        return a.urgency < b.urgency;
      });
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    for (int i = 1; !done; ++i) {
      heap.add({"busy", i});
      ++changes;
    }
  });
  auto added = std::async(std::launch::async, [&] {
    adds_in_bulk = true;
    heap.bulk_add({{"a", 1}, {"b", 2}});
  });
  lookout::test::wait_for(added);
  done = true;
  writer.join();
  EXPECT_TRUE(heap.get("a"));
  EXPECT_TRUE(heap.get("b"));
}

TEST_F(HeapTest, ManyChangeItAtATime) {
  constexpr int kAmount = 300;
  const auto name = [](int t, int i) { return std::to_string(t) + "/" + std::to_string(i); };
  const auto at_a_time = [](auto work) {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back([work, t] { work(t); });
  };
  at_a_time([&](int t) {
    for (int i = 0; i < kAmount; ++i) {
      heap_.add({name(t, i), i});
      heap_.update({name(t, i), kAmount - i});
      if (i % 3 == 0) {
        EXPECT_TRUE(heap_.remove(name(t, i)));
      }
    }
  });
  EXPECT_EQ(heap_.size(), 2u * kAmount);
  std::atomic<int> taken{0};
  at_a_time([&](int t) {
    for (int i = kAmount; i < 2 * kAmount; ++i) {
      heap_.add({name(t, i), i});
      taken += heap_.pop() ? 1 : 0;
    }
  });
  EXPECT_EQ(taken, 3 * kAmount);
  const auto left = heap_.list();
  EXPECT_EQ(left.size(), 2u * kAmount);
  EXPECT_EQ(left.size(), heap_.size());
  EXPECT_TRUE(std::is_sorted(left.begin(), left.end(),
                             [](const Thing& a, const Thing& b) { return a.urgency < b.urgency; }));
  for (const auto& thing : left) EXPECT_EQ(heap_.get(thing.name), thing);
}

}  // namespace
}  // namespace lookout::cache
