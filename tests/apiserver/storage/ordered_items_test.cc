#include "apiserver/storage/ordered_items.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace lookout::apiserver::storage {
namespace {

ItemPtr item(const std::string& key, Revision revision = 0) {
  return std::make_shared<const Item>(Item{key, {}, revision});
}

std::map<std::string, Revision> content(const OrderedItems::Snapshot& snapshot) {
  std::map<std::string, Revision> out;
  std::string last;
  OrderedItems::Snapshot::Position position;
  while (const Item* one = snapshot.next(position)) {
    EXPECT_LT(last, one->key);
    last = one->key;
    out[one->key] = one->revision;
  }
  EXPECT_EQ(out.size(), snapshot.size());
  return out;
}

// Enough keys for many runs, in an order that splits and joins them.
TEST(OrderedItems, EqualsAMapAndSnapshotsAreStable) {
  OrderedItems items;
  std::map<std::string, Revision> model;
  std::vector<std::pair<OrderedItems::Snapshot, std::map<std::string, Revision>>> past;
  std::mt19937 random(7);
  for (Revision step = 1; step <= 20000; ++step) {
    const std::string key = std::to_string(random() % 3000);
    // Grows, shrinks to nothing, and grows again.
    const bool growing = step < 8000 || step > 14000;
    if (random() % 10 < (growing ? 7u : 1u)) {
      items.put(item(key, step));
      model[key] = step;
    } else {
      items.erase(key);
      model.erase(key);
    }
    if (step % 1000 == 0) past.emplace_back(items.snapshot(), model);
  }
  EXPECT_EQ(content(items.snapshot()), model);
  for (const auto& [snapshot, expected] : past) EXPECT_EQ(content(snapshot), expected);
  for (int i = 0; i < 3000; ++i) {
    const std::string key = std::to_string(i);
    const ItemPtr* found = items.find(key);
    ASSERT_EQ(found != nullptr, model.contains(key)) << key;
    if (found != nullptr) {
      EXPECT_EQ((*found)->revision, model[key]);
    }
  }
}

TEST(OrderedItems, FindsPositionsAndDistances) {
  OrderedItems items;
  EXPECT_EQ(items.snapshot().distance(items.snapshot().lower_bound(""), items.snapshot().end()),
            0u);
  for (int i = 1000; i < 3000; ++i) items.put(item(std::to_string(i)));
  const auto snapshot = items.snapshot();
  for (int i = 1000; i < 3000; i += 37) {
    auto position = snapshot.lower_bound(std::to_string(i));
    EXPECT_EQ(snapshot.distance(position, snapshot.end()), static_cast<std::size_t>(3000 - i));
    EXPECT_EQ(snapshot.next(position)->key, std::to_string(i));
    auto between = snapshot.lower_bound(std::to_string(i) + "x");
    EXPECT_EQ(snapshot.distance(between, snapshot.end()), static_cast<std::size_t>(2999 - i));
  }
  auto behind = snapshot.lower_bound("9");
  EXPECT_EQ(snapshot.next(behind), nullptr);
}

}  // namespace
}  // namespace lookout::apiserver::storage
