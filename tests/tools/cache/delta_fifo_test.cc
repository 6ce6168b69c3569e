#include "lookout/tools/cache/delta_fifo.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lookout/api/error.h"
#include "tests/support/allocations.h"
#include "tests/support/matchers.h"
#include "tests/support/objects.h"
#include "tests/tools/cache/changes.h"

namespace lookout::cache {
namespace {

using test::pod;

/// A delta as text: "+a/x@1" added, "~" updated, "-" deleted, "=" replaced, "." synced; "?" at the
/// end: final state unknown.
std::string text(const Delta& delta) {
  return "+~-=."[static_cast<int>(delta.type)] + delta.object.key() + "@" +
         std::string(delta.object.resource_version()) + (delta.final_state_unknown ? "?" : "");
}

class DeltaFifoTest : public testing::Test {
 protected:
  /// The next change; "" if there is none.
  std::string pop(DeltaFifo& queue) {
    Delta delta;
    return queue.pop(delta, initial_) ? text(delta) : "";
  }
  std::vector<std::string> pop_all(DeltaFifo& queue) {
    std::vector<std::string> out;
    for (std::string next = pop(queue); !next.empty(); next = pop(queue)) out.push_back(next);
    return out;
  }

  Indexer store_;
  DeltaFifo queue_{store_};
  bool initial_ = false;
};

TEST_F(DeltaFifoTest, KeepsTheOrderOfArrivalAcrossObjects) {
  apply_changes(queue_, {"+a/x@1", "+a/y@2", "~a/x@3", "-a/y@4", "~a/x@5", "+a/y@6"});
  EXPECT_EQ(queue_.size(), 6u);
  EXPECT_THAT(pop_all(queue_),
              ElementsAre("+a/x@1", "+a/y@2", "~a/x@3", "-a/y@4", "~a/x@5", "+a/y@6"));
  EXPECT_EQ(pop(queue_), "");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(DeltaFifoTest, AnotherChangeKeepsTheOrder) {
  for (const char* key : {"a/3", "a/1", "a/2"}) queue_.add(pod(key));
  queue_.update(pod("a/1"));
  EXPECT_EQ(pop(queue_), "+a/3@1");
  queue_.update(pod("a/3"));
  EXPECT_THAT(pop_all(queue_), ElementsAre("+a/1@1", "+a/2@1", "~a/1@1", "~a/3@1"));
}

TEST_F(DeltaFifoTest, QueuesDeletionsOfUnknownObjects) {
  queue_.remove(pod("a/x"));
  EXPECT_TRUE(queue_.has_synced());
  queue_.remove(pod("a/x", 2));
  EXPECT_THAT(pop_all(queue_), ElementsAre("-a/x@1", "-a/x@2"));
}

TEST_F(DeltaFifoTest, AnEmptiedQueueFreesItsLargeBuffer) {
  std::vector<api::Object> list;
  for (int i = 0; i < 20'000; ++i) list.push_back(pod("a/" + std::to_string(i)));
  store_.put(pod("a/0"));
  queue_.replace_prepared(list);
  const std::size_t largest_before = test::take_largest_allocation();
  EXPECT_GE(largest_before, 20'000 * sizeof(Delta));
  pop_all(queue_);
  test::take_largest_allocation();
  // The next change allocates a small buffer.
  queue_.add(pod("a/x"));
  EXPECT_LT(test::take_largest_allocation(), 16384u);
  EXPECT_EQ(pop(queue_), "+a/x@1");
  const auto more = pod("a/y");
  EXPECT_EQ(test::allocations_of([&] {
              queue_.add(more);
              Delta delta;
              queue_.pop(delta, initial_);
            }),
            0u)
      << "the room for a few is kept";
}

TEST_F(DeltaFifoTest, AQueueThatIsNeverEmptyDoesNotGrow) {
  const auto x = pod("a/x", 1);
  const auto y = pod("a/y", 2);
  queue_.add(y);
  test::take_largest_allocation();
  for (int i = 0; i < 20'000; ++i) {
    queue_.add(i % 2 == 0 ? x : y);
    Delta delta;
    ASSERT_TRUE(queue_.pop(delta, initial_));
    ASSERT_TRUE(delta.object.same(i % 2 == 0 ? y : x));
  }
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_LT(test::take_largest_allocation(), 4096 * sizeof(Delta));
}

TEST_F(DeltaFifoTest, AListReplacesEverything) {
  store_.put(pod("a/in-both", 1));
  store_.put(pod("a/in-store", 2));
  store_.put(pod("a/changed-in-queue", 3));
  apply_changes(queue_, {"~a/changed-in-queue@4", "+a/in-queue@5"});
  queue_.replace({pod("a/in-both", 6), pod("a/new", 7)});
  const auto all = pop_all(queue_);
  ASSERT_EQ(all.size(), 7u);
  const auto part = [&](int begin, int end) {
    return std::vector<std::string>(all.begin() + begin, all.begin() + end);
  };
  EXPECT_THAT(part(0, 2), ElementsAre("~a/changed-in-queue@4", "+a/in-queue@5"));
  EXPECT_THAT(part(2, 5),
              UnorderedElementsAre("-a/in-store@2?", "-a/changed-in-queue@4?", "-a/in-queue@5?"));
  EXPECT_THAT(part(5, 7), ElementsAre("=a/in-both@6", "=a/new@7"));
}

TEST_F(DeltaFifoTest, AListQueuesDeletionsBeforeAdditions) {
  store_.put(pod("a/gone", 1));
  store_.put(pod("a/stays", 1));
  queue_.replace({pod("a/new", 2), pod("a/stays", 3)});
  EXPECT_EQ(pop(queue_), "-a/gone@1?");
  EXPECT_EQ(pop(queue_), "=a/new@2");
  EXPECT_EQ(pop(queue_), "=a/stays@3");
}

/// Changes of an object that is in the queue and not in the store, and the deltas that result.
struct OnlyQueued {
  const char* name;
  std::function<void(DeltaFifo&)> happens;
  const char* queued;
};
class DeltaFifoOnlyQueuedTest : public DeltaFifoTest,
                                public testing::WithParamInterface<OnlyQueued> {};

TEST_P(DeltaFifoOnlyQueuedTest, AListThatLacksItDeletesItOnce) {
  GetParam().happens(queue_);
  queue_.replace({});
  std::string queued;
  for (const auto& change : pop_all(queue_)) queued += (queued.empty() ? "" : " ") + change;
  EXPECT_EQ(queued, GetParam().queued);
}

INSTANTIATE_TEST_SUITE_P(
    , DeltaFifoOnlyQueuedTest,
    testing::Values(OnlyQueued{"Added", [](DeltaFifo& queue) { queue.add(pod("a/x", 2)); },
                               "+a/x@2 -a/x@2?"},
                    OnlyQueued{"AddedAndListed",
                               [](DeltaFifo& queue) {
                                 queue.add(pod("a/x", 2));
                                 queue.replace({pod("a/x", 2)});
                                 queue.replace({pod("a/x", 2)});
                               },
                               "+a/x@2 =a/x@2 =a/x@2 -a/x@2?"},
                    OnlyQueued{"Deleted",
                               [](DeltaFifo& queue) {
                                 queue.add(pod("a/x", 2));
                                 queue.remove(pod("a/x", 3));
                               },
                               "+a/x@2 -a/x@3"},
                    OnlyQueued{"DeletedByAListBefore",
                               [](DeltaFifo& queue) {
                                 queue.add(pod("a/x", 2));
                                 queue.replace({});
                               },
                               "+a/x@2 -a/x@2?"},
                    OnlyQueued{"DeletedAndAddedAgain",
                               [](DeltaFifo& queue) {
                                 apply_changes(queue, {"+a/x@2", "-a/x@3", "+a/x@4"});
                               },
                               "+a/x@2 -a/x@3 +a/x@4 -a/x@4?"}),
    [](const auto& test) { return test.param.name; });

TEST_F(DeltaFifoTest, AListIsQueuedBehindEarlierChanges) {
  queue_.add(pod("a/x", 1));
  queue_.replace({pod("a/x", 2), pod("a/x", 3)});
  EXPECT_THAT(pop_all(queue_), ElementsAre("+a/x@1", "=a/x@2", "=a/x@3"));
}

TEST_F(DeltaFifoTest, AListDoesNotRepeatAQueuedDeletion) {
  store_.put(pod("a/x", 1));
  queue_.remove(pod("a/x", 2));
  queue_.replace({});
  queue_.replace({});
  EXPECT_THAT(pop_all(queue_), ElementsAre("-a/x@2"));
}

TEST_F(DeltaFifoTest, AListAfterADeletionAddsTheObjectAgain) {
  store_.put(pod("a/x", 1));
  queue_.remove(pod("a/x", 2));
  queue_.replace({pod("a/x", 3)});
  EXPECT_THAT(pop_all(queue_), ElementsAre("-a/x@2", "=a/x@3"));
}

TEST_F(DeltaFifoTest, AResyncSkipsObjectsWithQueuedChanges) {
  store_.put(pod("a/x", 1));
  store_.put(pod("a/y", 1));
  store_.put(pod("a/z", 1));
  apply_changes(queue_, {"~a/x@2", "-a/z@2"});
  queue_.resync();
  EXPECT_THAT(pop_all(queue_), UnorderedElementsAre("~a/x@2", "-a/z@2", ".a/y@1"));
  queue_.resync();
  queue_.resync();
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_THAT(pop_all(queue_), UnorderedElementsAre(".a/x@1", ".a/y@1", ".a/z@1"));
}

TEST_F(DeltaFifoTest, AResyncOfAnEmptyStoreDoesNothing) {
  queue_.resync();
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_FALSE(queue_.has_synced());
}

TEST_F(DeltaFifoTest, RejectsObjectsWithoutAKey) {
  EXPECT_THROW(queue_.add(pod("a/")), InvalidArgument);
  EXPECT_THROW(queue_.update(pod("a/")), InvalidArgument);
  EXPECT_THROW(queue_.remove(pod("a/")), InvalidArgument);
  EXPECT_EQ(queue_.size(), 0u);
}

// ------------------------------------------------------------------------------------ synced

TEST_F(DeltaFifoTest, IsSyncedOnceTheFirstListHasBeenTakenOut) {
  EXPECT_FALSE(queue_.has_synced());
  store_.put(pod("a/gone"));
  queue_.replace({pod("a/x"), pod("a/y"), pod("a/y", 2)});
  EXPECT_FALSE(queue_.has_synced());
  queue_.add(pod("a/later"));
  std::vector<bool> initial;
  std::vector<bool> synced;
  while (!pop(queue_).empty()) {
    initial.push_back(initial_);
    synced.push_back(queue_.has_synced());
  }
  // The deletion, x, y and y again belong to the first list.
  EXPECT_THAT(initial, ElementsAre(true, true, true, true, false));
  EXPECT_THAT(synced, ElementsAre(false, false, false, true, true));
}

TEST_F(DeltaFifoTest, IsSyncedAtOnceByAnEmptyList) {
  queue_.replace({});
  EXPECT_TRUE(queue_.has_synced());
}

TEST_F(DeltaFifoTest, StaysSynced) {
  queue_.replace({});
  queue_.replace({pod("a/x")});
  EXPECT_TRUE(queue_.has_synced());
  EXPECT_EQ(pop(queue_), "=a/x@1");
  EXPECT_FALSE(initial_);
}

using Change = void (DeltaFifo::*)(const api::Object&);
class DeltaFifoFirstChangeTest : public DeltaFifoTest,
                                 public testing::WithParamInterface<Change> {};
TEST_P(DeltaFifoFirstChangeTest, ChangesBeforeAnyListCountAsSynced) {
  store_.put(pod("a/x"));
  (queue_.*GetParam())(pod("a/x", 2));
  EXPECT_TRUE(queue_.has_synced());
  queue_.replace({pod("a/x", 3)});
  pop(queue_);
  EXPECT_FALSE(initial_);
}
INSTANTIATE_TEST_SUITE_P(, DeltaFifoFirstChangeTest,
                         testing::Values(&DeltaFifo::add, &DeltaFifo::update, &DeltaFifo::remove));

// --------------------------------------------------------------------------------- transform

TEST_F(DeltaFifoTest, TransformsEachObjectOnce) {
  int calls = 0;
  DeltaFifo queue(store_, [&](const api::Object& object) {
    ++calls;
    return pod(object.key(), std::string(object.resource_version()) + "00");
  });
  store_.put(pod("a/known", 100));
  apply_changes(queue, {"+a/x@1", "~a/x@2", "-a/x@3"});
  EXPECT_EQ(calls, 3);
  queue.replace({pod("a/y", 4)});
  EXPECT_EQ(calls, 4) << "what comes from the store or the queue has been transformed before";
  EXPECT_THAT(pop_all(queue),
              ElementsAre("+a/x@100", "~a/x@200", "-a/x@300", "-a/known@100?", "=a/y@400"));
  queue.resync();
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(pop(queue), ".a/known@100");
}

/// A way in which a transform can fail.
struct Failure {
  const char* name;
  api::Object (*transform)(const api::Object&);
};
class DeltaFifoTransformTest : public DeltaFifoTest, public testing::WithParamInterface<Failure> {
 protected:
  /// Fails for objects that are annotated "bad".
  DeltaFifo queue_{store_, [](const api::Object& object) -> api::Object {
                     if (object.annotations()["note"].as_string() != "bad") return object;
                     return GetParam().transform(object);
                   }};
  static api::Object bad(std::string_view key, std::size_t version) {
    return pod(key, version, {{}, {}, "bad"});
  }
};

TEST_P(DeltaFifoTransformTest, AFailureDropsTheChange) {
  queue_.add(bad("a/x", 1));
  queue_.add(pod("a/y", 2));
  queue_.update(bad("a/y", 3));
  EXPECT_THAT(pop_all(queue_), ElementsAre("+a/y@2"));
  EXPECT_EQ(queue_.transform_failures(), 2u);
}

TEST_P(DeltaFifoTransformTest, AFailureInAListKeepsTheKnownState) {
  const auto known = pod("a/known", 1);
  store_.put(known);
  EXPECT_TRUE(queue_.prepare(bad("a/known", 2)).same(known));
  EXPECT_FALSE(queue_.prepare(bad("a/new", 2)));
  queue_.add(pod("a/queued", 1));
  queue_.replace({bad("a/known", 2), bad("a/new", 2), bad("a/queued", 2), pod("a/good", 2)});
  EXPECT_THAT(pop_all(queue_),
              ElementsAre("+a/queued@1", "=a/known@1", "=a/queued@1", "=a/good@2"));
  queue_.replace_prepared({api::Object{}, known});
  EXPECT_THAT(pop_all(queue_), ElementsAre("=a/known@1"));
}

TEST_P(DeltaFifoTransformTest, ADeletionHasTheLastKnownState) {
  store_.put(pod("a/x", 1));
  queue_.update(pod("a/x", 2));
  queue_.remove(bad("a/x", 3));
  queue_.remove(bad("a/x", 4));
  queue_.remove(bad("a/unknown", 5));
  EXPECT_THAT(pop_all(queue_), ElementsAre("~a/x@2", "-a/x@2?"));
}

INSTANTIATE_TEST_SUITE_P(
    , DeltaFifoTransformTest,
    testing::Values(
        Failure{"Throws",
                [](const api::Object&) -> api::Object { throw std::runtime_error("no"); }},
        Failure{"ThrowsNoException", [](const api::Object&) -> api::Object { throw 7; }},
        Failure{"ReturnsNothing", [](const api::Object&) { return api::Object{}; }},
        Failure{"Renames", [](const api::Object&) { return pod("b/other"); }}),
    [](const auto& test) { return test.param.name; });

TEST_F(DeltaFifoTest, AnEqualTransformResultCostsNoMemory) {
  DeltaFifo queue(store_, [](const api::Object& object) { return pod(object.key(), "7"); });
  const auto stored = pod("a/x", 7);
  store_.put(stored);
  queue.replace({pod("a/x", 8)});
  Delta delta;
  ASSERT_TRUE(queue.pop(delta, initial_));
  EXPECT_TRUE(delta.object.same(stored));
}

TEST_F(DeltaFifoTest, AMissedDeletionHasTheLastKnownState) {
  store_.put(pod("a/x", 1));
  queue_.remove_missed(pod("a/x", 1));
  queue_.update(pod("a/y", 2));
  queue_.remove_missed(pod("a/y", 2));
  EXPECT_THAT(pop_all(queue_), ElementsAre("-a/x@1?", "~a/y@2", "-a/y@2?"));
}

TEST_F(DeltaFifoTest, AMissedDeletionIsTransformed) {
  DeltaFifo queue(store_, [](const api::Object& object) {
    if (object.name() == "bad") throw std::runtime_error("no");
    return pod(object.key(), "7");
  });
  store_.put(pod("a/bad", 3));
  for (const char* key : {"a/x", "a/bad", "b/bad"}) queue.remove_missed(pod(key, 1));
  EXPECT_THAT(pop_all(queue), ElementsAre("-a/x@7?", "-a/bad@3?"));
}

TEST_F(DeltaFifoTest, ManyMissedDeletionsAreNotComparedWithEachOther) {
  constexpr std::size_t kMany = 1000;
  std::size_t calls = 0;
  Indexer store(
      [&calls](const api::Object& object) {
        ++calls;
        return object.key();
      },
      Indexers{});
  DeltaFifo queue(store);
  for (std::size_t i = 0; i < kMany; ++i) queue.remove_missed(pod("a/" + std::to_string(i)));
  EXPECT_EQ(queue.size(), kMany);
  EXPECT_LE(calls, 4 * kMany);
}

TEST_F(DeltaFifoTest, ManyFailedTransformsAreNotComparedWithEachOther) {
  constexpr std::size_t kMany = 1000;
  std::size_t calls = 0;
  Indexer store(
      [&calls](const api::Object& object) {
        ++calls;
        return object.key();
      },
      Indexers{});
  DeltaFifo queue(store, [](const api::Object& object) -> api::Object {
    return object.resource_version() == "2" ? api::Object{} : object;
  });
  std::vector<api::Object> list;
  for (std::size_t i = 0; i < kMany; ++i) {
    const std::string key = "a/" + std::to_string(i);
    queue.add(pod(key, 1));
    list.push_back(pod(key, 2));
  }
  for (const auto& object : list) queue.remove(object);
  EXPECT_EQ(queue.size(), 2 * kMany);
  queue.replace(list);
  EXPECT_LE(calls, 50 * kMany);
}

TEST_F(DeltaFifoTest, AFailedTransformFindsTheStateInAHalfEmptiedQueue) {
  DeltaFifo queue(store_, [](const api::Object& object) -> api::Object {
    return object.resource_version() == "9" ? api::Object{} : object;
  });
  apply_changes(queue, {"+a/x@1", "+a/y@2", "-a/y@9"});
  EXPECT_EQ(pop(queue), "+a/x@1");
  store_.put(pod("a/x", 1));
  apply_changes(queue, {"-a/x@9", "~a/z@3", "-a/z@9"});
  EXPECT_THAT(pop_all(queue), ElementsAre("+a/y@2", "-a/y@2?", "-a/x@1?", "~a/z@3", "-a/z@3?"));
  // More than the queue keeps of removed changes.
  for (int i = 0; i < 3000; ++i) {
    queue.add(pod("b/" + std::to_string(i), 1));
    if (i % 1000 == 0) apply_changes(queue, {"-a/unknown@9"});
  }
  for (int i = 0; i < 2000; ++i) pop(queue);
  apply_changes(queue, {"-b/2999@9", "-b/2500@9", "-b/1999@9"});
  for (int i = 0; i < 1000; ++i) pop(queue);
  EXPECT_THAT(pop_all(queue), ElementsAre("-b/2999@1?", "-b/2500@1?"));
}

}  // namespace
}  // namespace lookout::cache
