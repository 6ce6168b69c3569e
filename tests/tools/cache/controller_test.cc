#include "lookout/tools/cache/controller.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/matchers.h"
#include "tests/support/objects.h"
#include "tests/tools/cache/changes.h"

namespace lookout::cache {
namespace {

using test::pod;

/// "+a/x@2" added ("i": initial), "~a/x@1>2" updated ("s": a sync), "-a/x@2" deleted ("?": final
/// state unknown).
std::string text(const Notification& n) {
  const auto version = [](const api::Object& o) { return std::string(o.resource_version()); };
  switch (n.type) {
    case Notification::Type::kAdd:
      return "+" + n.object.key() + "@" + version(n.object) + (n.initial ? "i" : "");
    case Notification::Type::kUpdate:
      return "~" + n.object.key() + "@" + version(n.before) + ">" + version(n.object) +
             (n.sync ? "s" : "");
    case Notification::Type::kDelete:
      return "-" + n.object.key() + "@" + version(n.object) + (n.final_state_unknown ? "?" : "");
  }
  return {};
}

class ControllerTest : public testing::Test {
 protected:
  /// Applies the queued changes; returns the notifications.
  std::vector<std::string> flush(const std::string& resource_version = "1") {
    told_.clear();
    flushes_ = 0;
    controller_.flush(resource_version);
    EXPECT_EQ(flushes_, 1);
    return told_;
  }
  void start_with(std::vector<api::Object> objects) {
    controller_.replace(std::move(objects), "1");
    flush();
  }

