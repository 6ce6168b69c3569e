#include "tools/cache/trie.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <unordered_map>

namespace lookout::cache::detail {
namespace {

struct Entry {
  std::uint32_t key;
  std::uint32_t value;
  friend auto operator<=>(const Entry&, const Entry&) = default;
};

/// The distribution of keys over hashes.
enum class Spread {
  kEven,
  kFewHashes,     // many keys share all 32 bits
  kOneHash,       // all keys do
  kSharedPrefix,  // the low bits, which choose the slot on the upper levels, are equal
  kOnlyLastLevel  // only the two highest bits differ
};

struct Ops {
  Spread spread = Spread::kEven;
  std::uint32_t hash(const Entry& entry) const { return hash_of(entry.key); }
  std::uint32_t hash_of(std::uint32_t key) const {
    switch (spread) {
      case Spread::kEven:
        return key * 2654435761u;
      case Spread::kFewHashes:
        return key % 5 * 0x9E3779B9u;
      case Spread::kOneHash:
        return 0xDEADBEEF;
      case Spread::kSharedPrefix:
        return key << 20 | 0x12345u;
      case Spread::kOnlyLastLevel:
        return key << 30 | 0x2AAAAAAAu;
    }
    return 0;
  }
};

using TestTrie = Trie<Entry, Ops>;
using Node = TestTrie::Node;
using TrieModel = std::unordered_map<std::uint32_t, std::uint32_t>;

auto has_key(std::uint32_t key) {
  return [key](const Entry& entry) { return entry.key == key; };
}

std::set<Entry> contents(const Node* root) {
  std::set<Entry> out;
  for (TestTrie::Cursor cursor(root); cursor.get() != nullptr; cursor.next())
    EXPECT_TRUE(out.insert(*cursor.get()).second) << "visited twice: " << cursor.get()->key;
  return out;
}

std::set<Entry> contents(const TrieModel& model) {
  std::set<Entry> out;
  for (const auto& [key, value] : model) out.insert({key, value});
  return out;
}

/// True if two tries have the same structure: the same nodes, with the same entries in the same
/// slots.
bool same_shape(const Node* a, const Node* b, unsigned shift = 0) {
  if (a == nullptr || b == nullptr) return a == b;
  if (a->entry_bits != b->entry_bits || a->child_bits != b->child_bits) return false;
  const bool list = shift >= 32;
  const auto entries =
      static_cast<std::size_t>(list ? int(a->entry_bits) : std::popcount(a->entry_bits));
  std::vector<Entry> ours(a->entries(), a->entries() + entries);
  std::vector<Entry> theirs(b->entries(), b->entries() + entries);
  if (list) {  // equal hashes have no order
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
  }
  if (ours != theirs) return false;
  if (list) return true;
  const auto* our_children = reinterpret_cast<Node* const*>(a->entries() + entries);
  const auto* their_children = reinterpret_cast<Node* const*>(b->entries() + entries);
  for (int i = 0; i < std::popcount(a->child_bits); ++i) {
    if (!same_shape(our_children[i], their_children[i], shift + 5)) return false;
  }
  return true;
}

/// A trie with its versions, and the memory that they need.
class Versions {
 public:
  explicit Versions(Spread spread) : ops_{spread} {}
  ~Versions() {
    while (!kept_.empty()) forget(kept_.begin()->first);
    free_unseen();
    TestTrie::destroy(root_, [](const Entry&) {});
    EXPECT_TRUE(retired_.empty());
  }

  /// One edit of the trie and of the model.
  template <class Change>
  void edit(Change change) {
    Edit edit{++version_, {}};
    change(edit);
    for (const Retired& piece : edit.retired) {
      EXPECT_LT(piece.birth, piece.death) << "a node of this edit was retired instead of freed";
      EXPECT_EQ(piece.death, version_);
      retired_.push_back(piece);
    }
    free_unseen();
  }

  void put(std::uint32_t key, std::uint32_t value, Edit& edit) {
    std::optional<Entry> replaced;
    root_ =
        TestTrie::put(root_, {key, value}, ops_.hash_of(key), ops_, has_key(key), edit, replaced);
    const auto it = model_.find(key);
    ASSERT_EQ(replaced.has_value(), it != model_.end());
    if (replaced) {
      EXPECT_EQ(replaced->value, it->second);
    }
    model_[key] = value;
  }

  void erase(std::uint32_t key, Edit& edit) {
    std::optional<Entry> erased;
    root_ = TestTrie::erase(root_, ops_.hash_of(key), has_key(key), edit, erased);
    const auto it = model_.find(key);
    ASSERT_EQ(erased.has_value(), it != model_.end());
    if (!erased) return;
    EXPECT_EQ(erased->value, it->second);
    model_.erase(it);
  }

  void keep() { kept_[version_] = {root_, model_}; }
  void forget(std::uint64_t version) {
    check(kept_.at(version).first, kept_.at(version).second);
    kept_.erase(version);
    free_unseen();
  }

  void check(const Node* root, const TrieModel& model) const {
    ASSERT_EQ(contents(root), contents(model));
    for (const auto& [key, value] : model) {
      const Entry* found = TestTrie::find(root, ops_.hash_of(key), has_key(key));
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->value, value);
    }
  }
  void check_all() const {
    check(root_, model_);
    for (const auto& [version, kept] : kept_) check(kept.first, kept.second);
  }

