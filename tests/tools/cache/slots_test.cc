#include "tools/cache/slots.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace lookout::cache::detail {
namespace {

using Header = api::detail::ObjectHeader;
using Model = std::map<Slots::Number, const Header*>;

class SlotsTest : public testing::Test {
 protected:
  ~SlotsTest() override {
    for (const Retired& piece : retired_) piece.dispose(piece.memory);
    now_.destroy([](const Slot&) {});
  }

  const Header* object() {
    headers_.emplace_back();
    return &headers_.back();
  }
  /// Keeps the nodes that an edit retires, because old versions are read later.
  void keep(Edit& edit) {
    retired_.insert(retired_.end(), edit.retired.begin(), edit.retired.end());
  }
  static Model contents(const Slots& slots) {
    Model out;
    for (Slots::Number i = 0; i < slots.size(); ++i) {
      if (slots[i].header != nullptr) out[i] = slots[i].header;
    }
    return out;
  }
  static std::vector<const Header*> walk(const Slots& slots) {
    std::vector<const Header*> out;
    for (Slots::Cursor cursor(slots); cursor.get() != nullptr; cursor.next())
      out.push_back(cursor.get()->header);
    return out;
  }
  static std::vector<const Header*> in_order(const Model& model) {
    std::vector<const Header*> out;
    for (const auto& [number, header] : model) out.push_back(header);
    return out;
  }

