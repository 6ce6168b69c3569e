#include "lookout/tools/cache/delta_fifo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lookout/api/error.h"
#include "tests/support/objects.h"

namespace lookout::cache {
namespace {

using test::pod;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// A delta in a few letters: "+a/x@1" added, "~" updated, "-" deleted, "=" replaced, "." synced;
/// "?" behind it: the final state is unknown.
std::string text(const Delta& delta) {
  return "+~-=."[static_cast<int>(delta.type)] + delta.object.key() + "@" +
         std::string(delta.object.resource_version()) + (delta.final_state_unknown ? "?" : "");
}

class DeltaFifoTest : public testing::Test {
 protected:
  /// The changes of the next object, joined by blanks; "" if there is none.
  std::string pop(DeltaFifo& queue) {
    Deltas deltas;
    std::string out;
    if (!queue.pop(deltas, initial_)) return out;
    for (const auto& delta : deltas) out += (out.empty() ? "" : " ") + text(delta);
    return out;
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

TEST_F(DeltaFifoTest, CollectsTheChangesOfEachObjectInOrder) {
  queue_.add(pod("a/x", 1));
  queue_.add(pod("a/y", 2));
  queue_.update(pod("a/x", 3));
  queue_.remove(pod("a/x", 4));
  queue_.add(pod("a/x", 5));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(pop(queue_), "+a/x@1 ~a/x@3 -a/x@4 +a/x@5");
  EXPECT_EQ(pop(queue_), "+a/y@2");
  EXPECT_EQ(pop(queue_), "");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(DeltaFifoTest, ObjectsComeInTheOrderInWhichTheyWereFirstTouched) {
  for (const char* key : {"a/3", "a/1", "a/2"}) queue_.add(pod(key));
  queue_.update(pod("a/1"));
  EXPECT_EQ(pop(queue_), "+a/3@1");
  queue_.update(pod("a/3"));  // jumps no line
  EXPECT_EQ(pop(queue_), "+a/1@1 ~a/1@1");
  EXPECT_EQ(pop(queue_), "+a/2@1");
  EXPECT_EQ(pop(queue_), "~a/3@1");
}

TEST_F(DeltaFifoTest, ADeletionOfWhatNobodyKnowsIsIgnored) {
  queue_.remove(pod("a/x"));
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_TRUE(queue_.has_synced());
  store_.put(pod("a/y"));
  queue_.remove(pod("a/y", 2));
  EXPECT_EQ(pop(queue_), "-a/y@2");
  queue_.add(pod("a/z", 1));
  queue_.remove(pod("a/z", 2));
  EXPECT_EQ(pop(queue_), "+a/z@1 -a/z@2");
}

TEST_F(DeltaFifoTest, OfTwoDeletionsInARowTheFirstStays) {
  queue_.add(pod("a/x", 1));
  queue_.remove(pod("a/x", 2));
  queue_.remove(pod("a/x", 3));
  EXPECT_EQ(pop(queue_), "+a/x@1 -a/x@2");
}

TEST_F(DeltaFifoTest, ADeletionWithAKnownEndIsWorthMoreThanOneWithout) {
  store_.put(pod("a/x", 1));
  queue_.replace({});
  queue_.remove(pod("a/x", 3));
  EXPECT_EQ(pop(queue_), "-a/x@3");

  queue_.remove(pod("a/x", 4));
  queue_.replace({});
  EXPECT_EQ(pop(queue_), "-a/x@4");
}

TEST_F(DeltaFifoTest, DeletionsThatAreNotInARowAllStay) {
  queue_.add(pod("a/x", 1));
  queue_.remove(pod("a/x", 2));
  queue_.add(pod("a/x", 3));
  queue_.remove(pod("a/x", 4));
  EXPECT_EQ(pop(queue_), "+a/x@1 -a/x@2 +a/x@3 -a/x@4");
}

TEST_F(DeltaFifoTest, AListReplacesEverything) {
  store_.put(pod("a/in-both", 1));
  store_.put(pod("a/in-store", 2));
  store_.put(pod("a/changed-in-queue", 3));
  queue_.update(pod("a/changed-in-queue", 4));
  queue_.add(pod("a/in-queue", 5));
  queue_.replace({pod("a/in-both", 6), pod("a/new", 7)});
  EXPECT_THAT(pop_all(queue_), UnorderedElementsAre("=a/in-both@6", "=a/new@7", "-a/in-store@2?",
                                                    "~a/changed-in-queue@4 -a/changed-in-queue@4?",
                                                    "+a/in-queue@5 -a/in-queue@5?"));
}

TEST_F(DeltaFifoTest, WhatIsGoneGoesBeforeWhatHasCome) {
  store_.put(pod("a/gone", 1));
  store_.put(pod("a/stays", 1));
  queue_.replace({pod("a/new", 2), pod("a/stays", 3)});
  EXPECT_EQ(pop(queue_), "-a/gone@1?");
  EXPECT_EQ(pop(queue_), "=a/new@2");
  EXPECT_EQ(pop(queue_), "=a/stays@3");
}

/// What happens to an object that only the queue knows, and what is queued for it in the end.
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
  EXPECT_EQ(pop(queue_), GetParam().queued);
  EXPECT_EQ(pop(queue_), "");
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
                                 queue.add(pod("a/x", 2));
                                 queue.remove(pod("a/x", 3));
                                 queue.add(pod("a/x", 4));
                               },
                               "+a/x@2 -a/x@3 +a/x@4 -a/x@4?"}),
    [](const auto& test) { return test.param.name; });

TEST_F(DeltaFifoTest, AListAddsToWhatIsQueued) {
  queue_.add(pod("a/x", 1));
  queue_.replace({pod("a/x", 2), pod("a/x", 3)});
  EXPECT_EQ(pop(queue_), "+a/x@1 =a/x@2 =a/x@3");
}

TEST_F(DeltaFifoTest, AListDoesNotDeleteTwiceWhatIsBeingDeleted) {
  store_.put(pod("a/x", 1));
  queue_.remove(pod("a/x", 2));
  queue_.replace({});
  queue_.replace({});
  EXPECT_EQ(pop(queue_), "-a/x@2");
}

TEST_F(DeltaFifoTest, AResyncDeliversTheStoreAgainButNotWhatIsQueued) {
  store_.put(pod("a/x", 1));
  store_.put(pod("a/y", 1));
  store_.put(pod("a/z", 1));
  queue_.update(pod("a/x", 2));
  queue_.remove(pod("a/z", 2));
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

TEST_F(DeltaFifoTest, RefusesWhatHasNoKey) {
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
  // x, y and the deletion belong to the first list.
  EXPECT_THAT(initial, ElementsAre(true, true, true, false));
  EXPECT_THAT(synced, ElementsAre(false, false, true, true));
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

TEST_F(DeltaFifoTest, TransformsWhatComesInOnce) {
  int calls = 0;
  DeltaFifo queue(store_, [&](const api::Object& object) {
    ++calls;
    return pod(object.key(), std::string(object.resource_version()) + "00");
  });
  store_.put(pod("a/known", 100));
  queue.add(pod("a/x", 1));
  queue.update(pod("a/x", 2));
  queue.remove(pod("a/x", 3));
  EXPECT_EQ(calls, 3);
  queue.replace({pod("a/y", 4)});
  EXPECT_EQ(calls, 4) << "what comes from the store or the queue has been transformed before";
  EXPECT_THAT(pop_all(queue),
              ElementsAre("+a/x@100 ~a/x@200 -a/x@300", "-a/known@100?", "=a/y@400"));
  queue.resync();
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(pop(queue), ".a/known@100");
}

TEST_F(DeltaFifoTest, ATransformThatFailsLeavesTheObjectAsItCame) {
  DeltaFifo queue(store_, [](const api::Object& object) -> api::Object {
    if (object.name() == "throws") throw std::runtime_error("no");
    if (object.name() == "throws-7") throw 7;
    if (object.name() == "loses") return {};
    if (object.name() == "renames") return pod("b/other");
    return object;
  });
  for (const char* key : {"a/throws", "a/throws-7", "a/loses", "a/renames"}) queue.add(pod(key));
  EXPECT_THAT(pop_all(queue),
              ElementsAre("+a/throws@1", "+a/throws-7@1", "+a/loses@1", "+a/renames@1"));
}

TEST_F(DeltaFifoTest, WhatATransformMakesAgainCostsNoMemory) {
  DeltaFifo queue(store_, [](const api::Object& object) { return pod(object.key(), "7"); });
  const auto stored = pod("a/x", 7);
  store_.put(stored);
  queue.replace({pod("a/x", 8)});
  Deltas deltas;
  ASSERT_TRUE(queue.pop(deltas, initial_));
  EXPECT_TRUE(deltas.front().object.same(stored));
}

}  // namespace
}  // namespace lookout::cache