  Indexer store_;
  std::vector<std::string> told_;
  int flushes_ = 0;
  Controller controller_{store_, {}, [this](std::vector<Notification> notifications) {
                           ++flushes_;
                           for (const auto& n : notifications) told_.push_back(text(n));
                         }};
};

TEST_F(ControllerTest, TheFirstListIsInitial) {
  EXPECT_FALSE(controller_.has_synced());
  controller_.replace({pod("a/x"), pod("a/y")}, "1");
  EXPECT_EQ(store_.size(), 0u) << "nothing happens before it is complete";
  EXPECT_THAT(flush("7"), UnorderedElementsAre("+a/x@1i", "+a/y@1i"));
  EXPECT_TRUE(controller_.has_synced());
  EXPECT_EQ(store_.resource_version(), "7");
  controller_.add(pod("a/z"));
  EXPECT_THAT(flush(), ElementsAre("+a/z@1"));
}

TEST_F(ControllerTest, ChangesAfterTheFirstListAreSeparateNotifications) {
  controller_.replace({pod("a/x", 1), pod("a/y", 1), pod("a/z", 1)}, "1");
  controller_.update(pod("a/x", 2));
  controller_.remove(pod("a/y", 3));
  EXPECT_FALSE(controller_.has_synced());
  EXPECT_THAT(flush(), UnorderedElementsAre("+a/x@1i", "~a/x@1>2", "+a/y@1i", "-a/y@3", "+a/z@1i"));
  EXPECT_TRUE(controller_.has_synced());
  EXPECT_EQ(store_.size(), 2u);
}

TEST_F(ControllerTest, ASecondListBeforeTheFirstIsAppliedReplacesIt) {
  controller_.replace({pod("a/x", 1), pod("a/y", 1)}, "1");
  controller_.replace({pod("a/y", 2)}, "2");
  flush();
  EXPECT_EQ(store_.size(), 1u);
  EXPECT_EQ(store_.get("a", "y").resource_version(), "2");
  EXPECT_TRUE(controller_.has_synced());
}

TEST_F(ControllerTest, ADuplicateInTheFirstListIsOneObject) {
  controller_.replace({pod("a/x", 1), pod("a/x", 2)}, "1");
  EXPECT_THAT(flush(), ElementsAre("+a/x@1i", "~a/x@1>2"));
  EXPECT_EQ(store_.size(), 1u);
}

TEST_F(ControllerTest, AnEmptyFirstListSyncs) {
  controller_.replace({}, "1");
  EXPECT_THAT(flush(), IsEmpty());
  EXPECT_TRUE(controller_.has_synced());
}

TEST_F(ControllerTest, ListedObjectsThatExistAreUpdated) {
  start_with({pod("a/x", 1)});
  controller_.add(pod("a/x", 2));
  EXPECT_THAT(flush(), ElementsAre("~a/x@1>2"));
  controller_.update(pod("a/x", 3));
  controller_.update(pod("a/x", 4));
  EXPECT_THAT(flush(), ElementsAre("~a/x@2>3", "~a/x@3>4"));
  controller_.update(pod("a/new", 5));
  EXPECT_THAT(flush(), ElementsAre("+a/new@5"));
}

TEST_F(ControllerTest, EveryChangeOfABurstIsDelivered) {
  start_with({});
  const auto version = store_.snapshot().version();
  apply_changes(controller_, {"+a/x@1", "-a/x@2", "+a/x@3", "~a/x@4", "-a/x@5"});
  EXPECT_THAT(flush(), ElementsAre("+a/x@1", "-a/x@2", "+a/x@3", "~a/x@3>4", "-a/x@5"));
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_EQ(store_.snapshot().version(), version + 1) << "one version of the store";
}

TEST_F(ControllerTest, ARelistDeletesMissingObjectsWithTheirLastKnownState) {
  start_with({pod("a/x", 1), pod("a/y", 1), pod("a/z", 1)});
  controller_.replace({pod("a/y", 1), pod("a/z", 2), pod("a/new", 2)}, "9");
  EXPECT_THAT(flush("9"), UnorderedElementsAre("-a/x@1?", "~a/y@1>1s", "~a/z@1>2", "+a/new@2"));
}

TEST_F(ControllerTest, ARelistDeliversDeletionsBeforeAdditions) {
  start_with({pod("a/gone", 3), pod("a/x", 1), pod("a/y", 2)});
  controller_.replace({pod("a/x", 4), pod("a/y", 5), pod("a/new", 6)}, "6");
  EXPECT_THAT(flush("6"), ElementsAre("-a/gone@3?", "~a/x@1>4", "~a/y@2>5", "+a/new@6"));
}

TEST_F(ControllerTest, ChangesAfterTheFirstListAreNotInitial) {
  controller_.replace({pod("a/x", 1)}, "1");
  controller_.add(pod("a/later", 2));
  controller_.update(pod("a/x", 3));
  EXPECT_THAT(flush("3"), ElementsAre("+a/x@1i", "+a/later@2", "~a/x@1>3"));
}

// One read may contain: x loses an address, y takes it, x gets it back.
TEST_F(ControllerTest, ChangesAreDeliveredInArrivalOrderAcrossObjects) {
  start_with({pod("a/x", 1), pod("a/y", 2)});
  const auto version = store_.snapshot().version();
  apply_changes(controller_, {"~a/x@10", "-a/y@11", "~a/x@12", "+a/z@13", "+a/y@14", "-a/x@15"});
  EXPECT_THAT(flush("15"),
              ElementsAre("~a/x@1>10", "-a/y@11", "~a/x@10>12", "+a/z@13", "+a/y@14", "-a/x@15"));
  EXPECT_EQ(store_.snapshot().version(), version + 1) << "one version of the store";
  EXPECT_THAT(store_.list_keys(), UnorderedElementsAre("a/y", "a/z"));
}

TEST_F(ControllerTest, AListIsDeliveredAfterEarlierChanges) {
  start_with({pod("a/x", 1), pod("a/y", 2)});
  controller_.update(pod("a/y", 3));
  controller_.update(pod("a/x", 4));
  controller_.replace({pod("a/new", 5), pod("a/x", 6)}, "6");
  controller_.update(pod("a/new", 7));
  controller_.add(pod("a/y", 8));
  EXPECT_THAT(flush("8"), ElementsAre("~a/y@2>3", "~a/x@1>4", "-a/y@3?", "+a/new@5", "~a/x@4>6",
                                      "~a/new@5>7", "+a/y@8"));
}

TEST_F(ControllerTest, HasMetrics) {
  EXPECT_EQ(controller_.queued(), 0u);
  controller_.replace({pod("a/x"), pod("a/y")}, "1");
  controller_.update(pod("a/x", 2));
  EXPECT_EQ(controller_.queued(), 3u);
  flush();
  EXPECT_EQ(controller_.queued(), 0u);
  controller_.resync();
  EXPECT_EQ(controller_.queued(), 2u);
  flush();
  EXPECT_EQ(controller_.processing().count(), 2u);
  flush("9");
  EXPECT_EQ(controller_.processing().count(), 2u) << "a bookmark is no work";
  EXPECT_EQ(controller_.processing().cumulative().size(), metrics::kInformerBuckets.size());
}

TEST_F(ControllerTest, TheStoreIsNeverOlderThanNotifications) {
  Indexer store;
  int calls = 0;
  Controller controller(store, {}, [&](const std::vector<Notification>& all) {
    ++calls;
    EXPECT_EQ(store.size(), 2u);
    for (const auto& n : all) EXPECT_TRUE(store.get(n.object).same(n.object));
  });
  controller.replace({pod("a/x"), pod("a/y")}, "1");
  controller.flush("1");
  controller.update(pod("a/y", 2));
  controller.flush("2");
  EXPECT_EQ(calls, 2);
}

TEST_F(ControllerTest, TheStoreHoldsTheWholeListBeforeItsNotifications) {
  Indexer store;
  std::vector<std::string> told;
  Controller controller(store, {}, [&](const std::vector<Notification>& all) {
    for (const auto& n : all) {
      const auto stored = store.get(n.object);
      told.push_back(text(n) + " " + (stored ? std::string(stored.resource_version()) : "gone"));
    }
  });
  controller.replace({pod("a/1", 1), pod("a/2", 2), pod("a/3", 3)}, "3");
  controller.flush("3");
  EXPECT_THAT(told, ElementsAre("+a/1@1i 1", "+a/2@2i 2", "+a/3@3i 3"));
  told.clear();
  controller.replace({pod("a/1", 4), pod("a/2", 5), pod("a/4", 6)}, "6");
  controller.flush("6");
  EXPECT_THAT(told, ElementsAre("-a/3@3? gone", "~a/1@1>4 4", "~a/2@2>5 5", "+a/4@6 6"));
  told.clear();
  controller.replace({}, "7");
  controller.flush("7");
  EXPECT_THAT(told, UnorderedElementsAre("-a/1@4? gone", "-a/2@5? gone", "-a/4@6? gone"));
  EXPECT_EQ(store.size(), 0u);
}

TEST_F(ControllerTest, ADeletionIsDeliveredOnce) {
  start_with({pod("a/x", 1)});
  controller_.remove(pod("a/x", 2));
  controller_.remove(pod("a/x", 3));
  EXPECT_THAT(flush(), ElementsAre("-a/x@2"));
  controller_.remove(pod("a/x", 4));
  EXPECT_THAT(flush(), IsEmpty());
}

TEST_F(ControllerTest, ADeletionOfAnUnknownObjectIsNotDelivered) {
  start_with({});
  apply_changes(controller_, {"-a/x@1", "+a/y@2", "-a/y@3", "-a/y@4", "+a/z@5"});
  EXPECT_THAT(flush(), ElementsAre("+a/y@2", "-a/y@3", "+a/z@5"));
}

TEST_F(ControllerTest, ADeletionHasTheStoredStateToo) {
  start_with({pod("a/x", 1)});
  std::vector<Notification> got;
  Indexer store;
  Controller controller(store, {}, [&](std::vector<Notification> all) { got = std::move(all); });
  controller.add(pod("a/x", 1));
  controller.flush("1");
  controller.remove(pod("a/x", 2));
  controller.flush("2");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].object.resource_version(), "2");
  EXPECT_EQ(got[0].before.resource_version(), "1");
}

