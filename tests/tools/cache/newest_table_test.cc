#include "tools/cache/newest_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace lookout::cache::detail {
namespace {

using Header = NewestTable::Header;

/// Object headers with hashes that the test chooses.
class NewestTableTest : public testing::Test {
 protected:
  const Header* object(std::uint32_t hash) {
    headers_.emplace_back();
    headers_.back().key_hash = hash;
    return &headers_.back();
  }
  static bool has(const NewestTable& table, const Header* object) {
    return table.find(object->key_hash, [&](const Header* found) { return found == object; }) ==
           object;
  }

  std::deque<Header> headers_;
};

TEST_F(NewestTableTest, ContainsTheInitialObjects) {
  std::vector<const Header*> objects;
  for (std::uint32_t i = 0; i < 1000; ++i) objects.push_back(object(i * 2654435761u));
  const NewestTable table(objects);
  for (const Header* one : objects) EXPECT_TRUE(has(table, one));
  EXPECT_FALSE(has(table, object(12345)));
}

TEST_F(NewestTableTest, ReportsWhenItIsTooSmallOrTooLarge) {
  NewestTable table({});
  EXPECT_TRUE(table.suits(0));
  std::size_t most = 0;
  while (table.suits(most + 1)) ++most;
  EXPECT_GE(most, 8u);
  std::vector<const Header*> objects;
  for (std::uint32_t i = 0; i < 1000; ++i) objects.push_back(object(i * 2654435761u));
  const NewestTable large(objects);
  EXPECT_TRUE(large.suits(1000));
  EXPECT_TRUE(large.suits(500));
  EXPECT_FALSE(large.suits(10));
}

/// The difficult cases of open addressing: probe runs that wrap around the end of the table, many
/// objects with one hash, gaps in the middle of runs.
TEST_F(NewestTableTest, EqualsAMapForAnyHashes) {
  for (const std::uint32_t distinct : {1u, 3u, 20u, 0xFFFFFFFFu}) {
    std::minstd_rand random(distinct);
    const auto hash = [&]() -> std::uint32_t {
      // (The upper bits choose the slot: these hashes are at the end of the table, or anywhere.)
      return distinct == 0xFFFFFFFFu
                 ? static_cast<std::uint32_t>(random()) * 2654435761u
                 : 0xFFFFFFFFu - static_cast<std::uint32_t>(random()) % distinct;
    };
    std::vector<const Header*> kept;
    for (int i = 0; i < 400; ++i) kept.push_back(object(hash()));
    NewestTable table(kept);
    std::vector<const Header*> gone;
    for (int i = 0; i < 5000; ++i) {
      const std::size_t at = random() % kept.size();
      switch (random() % 3) {
        case 0:
          if (!table.suits(kept.size() + 1)) break;
          kept.push_back(object(hash()));
          table.insert(kept.back());
          break;
        case 1: {
          const Header* after = object(kept[at]->key_hash);
          table.replace(kept[at], after);
          gone.push_back(std::exchange(kept[at], after));
          break;
        }
        default:
          if (kept.size() < 100) break;
          table.erase(kept[at]);
          gone.push_back(kept[at]);
          kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (i % 500 != 0) continue;
      for (const Header* one : kept) ASSERT_TRUE(has(table, one));
      for (const Header* one : gone) ASSERT_FALSE(has(table, one));
    }
  }
}

TEST_F(NewestTableTest, ErasingAnAbsentObjectChangesNothing) {
  const Header* kept = object(7);
  const Header* const all[] = {kept};
  NewestTable table(all);
  table.erase(object(7));
  table.replace(object(7), object(7));
  EXPECT_TRUE(has(table, kept));
}

}  // namespace
}  // namespace lookout::cache::detail
