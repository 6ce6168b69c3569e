#include "lookout/tools/cache/indexer.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <random>
#include <ranges>
#include <set>

#include "lookout/api/error.h"
#include "tests/support/allocations.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/matchers.h"
#include "tests/support/objects.h"
#include "tests/support/sanitizers.h"
#include "tools/cache/store_state.h"
#include "tools/cache/value_table.h"

namespace lookout::cache {
namespace {

using test::keys;
using test::pod;
using test::PodSpec;

static_assert(std::ranges::input_range<ObjectRange>);
static_assert(std::ranges::input_range<Snapshot>);

/// Indexes pods by the value of each of their labels, and by their node.
void by_label_values(const api::Object& object, IndexValues& values) {
  for (const auto& [name, value] : object.labels().members()) values.add(value.as_string());
}
void by_node(const api::Object& object, IndexValues& values) {
  const auto node = object["spec"]["nodeName"].as_string();
  if (!node.empty()) values.add(node);
}
Indexers test_indexers() { return {{"label", by_label_values}, {"node", by_node}}; }

PodSpec on(std::string node) { return {{}, std::move(node), {}}; }
PodSpec labelled(std::map<std::string, std::string> labels) { return {std::move(labels), {}, {}}; }

// ------------------------------------------------------------------------------- one object

TEST(IndexerTest, KeepsObjectsByKey) {
  Indexer store;
  EXPECT_FALSE(store.put(pod("a/x")));
  EXPECT_FALSE(store.put(pod("b/x")));
  EXPECT_FALSE(store.put(pod("x")));
  EXPECT_EQ(store.size(), 3u);
  EXPECT_EQ(store.get("a", "x").key(), "a/x");
  EXPECT_EQ(store.get_by_key("b/x").key(), "b/x");
  EXPECT_EQ(store.get_by_key("x").key(), "x");
  EXPECT_EQ(store.get("", "x").key(), "x");
  EXPECT_EQ(store.get(pod("a/x", 99)).resource_version(), "1");
  EXPECT_THAT(store.list_keys(), UnorderedElementsAre("a/x", "b/x", "x"));
  EXPECT_THAT(keys(store.list()), UnorderedElementsAre("a/x", "b/x", "x"));
  EXPECT_EQ(store.key_of(pod("c/y")), "c/y");
}

TEST(IndexerTest, FindsNothingUnderAbsentKeys) {
  Indexer store;
  store.put(pod("a/x"));
  store.put(pod("y"));
  for (const char* key : {"", "a", "x", "a/", "/x", "/y", "a/x/", "a/x/z", "A/x", "y/"})
    EXPECT_FALSE(store.get_by_key(key)) << key;
  EXPECT_FALSE(store.get("a", "y"));
  EXPECT_FALSE(store.get("", ""));
}

TEST(IndexerTest, PuttingTheSameHandleAgainWritesNothing) {
  int filed = 0;
  Indexer store({{"node", [&](const api::Object& object, IndexValues& values) {
                    ++filed;
                    by_node(object, values);
                  }}});
  std::vector<StoreChange> changes;
  for (int i = 0; i < 1000; ++i)
    changes.push_back({StoreChange::Type::kPut, pod("a/" + std::to_string(i), 1, on("n1"))});
  store.apply(changes, "1");
  filed = 0;
  std::vector<api::Object> met;
  const std::size_t allocations = test::allocations_of([&] { met = store.apply(changes, "2"); });
  EXPECT_EQ(filed, 0) << "no index function is asked";
  EXPECT_LT(allocations, 100u) << "no path of 1000 is copied";
  ASSERT_EQ(met.size(), changes.size());
  for (std::size_t i = 0; i < met.size(); ++i) EXPECT_TRUE(met[i].same(changes[i].object));
  EXPECT_EQ(store.resource_version(), "2");
  EXPECT_EQ(store.by_index("node", "n1").size(), 1000u);
  // An object that was put again is still replaced and removed.
  store.put(pod("a/1", 2, on("n2")));
  store.remove_key("a/2");
  EXPECT_EQ(store.by_index("node", "n1").size(), 998u);
  EXPECT_THAT(keys(store.by_index("node", "n2")), ElementsAre("a/1"));
}

TEST(IndexerTest, AChangeAndTheSameHandleAgainInOneBatch) {
  Indexer store({{"node", by_node}});
  const auto first = pod("a/x", 1, on("n1"));
  const auto second = pod("a/x", 2, on("n2"));
  using Type = StoreChange::Type;
  store.put(first);
  const std::vector<StoreChange> changes = {{Type::kPut, first},
                                            {Type::kPut, second},
                                            {Type::kPut, second},
                                            {Type::kRemove, second},
                                            {Type::kPut, first}};
  store.apply(changes);
  EXPECT_TRUE(store.get("a", "x").same(first));
  EXPECT_EQ(store.by_index("node", "n1").size(), 1u);
  EXPECT_EQ(store.by_index("node", "n2").size(), 0u);
  EXPECT_EQ(store.size(), 1u);
}

TEST(IndexerTest, PuttingAgainReplaces) {
  Indexer store;
  const auto first = pod("a/x", 1);
  store.add(first);
  EXPECT_TRUE(store.put(pod("a/x", 2)).same(first));
  store.update(pod("a/x", 3));
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(store.get("a", "x").resource_version(), "3");
}

TEST(IndexerTest, PuttingTheSameObjectAgainIsHarmless) {
  Indexer store(test_indexers());
  const auto object = pod("a/x", 1, on("n1"));
  for (int i = 0; i < 3; ++i) store.put(object);
  EXPECT_EQ(store.size(), 1u);
  EXPECT_THAT(keys(store.by_index("node", "n1")), ElementsAre("a/x"));
  EXPECT_TRUE(store.remove(object).same(object));
  EXPECT_THAT(store.by_index("node", "n1"), IsEmpty());
}

TEST(IndexerTest, RemovesByObjectAndByKey) {
  Indexer store;
  store.put(pod("a/x", 1));
  store.put(pod("a/y", 1));
  EXPECT_EQ(store.remove(pod("a/x", 7)).resource_version(), "1");
  EXPECT_FALSE(store.remove(pod("a/x")));
  EXPECT_EQ(store.remove_key("a/y").key(), "a/y");
  EXPECT_FALSE(store.remove_key("a/y"));
  EXPECT_EQ(store.size(), 0u);
  EXPECT_TRUE(store.snapshot().empty());
}

TEST(IndexerTest, RejectsObjectsWithoutAKey) {
  Indexer store;
  store.put(pod("a/x"));
  const auto version = store.snapshot().version();
  EXPECT_THROW(store.put(pod("a/")), InvalidArgument);
  EXPECT_THROW(store.put({}), InvalidArgument);
  EXPECT_THROW(store.remove(pod("a/")), InvalidArgument);
  EXPECT_THROW(store.get(pod("a/")), InvalidArgument);
  EXPECT_THROW(store.replace({pod("a/y"), pod("a/")}, "2"), InvalidArgument);
  const StoreChange changes[] = {{StoreChange::Type::kPut, pod("a/y")},
                                 {StoreChange::Type::kPut, pod("a/")}};
  EXPECT_THROW(store.apply(changes), InvalidArgument);
  EXPECT_EQ(store.snapshot().version(), version);
  EXPECT_THAT(store.list_keys(), ElementsAre("a/x"));
}

// ---------------------------------------------------------------------------------- batches

StoreChange put_of(api::Object object) { return {StoreChange::Type::kPut, std::move(object)}; }
StoreChange remove_of(api::Object object) {
  return {StoreChange::Type::kRemove, std::move(object)};
}

TEST(IndexerTest, ABatchIsOneVersionAndReturnsPreviousObjects) {
  Indexer store(test_indexers());
  store.put(pod("a/x", 1, on("n1")));
  const auto version = store.snapshot().version();
  const StoreChange changes[] = {
      put_of(pod("a/x", 2, on("n2"))), put_of(pod("a/y", 1, on("n1"))), remove_of(pod("a/x")),
      remove_of(pod("a/x")),           put_of(pod("a/x", 3, on("n3"))), put_of(pod("a/x", 4)),
      remove_of(pod("a/z")),           put_of(pod("a/w", 1, on("n4"))), remove_of(pod("a/w"))};
  std::vector<std::string> met;
  for (const auto& object : store.apply(changes, "77"))
    met.push_back(object ? object.key() + "@" + std::string(object.resource_version()) : "-");
  EXPECT_THAT(met, ElementsAre("a/x@1", "-", "a/x@2", "-", "-", "a/x@3", "-", "-", "a/w@1"));
  EXPECT_EQ(store.snapshot().version(), version + 1);
  EXPECT_EQ(store.resource_version(), "77");
  EXPECT_THAT(store.list_keys(), UnorderedElementsAre("a/x", "a/y"));
  EXPECT_EQ(store.get("a", "x").resource_version(), "4");
  EXPECT_THAT(store.index_values("node"), ElementsAre("n1"));
  EXPECT_THAT(store.index_keys("node", "n1"), ElementsAre("a/y"));
}

TEST(IndexerTest, ReplaceRemovesAllOtherObjects) {
  Indexer store(test_indexers());
  const auto kept = pod("a/kept", 1, on("n1"));
  store.put(kept);
  store.put(pod("a/gone", 1, on("n2")));
  store.replace({kept, pod("b/new", 2, on("n1"))}, "5");
  EXPECT_THAT(store.list_keys(), UnorderedElementsAre("a/kept", "b/new"));
  EXPECT_TRUE(store.get("a", "kept").same(kept));
  EXPECT_EQ(store.resource_version(), "5");
  EXPECT_THAT(store.index_values("node"), ElementsAre("n1"));
  EXPECT_EQ(store.snapshot().by_index("node", "n1").size(), 2u);
  store.replace({}, "6");
  EXPECT_EQ(store.size(), 0u);
  EXPECT_THAT(store.index_values("node"), IsEmpty());
}

TEST(IndexerTest, ReplaceKeepsTheLastOfDuplicateKeys) {
  Indexer store(test_indexers());
  store.replace({pod("a/x", 1, on("n1")), pod("a/x", 2, on("n2"))}, "5");
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(store.get("a", "x").resource_version(), "2");
  EXPECT_THAT(store.index_values("node"), ElementsAre("n2"));
}

TEST(IndexerTest, ABookmarkChangesNothingButTheResourceVersion) {
  Indexer store;
  EXPECT_EQ(store.resource_version(), "");
  store.put(pod("a/x"));
  const Snapshot before = store.snapshot();
  store.set_resource_version("12");
  EXPECT_EQ(store.resource_version(), "12");
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(before.resource_version(), "");
  store.put(pod("a/y"));
  EXPECT_EQ(store.resource_version(), "12");
}

// ---------------------------------------------------------------------------------- indexes

TEST(IndexerTest, IndexesAnObjectUnderEachOfItsValues) {
  Indexer store(test_indexers());
  store.put(pod("a/x", 1, labelled({{"tier", "web"}, {"zone", "north"}, {"also", "web"}})));
  store.put(pod("a/y", 1, labelled({{"tier", "web"}})));
  store.put(pod("a/z", 1));
  EXPECT_THAT(store.index_keys("label", "web"), UnorderedElementsAre("a/x", "a/y"));
  EXPECT_THAT(store.index_keys("label", "north"), ElementsAre("a/x"));
  EXPECT_THAT(store.index_keys("label", "south"), IsEmpty());
  EXPECT_THAT(store.index_values("label"), UnorderedElementsAre("web", "north"));
  EXPECT_EQ(store.snapshot().by_index("label", "web").size(), 2u);
  EXPECT_THAT(store.indexers(), UnorderedElementsAre("label", "node"));
}

TEST(IndexerTest, AnEmptyValueIsAValue) {
  Indexer store({{std::string(kNamespaceIndex), index_by_namespace}});
  store.put(pod("node-1"));
  store.put(pod("a/x"));
  EXPECT_THAT(store.index_keys(kNamespaceIndex, ""), ElementsAre("node-1"));
  EXPECT_THAT(store.index_values(kNamespaceIndex), UnorderedElementsAre("", "a"));
}

TEST(IndexerTest, IndexesFollowChanges) {
  Indexer store(test_indexers());
  store.put(pod("a/x", 1, on("n1")));
  store.put(pod("a/y", 1, on("n1")));
  store.put(pod("a/x", 2, on("n2")));
  EXPECT_THAT(store.index_keys("node", "n1"), ElementsAre("a/y"));
  EXPECT_THAT(store.index_keys("node", "n2"), ElementsAre("a/x"));
  EXPECT_EQ(store.by_index("node", "n2").front().resource_version(), "2");
  store.put(pod("a/x", 3, on("n2")));
  EXPECT_EQ(store.by_index("node", "n2").front().resource_version(), "3");
  store.put(pod("a/x", 4));
  EXPECT_THAT(store.index_values("node"), ElementsAre("n1"));
  store.remove_key("a/y");
  EXPECT_THAT(store.index_values("node"), IsEmpty()) << "empty sets go";
  EXPECT_THAT(store.index_keys("node", "n1"), IsEmpty());
}

TEST(IndexerTest, AnIndexEntryStaysWhileItHasObjects) {
  Indexer store(test_indexers());
  for (int i = 0; i < 100; ++i) store.put(pod("a/" + std::to_string(i), 1, on("n1")));
  for (int i = 0; i < 99; ++i) {
    store.remove_key("a/" + std::to_string(i));
    ASSERT_EQ(store.snapshot().by_index("node", "n1").size(), static_cast<std::size_t>(99 - i));
  }
  EXPECT_THAT(store.index_values("node"), ElementsAre("n1"));
}

TEST(IndexerTest, FindsObjectsThatShareAnIndexValue) {
  Indexer store(test_indexers());
  store.put(pod("a/x", 1, labelled({{"tier", "web"}, {"zone", "north"}})));
  store.put(pod("a/y", 1, labelled({{"tier", "web"}, {"zone", "north"}})));
  store.put(pod("a/z", 1, labelled({{"zone", "south"}})));
  const auto asked = pod("other/o", 1, labelled({{"tier", "web"}, {"zone", "north"}}));
  EXPECT_THAT(keys(store.index("label", asked)), UnorderedElementsAre("a/x", "a/y"));
  EXPECT_THAT(store.index("label", pod("a/none")), IsEmpty());
}

TEST(IndexerTest, AnUnknownIndexThrows) {
  Indexer store(test_indexers());
  EXPECT_THROW(store.by_index("colour", "red"), InvalidArgument);
  EXPECT_THROW(store.index_keys("colour", "red"), InvalidArgument);
  EXPECT_THROW(store.index_values("colour"), InvalidArgument);
  EXPECT_THROW(store.index("colour", pod("a/x")), InvalidArgument);
  EXPECT_FALSE(store.snapshot().has_index("colour"));
  EXPECT_TRUE(store.snapshot().has_index("node"));
}

TEST(IndexerTest, AnObjectForWhichAnIndexFunctionThrowsIsNotFoundThroughThatIndex) {
  Indexer store({{"node", by_node}, {"picky", [](const api::Object& object, IndexValues& values) {
                                       values.add("half");
                                       if (object.name() == "bad") throw std::runtime_error("no");
                                       if (object.name() == "worse") throw 7;
                                       values.add("whole");
                                     }}});
  for (const char* key : {"a/good", "a/bad", "a/worse"}) store.put(pod(key, 1, on("n1")));
  EXPECT_THAT(store.index_keys("picky", "half"), ElementsAre("a/good"));
  EXPECT_THAT(store.index_keys("picky", "whole"), ElementsAre("a/good"));
  EXPECT_EQ(store.snapshot().by_index("node", "n1").size(), 3u);
  EXPECT_GE(store.index_failures(), 2u);
  EXPECT_TRUE(store.remove_key("a/bad"));
  EXPECT_EQ(store.size(), 2u);
}

TEST(IndexerTest, LaterIndexesContainExistingObjects) {
  Indexer store;
  for (int i = 0; i < 50; ++i)
    store.put(pod("a/" + std::to_string(i), 1, on(i % 2 == 0 ? "even" : "odd")));
  const Snapshot before = store.snapshot();
  store.add_indexers({{"node", by_node}, {"label", by_label_values}});
  EXPECT_EQ(store.snapshot().by_index("node", "even").size(), 25u);
  EXPECT_FALSE(before.has_index("node"));
  EXPECT_THROW(before.by_index("node", "even"), InvalidArgument);
  store.put(pod("a/0", 2, on("odd")));
  EXPECT_EQ(store.snapshot().by_index("node", "odd").size(), 26u);
}

TEST(IndexerTest, AnIndexNameIsUnique) {
  Indexer store({{"node", by_node}});
  EXPECT_THROW(store.add_indexers({{"label", by_label_values}, {"node", by_node}}),
               InvalidArgument);
  EXPECT_THAT(store.indexers(), ElementsAre("node"));
  store.add_indexers({{"label", by_label_values}});
  EXPECT_THAT(store.indexers(), UnorderedElementsAre("node", "label"));
}

TEST(IndexerTest, AnIndexFunctionMayReadTheStore) {
  Indexer store;
  store.add_indexers({{"twin", [&store](const api::Object& object, IndexValues& values) {
                         if (store.get("twins", object.name())) values.add("yes");
                       }}});
  store.put(pod("twins/x"));
  store.put(pod("a/x"));
  EXPECT_THAT(store.index_keys("twin", "yes"), testing::Contains("a/x"));
}

/// An index function may depend on more than the object, though it should not.
TEST(IndexerTest, AnInconsistentIndexFunctionLeavesNoStaleEntries) {
  std::string now = "one";
  bool throws = false;
  const auto fickle = [&](const api::Object&, IndexValues& values) {
    if (throws) throw std::runtime_error("not now");
    for (const char value : now) values.add(std::string(1, value));
  };
  Indexer store({{"node", by_node}});
  store.put(pod("a/old", 1, on("n1")));
  store.add_indexers({{"fickle", fickle}});
  const Snapshot before = store.snapshot();
  for (const char* answer : {"two", "", "owt", "on", "one", "x"}) {
    now = answer;
    for (const char* key : {"a/old", "a/x", "a/y"}) store.put(pod(key, 2, on("n1")));
    const std::set<char> letters(now.begin(), now.end());
    EXPECT_EQ(store.index_values("fickle").size(), letters.size()) << answer;
    for (const char letter : letters)
      EXPECT_EQ(store.by_index("fickle", std::string(1, letter)).size(), 3u) << answer;
    now += "z";
    store.remove_key("a/x");
    throws = true;
    store.remove_key("a/y");
    throws = false;
    for (const auto& value : store.index_values("fickle"))
      EXPECT_THAT(store.index_keys("fickle", value), ElementsAre("a/old"));
    EXPECT_THAT(store.index_keys("node", "n1"), ElementsAre("a/old"));
  }
  store.remove_key("a/old");
  EXPECT_THAT(store.index_values("fickle"), IsEmpty());
  EXPECT_THAT(store.index_values("node"), IsEmpty());
  EXPECT_THAT(before.index_values("fickle"), UnorderedElementsAre("o", "n", "e"));
  EXPECT_THAT(keys(before.by_index("fickle", "e")), ElementsAre("a/old"));
}

/// A store keeps only a short hash of an object's index values. Two values may have the same hash.
TEST(IndexerTest, AnInconsistentIndexFunctionWithEqualHashesIsHarmless) {
  const auto sum_of = [](const std::string& value) {
    detail::ValueTable table;
    detail::IndexedValues values;
    table.add(values, 0, std::span(&value, 1));
    return table.filing(values);
  };
  std::map<std::uint16_t, std::string> sums;
  std::string first;
  std::string second;
  for (int i = 0; first.empty(); ++i) {
    second = "value-" + std::to_string(i);
    const auto [it, is_new] = sums.emplace(sum_of(second), second);
    if (!is_new) first = it->second;
  }
  std::string said = first;
  Indexer store({{"fickle", [&](const api::Object&, IndexValues& values) { values.add(said); }}});
  for (int i = 0; i < 50; ++i) store.put(pod("a/" + std::to_string(i)));
  said = second;
  for (int i = 0; i < 50; i += 2) store.remove_key("a/" + std::to_string(i));
  EXPECT_EQ(store.by_index("fickle", first).size(), 25u) << "what is there";
  store.put(pod("a/1", 2));
  EXPECT_EQ(store.size(), 25u);
  for (int i = 1; i < 50; i += 2) EXPECT_TRUE(store.remove_key("a/" + std::to_string(i)));
  EXPECT_THAT(store.by_index("fickle", first), IsEmpty());
  EXPECT_THAT(store.list(), IsEmpty());
}

TEST(IndexerTest, AnObjectMayHaveVeryManyIndexValues) {
  const auto many = [](const api::Object& object, IndexValues& values) {
    for (int i = 0; i < 70'000; i += object.resource_version() == "1" ? 1 : 50)
      values.add(std::to_string(i));
  };
  Indexer store({{"many", many}});
  store.put(pod("a/x", 1));
  EXPECT_EQ(store.index_values("many").size(), 70'000u);
  store.put(pod("a/x", 2));
  EXPECT_EQ(store.index_values("many").size(), 1400u);
  store.remove_key("a/x");
  EXPECT_THAT(store.index_values("many"), IsEmpty());
}

// ------------------------------------------------------------------------- keys of one's own

std::string by_uid_like_name(const api::Object& object) {
  if (object.name().starts_with("bad")) throw std::runtime_error("no key for " + object.key());
  return "key:" + std::string(object.name());  // the namespace does not count
}

TEST(IndexerTest, AcceptsAKeyFunction) {
  Indexer store(by_uid_like_name, test_indexers());
  store.put(pod("a/x", 1, on("n1")));
  store.put(pod("b/x", 2, on("n1")));
  store.put(pod("b/y", 3, on("n1")));
  EXPECT_THAT(store.list_keys(), UnorderedElementsAre("key:x", "key:y"));
  EXPECT_EQ(store.get_by_key("key:x").key(), "b/x");
  EXPECT_EQ(store.get(pod("c/x")).key(), "b/x");
  EXPECT_FALSE(store.get("b", "x"));
  EXPECT_THAT(store.index_keys("node", "n1"), UnorderedElementsAre("key:x", "key:y"));
  EXPECT_EQ(store.remove_key("key:x").key(), "b/x");
  EXPECT_EQ(store.snapshot().get_by_key("key:y").key(), "b/y");
  store.add_indexers({{"again", by_node}});
  EXPECT_THAT(store.index_keys("again", "n1"), ElementsAre("key:y"));
}

TEST(IndexerTest, AKeyFunctionThatThrowsChangesNothing) {
  Indexer store(by_uid_like_name, {});
  store.put(pod("a/x"));
  const auto version = store.snapshot().version();
  EXPECT_THROW(store.put(pod("a/bad")), std::runtime_error);
  EXPECT_THROW(store.get(pod("a/bad")), std::runtime_error);
  EXPECT_THROW(store.remove(pod("a/bad")), std::runtime_error);
  EXPECT_THROW(store.replace({pod("a/y"), pod("a/bad")}, "2"), std::runtime_error);
  const StoreChange changes[] = {put_of(pod("a/y")), put_of(pod("a/bad"))};
  EXPECT_THROW(store.apply(changes), std::runtime_error);
  EXPECT_EQ(store.snapshot().version(), version);
  EXPECT_THAT(store.list_keys(), ElementsAre("key:x"));
}

/// The look-up table is migrated to another size, a few slots with each change: as the store grows,
/// as it shrinks, and at once when a batch leaves no time for it.
TEST(IndexerTest, LookUpsAreRightWhileTheStoreGrowsAndShrinks) {
  Indexer store;
  std::minstd_rand random(7);
  std::map<std::string, api::Object> model;
  const auto key = [](std::size_t number) { return "a/" + std::to_string(number); };
  const auto change = [&](std::size_t number, bool put) {
    api::Object object = pod(key(number), random() % 1000);
    put ? store.put(object) : store.remove(object);
    if (put) {
      model[key(number)] = std::move(object);
    } else {
      model.erase(key(number));
    }
  };
  const auto agree = [&](std::size_t number) {
    const auto found = model.find(key(number));
    return store.get("a", std::to_string(number))
        .same(found == model.end() ? api::Object{} : found->second);
  };
  const auto all_agree = [&](std::size_t numbers) {
    for (std::size_t i = 0; i < numbers; ++i) {
      if (!agree(i)) return false;
    }
    return true;
  };
  constexpr std::size_t kMost = 2000;
  for (std::size_t i = 0; i < kMost; ++i) {
    change(i, true);
    change(random() % (i + 1), random() % 3 != 0);
    for (const std::size_t some : {i, i / 2, random() % (i + 1)}) ASSERT_TRUE(agree(some)) << i;
    if (i % 100 == 0) {
      ASSERT_TRUE(all_agree(i)) << i;
    }
  }
  for (std::size_t i = 0; i < kMost; ++i) {
    change(i, false);
    if (random() % 8 == 0) change(random() % kMost, true);
    if (i % 100 == 0) {
      ASSERT_TRUE(all_agree(kMost)) << i;
    }
  }
  std::vector<StoreChange> many;
  for (std::size_t i = 0; i < 2 * kMost; ++i) {
    model[key(i)] = pod(key(i), 5);
    many.push_back({StoreChange::Type::kPut, model[key(i)]});
  }
  store.apply(many);
  EXPECT_TRUE(all_agree(2 * kMost));
}

/// The look-up table must have room for all of them at once. (Also while it is migrated to another size.)
TEST(IndexerTest, ABatchMayAddManyObjectsAndRemoveThemAgain) {
  Indexer store;
  const auto stays = [](std::size_t number) { return "a/stays-" + std::to_string(number); };
  auto done = std::async(std::launch::async, [&] {
    std::size_t size = 0;
    for (const std::size_t wanted : {3u, 13u, 14u, 30u, 52u, 53u, 60u, 500u}) {
      for (; size < wanted; ++size) store.put(pod(stays(size)));
      std::vector<StoreChange> batch;
      for (std::size_t i = 0; i < 2 * wanted + 20; ++i)
        batch.push_back({StoreChange::Type::kPut, pod("a/goes-" + std::to_string(i))});
      for (std::size_t i = 0; i < 2 * wanted + 20; ++i)
        batch.push_back({StoreChange::Type::kRemove, batch[i].object});
      store.apply(batch);
      EXPECT_EQ(store.size(), size);
      for (std::size_t i = 0; i < size; ++i) EXPECT_TRUE(store.get_by_key(stays(i))) << i;
      EXPECT_FALSE(store.get_by_key("a/goes-0"));
    }
  });
  test::get(done);
}

TEST(IndexerTest, AnEmptyHandleIsRejectedEvenIfItHasAKey) {
  Indexer store([](const api::Object&) { return std::string("one"); }, {});
  store.put(pod("a/x"));
  EXPECT_THROW(store.put({}), InvalidArgument);
  EXPECT_EQ(store.size(), 1u);
}

// -------------------------------------------------------------------------------- snapshots

TEST(SnapshotTest, AnEmptyOneIsEmpty) {
  const Snapshot snapshot;
  EXPECT_TRUE(snapshot.empty());
  EXPECT_FALSE(snapshot.get("a", "x"));
  EXPECT_FALSE(snapshot.get_by_key("a/x"));
  EXPECT_TRUE(snapshot.objects().begin() == snapshot.objects().end());
  EXPECT_EQ(snapshot.resource_version(), "");
  EXPECT_FALSE(snapshot.has_index("node"));
}

TEST(SnapshotTest, NeverChanges) {
  Indexer store(test_indexers());
  std::minstd_rand random(7);
  std::map<std::string, std::string> model;  // by key: version and node
  std::vector<std::pair<Snapshot, std::map<std::string, std::string>>> kept;
  for (int step = 0; step < 5000; ++step) {
    const std::string key =
        "ns" + std::to_string(random() % 3) + "/" + std::to_string(random() % 100);
    if (random() % 3 == 0) {
      store.remove_key(key);
      model.erase(key);
    } else {
      const std::string node = "n" + std::to_string(random() % 7);
      store.put(pod(key, static_cast<std::size_t>(step), on(node)));
      model[key] = std::to_string(step) + "@" + node;
    }
    if (step % 200 == 0) kept.emplace_back(store.snapshot(), model);
  }
  for (const auto& [snapshot, expected] : kept) {
    EXPECT_EQ(snapshot.size(), expected.size());
    std::map<std::string, std::string> content;
    for (const auto& object : snapshot) {
      content[object.key()] = std::string(object.resource_version()) + "@" +
                              std::string(object["spec"]["nodeName"].as_string());
    }
    EXPECT_EQ(content, expected);
    std::map<std::string, std::string> through_index;
    for (const auto& node : snapshot.index_values("node")) {
      EXPECT_FALSE(snapshot.by_index("node", node).empty());
      for (const auto& object : snapshot.by_index("node", node)) {
        EXPECT_TRUE(snapshot.get(object.ns(), object.name()).same(object));
        through_index[object.key()] = std::string(object.resource_version()) + "@" + node;
      }
    }
    EXPECT_EQ(through_index, expected);
  }
}

/// For updates that change no index value, and change slots in place.
TEST(SnapshotTest, NeverChangesWhileItIsHeldBriefly) {
  constexpr std::size_t kObjects = 200;
  Indexer store(test_indexers());
  std::vector<std::size_t> now(kObjects, 0);
  for (std::size_t i = 0; i < kObjects; ++i) store.put(pod(std::to_string(i), 0));
  const auto expect = [](const Snapshot& snapshot, const std::vector<std::size_t>& content) {
    std::size_t n = 0;
    for (const auto& object : snapshot) {
      const auto i = std::stoul(std::string(object.name()));
      ASSERT_EQ(object.resource_version(), std::to_string(content[i]));
      ++n;
    }
    ASSERT_EQ(n, content.size());
  };
  std::minstd_rand random(5);
  std::vector<std::pair<Snapshot, std::vector<std::size_t>>> held;
  for (std::size_t step = 1; step < 5000; ++step) {
    const std::size_t i = random() % kObjects;
    if (random() % 4 == 0) {
      const StoreChange change{StoreChange::Type::kPut, pod(std::to_string(i), step)};
      store.apply({&change, 1}, std::to_string(step));
      EXPECT_EQ(store.resource_version(), std::to_string(step));
    } else {
      store.put(pod(std::to_string(i), step));
    }
    now[i] = step;
    EXPECT_EQ(store.get_by_key(std::to_string(i)).resource_version(), std::to_string(step));
    if (random() % 20 == 0) held.emplace_back(store.snapshot(), now);
    if (!held.empty() && random() % 20 == 0) {
      const auto at = static_cast<std::ptrdiff_t>(random() % held.size());
      expect(held[static_cast<std::size_t>(at)].first, held[static_cast<std::size_t>(at)].second);
      held.erase(held.begin() + at);
    }
  }
  expect(store.snapshot(), now);
}

TEST(IndexerTest, AnUpdateThatNoSnapshotSeesChangesOneSlot) {
  Indexer store(test_indexers());
  for (std::size_t i = 0; i < 100; ++i) store.put(pod("a/" + std::to_string(i), 1, on("n1")));
  const auto state = [&] { return store.snapshot().pin()->state; };
  const auto* before = state();
  const auto version = store.snapshot().version();
  store.put(pod("a/7", 2, on("n1")));
  EXPECT_EQ(state(), before);
  EXPECT_EQ(store.snapshot().version(), version + 1);
  const Snapshot held = store.snapshot();
  store.put(pod("a/7", 3, on("n1")));
  EXPECT_NE(state(), before) << "the snapshot has it";
  EXPECT_EQ(held.get("a", "7").resource_version(), "2");
  before = state();
  store.put(pod("a/7", 4, on("n1")));
  EXPECT_EQ(state(), before) << "the snapshot sees the slot of its own version";
  EXPECT_EQ(held.get("a", "7").resource_version(), "2");
  store.put(pod("a/7", 5, on("n2")));
  EXPECT_NE(state(), before) << "the index changes";
  EXPECT_THAT(store.index_keys("node", "n2"), ElementsAre("a/7"));
}

TEST(SnapshotTest, MayBeIteratedWhileTheStoreChanges) {
  Indexer store(test_indexers());
  for (int i = 0; i < 500; ++i) store.put(pod("a/" + std::to_string(i), 1, on("n1")));
  std::set<std::string> seen;
  for (const auto& object : store.snapshot().objects()) {
    EXPECT_EQ(object.resource_version(), "1");
    EXPECT_TRUE(seen.insert(object.key()).second);
    store.remove(object);
    store.put(pod("b/" + std::string(object.name()), 2, on("n1")));
  }
  EXPECT_EQ(seen.size(), 500u);
  for (const auto& object : store.snapshot().by_index("node", "n1"))
    store.put(pod(object.key(), 3, on("n2")));
  EXPECT_EQ(store.snapshot().by_index("node", "n2").size(), 500u);
  EXPECT_THAT(store.index_values("node"), ElementsAre("n2"));
}

TEST(SnapshotTest, OutlivesTheStore) {
  Snapshot snapshot;
  ObjectRange range;
  {
    Indexer store(test_indexers());
    store.put(pod("a/x", 1, on("n1")));
    snapshot = store.snapshot();
    range = store.snapshot().by_index("node", "n1");
  }
  EXPECT_EQ(snapshot.get("a", "x").key(), "a/x");
  EXPECT_THAT(keys(range), ElementsAre("a/x"));
}

TEST(SnapshotTest, EqualVersionsMeanEqualContent) {
  Indexer store;
  store.put(pod("a/x"));
  const auto version = store.snapshot().version();
  EXPECT_EQ(store.snapshot().version(), version);
  store.remove_key("a/none");
  store.put(pod("a/x", 2));
  EXPECT_GT(store.snapshot().version(), version);
}

// ----------------------------------------------------------------------------------- memory

TEST(SnapshotTest, KeepsOnlyItsOwnObjectsAlive) {
  Indexer store(test_indexers());
  std::vector<api::Object> first;
  for (std::size_t i = 0; i < 100; ++i) {
    first.push_back(pod("a/" + std::to_string(i), 1, on("n1")));
    store.put(first.back());
  }
  Snapshot held = store.snapshot();
  std::vector<api::Object> passed;
  constexpr std::size_t kVersions = test::kSanitized ? 10'000 : 100'000;
  for (std::size_t i = 0; i < kVersions; ++i) {
    passed.push_back(pod("a/" + std::to_string(i % 100), i, on("n" + std::to_string(i % 3))));
    store.put(passed.back());
  }
  for (const auto& object : first) EXPECT_EQ(test::references(object), 2u) << "the snapshot's";
  const auto alive = [&] {
    std::size_t n = 0;
    for (const auto& object : passed) n += test::references(object) - 1;
    return n;
  };
  // The current hundred, and the objects that the next batch frees.
  EXPECT_LE(alive(), 100u + 256u);
  held = {};
  for (const auto& object : first) EXPECT_EQ(test::references(object), 1u) << "freed at once";
  store.replace({}, "");
  store.snapshot();  // a reader that ends frees retired objects
  EXPECT_EQ(alive(), 0u);
}

TEST(SnapshotTest, SnapshotsShareObjects) {
  Indexer store(test_indexers());
  std::vector<api::Object> objects;
  std::vector<Snapshot> snapshots;
  for (std::size_t i = 0; i < 200; ++i) {
    objects.push_back(pod("a/" + std::to_string(i), 1, on("n1")));
    store.put(objects.back());
    snapshots.push_back(store.snapshot());
  }
  store.replace({}, "");
  std::minstd_rand random(3);
  while (!snapshots.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(random() % snapshots.size());
    snapshots.erase(snapshots.begin() + at);
    // The objects of the largest remaining snapshot are still there, the others are not.
    std::size_t largest = 0;
    for (const auto& snapshot : snapshots) largest = std::max(largest, snapshot.size());
    for (std::size_t i = 0; i < objects.size(); ++i)
      ASSERT_EQ(test::references(objects[i]), i < largest ? 2u : 1u);
  }
}

TEST(IndexerTest, FreesItsObjects) {
  std::vector<api::Object> objects;
  {
    Indexer store(by_uid_like_name, test_indexers());
    for (std::size_t i = 0; i < 1000; ++i) {
      objects.push_back(pod("a/" + std::to_string(i % 50), i, on("n" + std::to_string(i % 5))));
      store.put(objects.back());
      if (i % 7 == 0) store.remove_key("key:" + std::to_string(i % 11));
    }
  }
  for (const auto& object : objects) ASSERT_EQ(test::references(object), 1u);
}

}  // namespace
}  // namespace lookout::cache