  /// The structure depends only on the content of the trie, not on its history.
  void check_canonical() const {
    Edit edit{1, {}};
    Node* fresh = nullptr;
    std::optional<Entry> replaced;
    for (const auto& [key, value] : model_) {
      fresh =
          TestTrie::put(fresh, {key, value}, ops_.hash_of(key), ops_, has_key(key), edit, replaced);
    }
    EXPECT_TRUE(same_shape(root_, fresh));
    TestTrie::destroy(fresh, [](const Entry&) {});
  }

  const TrieModel& model() const { return model_; }
  const Node* root() const { return root_; }
  const std::map<std::uint64_t, std::pair<const Node*, TrieModel>>& kept() const { return kept_; }

 private:
  /// Frees at once every node that no kept version contains, so that a wrong version number shows
  /// as a use after free.
  void free_unseen() {
    std::erase_if(retired_, [&](const Retired& piece) {
      const auto seen = kept_.lower_bound(piece.birth);
      if (seen != kept_.end() && seen->first < piece.death) return false;
      piece.dispose(piece.memory);
      return true;
    });
  }

  const Ops ops_;
  std::uint64_t version_ = 0;
  Node* root_ = nullptr;
  TrieModel model_;
  std::map<std::uint64_t, std::pair<const Node*, TrieModel>> kept_;
  std::vector<Retired> retired_;
};

class TrieSpreadTest : public testing::TestWithParam<Spread> {};

TEST_P(TrieSpreadTest, EqualsAModelInEveryVersion) {
  std::minstd_rand random(20260701u + static_cast<unsigned>(GetParam()));
  const std::uint32_t keys = GetParam() == Spread::kOneHash ? 60 : 400;
  Versions versions(GetParam());
  for (int step = 0; step < 1500; ++step) {
    versions.edit([&](Edit& edit) {
      // An edit makes one change or many, and reads its own changes.
      for (auto n = random() % 4 == 0 ? random() % 30 : 1; n > 0; --n) {
        const auto key = static_cast<std::uint32_t>(random() % keys);
        // Alternates between growing and shrinking.
        if (random() % 10 < (step / 250 % 2 == 0 ? 7u : 3u)) {
          versions.put(key, static_cast<std::uint32_t>(random()), edit);
        } else {
          versions.erase(key, edit);
        }
      }
    });
    if (random() % 20 == 0) versions.keep();
    if (versions.kept().size() > 12) {
      auto it = versions.kept().begin();
      std::advance(it, random() % versions.kept().size());
      versions.forget(it->first);
    }
    if (step % 50 == 0) {
      versions.check_all();
      versions.check_canonical();
    }
  }
  versions.check_all();
}

TEST_P(TrieSpreadTest, ErasingEverythingLeavesNothing) {
  Versions versions(GetParam());
  for (std::uint32_t key = 0; key < 100; ++key)
    versions.edit([&](Edit& edit) { versions.put(key, key, edit); });
  versions.keep();
  for (std::uint32_t key = 0; key < 100; ++key) {
    versions.edit([&](Edit& edit) { versions.erase(key * 37 % 100, edit); });
    versions.check_canonical();
  }
  EXPECT_EQ(versions.root(), nullptr);
  versions.check_all();
}

TEST_P(TrieSpreadTest, ASingleEntryIsInTheRoot) {
  Versions versions(GetParam());
  versions.edit([&](Edit& edit) {
    for (std::uint32_t key = 0; key < 50; ++key) versions.put(key, key, edit);
  });
  versions.edit([&](Edit& edit) {
    for (std::uint32_t key = 1; key < 50; ++key) versions.erase(key, edit);
  });
  ASSERT_NE(versions.root(), nullptr);
  EXPECT_EQ(std::popcount(versions.root()->entry_bits), 1);
  EXPECT_EQ(versions.root()->child_bits, 0u);
}

TEST_P(TrieSpreadTest, DoesNotFindAbsentKeys) {
  Versions versions(GetParam());
  EXPECT_EQ(TestTrie::find(nullptr, 0, has_key(0)), nullptr);
  versions.edit([&](Edit& edit) {
    for (std::uint32_t key = 0; key < 100; key += 2) versions.put(key, key, edit);
  });
  const Ops ops{GetParam()};
  for (std::uint32_t key = 1; key < 100; key += 2)
    EXPECT_EQ(TestTrie::find(versions.root(), ops.hash_of(key), has_key(key)), nullptr);
  versions.edit([&](Edit& edit) {
    for (std::uint32_t key = 1; key < 100; key += 2) versions.erase(key, edit);
    EXPECT_TRUE(edit.retired.empty()) << "erasing what is not there changed something";
  });
}

TEST(TrieTest, AChangeReplacesOnePath) {
  Versions versions(Spread::kEven);
  versions.edit([&](Edit& edit) {
    for (std::uint32_t key = 0; key < 20'000; ++key) versions.put(key, key, edit);
  });
  versions.keep();
  versions.edit([&](Edit& edit) {
    versions.put(7, 0, edit);
    EXPECT_LE(edit.retired.size(), 5u);  // the nodes on one path from the root
  });
}

std::string spread_name(const testing::TestParamInfo<Spread>& test) {
  constexpr const char* kNames[] = {"Even", "FewHashes", "OneHash", "SharedPrefix",
                                    "OnlyLastLevel"};
  return kNames[static_cast<int>(test.param)];
}
INSTANTIATE_TEST_SUITE_P(, TrieSpreadTest,
                         testing::Values(Spread::kEven, Spread::kFewHashes, Spread::kOneHash,
                                         Spread::kSharedPrefix, Spread::kOnlyLastLevel),
                         spread_name);

}  // namespace
}  // namespace lookout::cache::detail