  Slots now_;
  std::deque<Header> headers_;
  std::vector<Retired> retired_;
};

TEST_F(SlotsTest, IsEmptyAtFirst) {
  EXPECT_EQ(now_.size(), 0u);
  EXPECT_TRUE(walk(now_).empty());
}

TEST_F(SlotsTest, GrowsByLevels) {
  // One leaf has 32, one level above it 2048; a third level begins here.
  constexpr Slots::Number kObjects = 5000;
  Edit edit{2, {}};
  Model model;
  for (Slots::Number i = 0; i < kObjects; ++i) {
    ASSERT_EQ(now_.append(edit), i);
    model[i] = object();
    now_.change(i, edit).set(model[i], edit.version, static_cast<std::uint16_t>(i));
    if (i < 40 || i % 997 == 0 || (i > 2040 && i < 2060)) {
      ASSERT_EQ(contents(now_), model) << i;
    }
  }
  EXPECT_TRUE(edit.retired.empty()) << "nobody else has seen its nodes";
  EXPECT_EQ(walk(now_), in_order(model));
  EXPECT_EQ(now_[4321].birth(), 2u);
  EXPECT_EQ(now_[4321].filing(), 4321u);
}

TEST_F(SlotsTest, OldVersionsStayAsTheyWere) {
  std::minstd_rand random(1);
  Model model;
  std::vector<std::pair<Slots, Model>> versions;
  for (std::uint64_t version = 2; version < 300; ++version) {
    Edit edit{version, {}};
    for (int change = 0; change < 20; ++change) {
      Slots::Number at = static_cast<Slots::Number>(random() % (now_.size() + 1));
      if (random() % 2 == 0) at = now_.size();
      if (at == now_.size()) at = now_.append(edit);
      Slot& slot = now_.change(at, edit);
      if (random() % 4 == 0) {
        now_.clear(at, edit);
        model.erase(at);
      } else {
        slot.set(object(), version, 0);
        model[at] = slot.header;
      }
    }
    keep(edit);
    versions.emplace_back(now_, model);
  }
  ASSERT_GT(now_.size(), 2048u);
  for (const auto& [slots, expected] : versions) {
    ASSERT_EQ(contents(slots), expected);
    ASSERT_EQ(walk(slots), in_order(expected));
  }
}

TEST_F(SlotsTest, FreesEmptyLeaves) {
  constexpr Slots::Number kObjects = 5000;
  Edit first{2, {}};
  Model model;
  for (Slots::Number i = 0; i < kObjects; ++i) {
    model[i] = object();
    now_.change(now_.append(first), first).set(model[i], 2, 0);
  }
  const Slots full = now_;
  const Model before = model;
  Edit second{3, {}};
  for (Slots::Number i = 40; i < kObjects; ++i) {
    if (i == 3000) continue;
    now_.clear(i, second);
    model.erase(i);
  }
  EXPECT_EQ(contents(now_), model);
  EXPECT_EQ(walk(now_), in_order(model));
  EXPECT_EQ(&now_[64], &now_[128]) << "neither has a leaf";
  EXPECT_EQ(now_[4999].header, nullptr);
  now_.change(4999, second).set(model[4999] = object(), 3, 0);
  now_.change(41, second).set(model[41] = object(), 3, 0);
  EXPECT_EQ(walk(now_), in_order(model));
  Edit third{4, {}};
  for (const auto& [number, header] : Model(model)) now_.clear(number, third);
  EXPECT_TRUE(walk(now_).empty());
  EXPECT_EQ(now_[0].header, nullptr);
  EXPECT_EQ(contents(full), before) << "as it was";
  EXPECT_EQ(walk(full), in_order(before));
  Edit fourth{5, {}};
  while (now_.size() < 40'000) now_.append(fourth);
  now_.change(1234, fourth).set(object(), 5, 0);
  EXPECT_EQ(walk(now_), std::vector<const Header*>{now_[1234].header});
  EXPECT_EQ(contents(now_).size(), 1u);
  keep(second);
  keep(third);
  keep(fourth);
}

TEST_F(SlotsTest, AnIterationSkipsWholeMissingNodes) {
  Edit edit{2, {}};
  while (now_.size() < 200'000) now_.append(edit);
  EXPECT_EQ(now_.skip_missing(0), now_.size()) << "there is no node at all";
  now_.change(5, edit).set(object(), 2, 0);
  now_.change(150'000, edit).set(object(), 2, 0);
  EXPECT_EQ(now_.skip_missing(0), 0u);
  EXPECT_EQ(now_.skip_missing(17), 17u) << "its leaf exists";
  EXPECT_EQ(now_.skip_missing(32), 149'984u) << "the first number of the next leaf";
  EXPECT_EQ(now_.skip_missing(150'000), 150'000u);
  EXPECT_EQ(now_.skip_missing(150'016), now_.size());
  EXPECT_EQ(walk(now_), (std::vector<const Header*>{now_[5].header, now_[150'000].header}));
}

TEST_F(SlotsTest, ChangesThePathToOneSlotOnly) {
  Edit first{2, {}};
  for (Slots::Number i = 0; i < 3000; ++i)
    now_.change(now_.append(first), first).set(object(), 2, 0);
  Edit second{3, {}};
  const Slots before = now_;
  now_.change(100, second).set(object(), 3, 0);
  EXPECT_EQ(second.retired.size(), 3u) << "a leaf and two nodes above it";
  EXPECT_NE(&before[100], &now_[100]);
  EXPECT_EQ(&before[1000], &now_[1000]) << "what has not changed is shared";
  keep(second);
}

TEST_F(SlotsTest, ASlotChangesInPlaceInAllVersionsThatShareItsLeaf) {
  Edit first{2, {}};
  for (Slots::Number i = 0; i < 100; ++i)
    now_.change(now_.append(first), first).set(object(), 2, 0);
  const Slots before = now_;
  Edit second{3, {}};
  now_.change(5, second).set(object(), 3, 0);
  EXPECT_EQ(now_.at(5).birth, 3u) << "a leaf of its own";
  EXPECT_EQ(now_.at(50).birth, 2u);
  const Header* const old = before[5].header;
  const Header* const other = object();
  now_.at(5).slot.replace(other, 4, 9);
  EXPECT_EQ(now_[5].load(), other);
  EXPECT_EQ(now_[5].birth(), 4u);
  EXPECT_EQ(now_[5].filing(), 9u);
  EXPECT_EQ(now_.at(5).birth, 3u) << "the leaf is as old as before";
  EXPECT_EQ(before[5].load(), old);
  now_.at(50).slot.replace(other, 4, 0);
  EXPECT_EQ(before[50].load(), other) << "the same leaf";
  keep(second);
}

TEST_F(SlotsTest, ReusesSpareNodes) {
  SpareNodes spare;
  spare.keep(1);
  Edit first{2, {}, &spare};
  now_.change(now_.append(first), first).set(object(), 2, 7);
  const void* const old = &now_[0];
  Edit second{3, {}, &spare};
  now_.change(0, second).set(object(), 3, 7);
  ASSERT_EQ(second.retired.size(), 1u);
  spare.add(second.retired.front().memory);
  Edit third{4, {}, &spare};
  now_.change(0, third).set(object(), 4, 7);
  EXPECT_EQ(&now_[0], old);
  EXPECT_EQ(now_[0].birth(), 4u);
  keep(third);
}

}  // namespace
}  // namespace lookout::cache::detail