TEST_F(ControllerTest, AResyncDeliversEveryObjectAgain) {
  start_with({pod("a/x", 1), pod("a/y", 2)});
  controller_.update(pod("a/x", 3));
  controller_.resync();
  EXPECT_THAT(flush(), UnorderedElementsAre("~a/x@1>3", "~a/y@2>2s"));
}

TEST_F(ControllerTest, ABookmarkAdvancesTheStoresVersion) {
  start_with({pod("a/x", 1)});
  EXPECT_THAT(flush("55"), IsEmpty());
  EXPECT_EQ(store_.resource_version(), "55");
}

TEST_F(ControllerTest, StoresTransformedObjects) {
  std::vector<std::string> told;
  Controller controller(
      store_, [](const api::Object& object) { return pod(object.key(), "7"); },
      [&](std::vector<Notification> all) {
        for (const auto& n : all) told.push_back(text(n));
      });
  controller.replace({controller.prepare(pod("a/x", 1))}, "1");
  controller.add(pod("a/y", 1));
  controller.flush("1");
  EXPECT_EQ(store_.get("a", "x").resource_version(), "7");
  EXPECT_THAT(told, ElementsAre("+a/x@7i", "+a/y@7"));
}

TEST_F(ControllerTest, AnUnchangedListItemIsTheStoredObject) {
  const auto stored = pod("a/x", 1);
  start_with({stored});
  EXPECT_TRUE(controller_.prepare(pod("a/x", 1)).same(stored));
  EXPECT_EQ(controller_.prepare(pod("a/x", 2)).resource_version(), "2");
  EXPECT_EQ(controller_.prepare(pod("a/y", 3)).resource_version(), "3");
}

TEST_F(ControllerTest, TransformsEachListItemOnceOnArrival) {
  int transformed = 0;
  Controller controller(
      store_,
      [&](const api::Object& object) {
        ++transformed;
        return pod(object.key(), std::string(object.resource_version()) + "0");
      },
      [](const std::vector<Notification>&) {});
  std::vector<api::Object> items = {controller.prepare(pod("a/x", 1))};
  EXPECT_EQ(items[0].resource_version(), "10") << "as it comes in, not when all have come";
  controller.replace(std::move(items), "1");
  controller.flush("1");
  EXPECT_EQ(store_.get("a", "x").resource_version(), "10");
  EXPECT_EQ(transformed, 1);
}

// ------------------------------------------------------------------------------------- syncs

/// A controller whose transform removes the resourceVersion.
class StrippedControllerTest : public testing::Test {
 protected:
  static api::Object strip(const api::Object& object) {
    return pod(object.key(), "", {{}, {}, std::string(object.annotations()["note"].as_string())});
  }
  static api::Object noted(std::string_view key, std::size_t version, std::string note) {
    return pod(key, version, {{}, {}, std::move(note)});
  }
  std::vector<std::string> flush() {
    told_.clear();
    controller_.flush("9");
    return told_;
  }
  void list(const std::vector<api::Object>& objects) {
    std::vector<api::Object> prepared;
    for (const auto& object : objects) prepared.push_back(controller_.prepare(object));
    controller_.replace(std::move(prepared), "9");
  }

  Indexer store_;
  std::vector<std::string> told_;
  Controller controller_{store_, strip, [this](const std::vector<Notification>& all) {
                           for (const auto& n : all) told_.push_back(text(n));
                         }};
};

TEST_F(StrippedControllerTest, UpdatesWithoutVersionsAreNotSyncs) {
  list({noted("a/x", 1, "old"), noted("a/y", 1, "old")});
  EXPECT_THAT(flush(), ElementsAre("+a/x@i", "+a/y@i"));
  controller_.update(noted("a/x", 2, "new"));
  controller_.update(noted("a/y", 3, "old"));  // only fields that the transform drops have changed
  EXPECT_THAT(flush(), ElementsAre("~a/x@>", "~a/y@>"));
  list({noted("a/x", 4, "newer"), noted("a/y", 5, "old")});
  EXPECT_THAT(flush(), ElementsAre("~a/x@>", "~a/y@>s"));
  controller_.resync();
  EXPECT_THAT(flush(), UnorderedElementsAre("~a/x@>s", "~a/y@>s"));
}

TEST_F(ControllerTest, ARepeatedObjectIsASync) {
  start_with({pod("a/x", 1)});
  controller_.add(pod("a/x", 1));
  controller_.update(pod("a/x", 1));
  EXPECT_THAT(flush(), ElementsAre("~a/x@1>1s", "~a/x@1>1s"));
}

TEST_F(ControllerTest, OtherContentOfTheSameVersionIsAnUpdate) {
  start_with({pod("a/x", 1)});
  controller_.update(pod("a/x", 1, {{}, {}, "other"}));
  EXPECT_THAT(flush(), ElementsAre("~a/x@1>1"));
  controller_.replace({pod("a/x", 1, {{}, {}, "another"})}, "2");
  EXPECT_THAT(flush(), ElementsAre("~a/x@1>1"));
}

// --------------------------------------------------------------- transforms that fail

TEST_F(ControllerTest, AFailedTransformIsNeitherStoredNorDelivered) {
  std::vector<std::string> told;
  Controller controller(
      store_,
      [](const api::Object& object) -> api::Object {
        if (object.annotations()["note"].exists()) throw std::runtime_error("a secret is left");
        return object;
      },
      [&](const std::vector<Notification>& all) {
        for (const auto& n : all) told.push_back(text(n));
      });
  const auto bad = [](std::string_view key, std::size_t version) {
    return pod(key, version, {{}, {}, "secret"});
  };
  controller.replace({controller.prepare(pod("a/x", 1)), controller.prepare(bad("a/y", 2))}, "2");
  controller.flush("2");
  EXPECT_TRUE(controller.has_synced());
  controller.update(bad("a/x", 3));
  controller.add(bad("a/z", 4));
  controller.flush("4");
  controller.replace({controller.prepare(bad("a/x", 5)), controller.prepare(bad("a/y", 5))}, "5");
  controller.flush("5");
  EXPECT_THAT(store_.list_keys(), ElementsAre("a/x"));
  EXPECT_EQ(store_.get("a", "x").resource_version(), "1");
  controller.remove(bad("a/x", 6));
  controller.remove(bad("a/y", 7));
  controller.flush("7");
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_THAT(told, ElementsAre("+a/x@1i", "~a/x@1>1s", "-a/x@1?"));
  EXPECT_EQ(controller.transform_failures(), 7u);
}

TEST_F(ControllerTest, AMissedDeletionHasTheStoredState) {
  start_with({pod("a/x", 1), pod("a/y", 1)});
  controller_.remove_missed(pod("a/x", 9));
  controller_.update(pod("a/y", 2));
  controller_.remove_missed(pod("a/y", 9));
  controller_.remove_missed(pod("a/unknown", 9));
  EXPECT_THAT(flush(), ElementsAre("-a/x@1?", "~a/y@1>2", "-a/y@2?"));
  EXPECT_EQ(store_.size(), 0u);
}

}  // namespace
}  // namespace lookout::cache
