// A persistent hash trie: old versions stay readable while new ones are created.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <type_traits>
#include <vector>

#include "lookout/base/popcount.h"
#include "tools/cache/reclaimer.h"

namespace lookout::cache::detail {

/// A change under construction: the version that will contain it, and the memory that it retires.
struct Edit {
  std::uint64_t version = 0;
  std::vector<Retired> retired;
  SpareNodes* spare = nullptr;

  void retire(void* memory, void (*dispose)(void*), std::uint64_t birth) {
    retired.push_back({memory, dispose, birth, version});
  }
};

/// A compressed hash-array mapped prefix tree (CHAMP): 32-way nodes without empty places, entries
/// before children. Five bits of the hash select the place on each level; entries with equal hashes
/// share a list at the bottom.
///
/// An edit changes nodes that it has created in place, and copies and retires others (a few hundred
/// bytes on the path from the root). Copying moves plain pointers: the caller retires what entries
/// refer to.
///
/// Entry is trivially copyable; Ops has `static std::uint32_t hash(const Entry&)` or, for a
/// stateful one, a const member.
template <class Entry, class Ops>
class Trie {
  static_assert(std::is_trivially_copyable_v<Entry> && alignof(Entry) <= alignof(std::uint64_t));

  static constexpr unsigned kBits = 5;
  static constexpr unsigned kHashBits = 32;
  static constexpr unsigned kLevels =
      (kHashBits + kBits - 1) / kBits + 1;  // plus the list at the bottom

 public:
  struct Node {
    std::uint64_t birth;
    std::uint32_t entry_bits;  // in a list at the bottom: the number of entries
    std::uint32_t child_bits;

    Entry* entries() { return reinterpret_cast<Entry*>(this + 1); }
    const Entry* entries() const { return reinterpret_cast<const Entry*>(this + 1); }
  };

  /// The entry with this hash for which `match` is true, or null.
  template <class Match>
  static const Entry* find(const Node* node, std::uint32_t hash, Match match) {
    for (unsigned shift = 0; node != nullptr; shift += kBits) {
      if (shift >= kHashBits) {
        for (std::uint32_t i = 0; i < node->entry_bits; ++i) {
          if (match(node->entries()[i])) return &node->entries()[i];
        }
        return nullptr;
      }
      const std::uint32_t bit = bit_of(hash, shift);
      if ((node->entry_bits & bit) != 0) {
        const Entry* entry = &node->entries()[index_of(node->entry_bits, bit)];
        return match(*entry) ? entry : nullptr;
      }
      if ((node->child_bits & bit) == 0) return nullptr;
      node = children(node, false)[index_of(node->child_bits, bit)];
    }
    return nullptr;
  }

  /// Adds `entry` and returns the new root; `replaced` is the previous entry.
  template <class Match>
  static Node* put(Node* root, const Entry& entry, std::uint32_t hash, const Ops& ops, Match match,
                   Edit& edit, std::optional<Entry>& replaced) {
    return put_at(root, entry, hash, 0, ops, match, edit, replaced);
  }

  /// Removes the matching entry and returns the new root; `erased` is the entry.
  template <class Match>
  static Node* erase(Node* root, std::uint32_t hash, Match match, Edit& edit,
                     std::optional<Entry>& erased) {
    if (root == nullptr) return nullptr;
    return erase_at(root, hash, 0, match, edit, erased);
  }

  /// Calls `visit` for every entry of a tree without readers, and frees its nodes.
  template <class Visit>
  static void destroy(Node* node, Visit visit, unsigned shift = 0) {
    if (node == nullptr) return;
    const std::uint32_t n = entry_count(node, shift);
    for (std::uint32_t i = 0; i < n; ++i) visit(node->entries()[i]);
    const std::uint32_t c = child_count(node, shift);
    for (std::uint32_t i = 0; i < c; ++i)
      destroy(children(node, shift >= kHashBits)[i], visit, shift + kBits);
    std::free(node);
  }

  /// Iterates over all entries, in no particular order.
  class Cursor {
   public:
    Cursor() = default;
    explicit Cursor(const Node* root) {
      if (root != nullptr) push(root);
      settle();
    }
    const Entry* get() const {
      return depth_ == 0 ? nullptr : &stack_[depth_ - 1].node->entries()[stack_[depth_ - 1].entry];
    }
    void next() {
      ++stack_[depth_ - 1].entry;
      settle();
    }

   private:
    struct Level {
      const Node* node = nullptr;
      std::uint32_t entry = 0;
      std::uint32_t child = 0;
      std::uint32_t entries = 0;
      std::uint32_t children = 0;
    };

    void push(const Node* node) {
      const unsigned shift = depth_ * kBits;
      Level& level = stack_[depth_++];
      level = {node, 0, 0, entry_count(node, shift), child_count(node, shift)};
      // Children are scattered in memory: prefetch all of them.
      Node** const nodes = children(node, shift >= kHashBits);
      for (std::uint32_t i = 0; i < level.children; ++i) __builtin_prefetch(nodes[i]);
    }
    /// Moves to the next entry if the current place is past the last one of its node.
    void settle() {
      while (depth_ > 0) {
        Level& level = stack_[depth_ - 1];
        if (level.entry < level.entries) return;
        if (level.child < level.children) {
          const unsigned shift = (depth_ - 1) * kBits;
          push(children(level.node, shift >= kHashBits)[level.child++]);
        } else {
          --depth_;
        }
      }
    }

    Level stack_[kLevels];
    unsigned depth_ = 0;
  };

 private:
  static std::uint32_t bit_of(std::uint32_t hash, unsigned shift) {
    return 1u << (hash >> shift & 31u);
  }
  static std::uint32_t index_of(std::uint32_t bits, std::uint32_t bit) {
    return static_cast<std::uint32_t>(popcount(bits & (bit - 1)));
  }
  static std::uint32_t entry_count(const Node* node, unsigned shift) {
    return shift >= kHashBits ? node->entry_bits
                              : static_cast<std::uint32_t>(popcount(node->entry_bits));
  }
  static std::uint32_t child_count(const Node* node, unsigned shift) {
    return shift >= kHashBits ? 0 : static_cast<std::uint32_t>(popcount(node->child_bits));
  }
  static Node** children(const Node* node, bool list) {
    const std::uint32_t n =
        list ? node->entry_bits : static_cast<std::uint32_t>(popcount(node->entry_bits));
    return reinterpret_cast<Node**>(const_cast<Entry*>(node->entries() + n));
  }

  static Node* allocate(std::uint32_t entries, std::uint32_t child_nodes, const Edit& edit) {
    void* memory =
        std::malloc(sizeof(Node) + entries * sizeof(Entry) + child_nodes * sizeof(Node*));
    if (memory == nullptr) throw std::bad_alloc();
    auto* node = static_cast<Node*>(memory);
    node->birth = edit.version;
    return node;
  }

  /// Drops a node: frees it if the edit created it, otherwise retires it.
  static void drop(Node* node, Edit& edit) {
    if (node->birth == edit.version) {
      std::free(node);
    } else {
      edit.retire(node, &std::free, node->birth);
    }
  }

  static std::size_t size_of(const Node* node, unsigned shift) {
    return sizeof(Node) + entry_count(node, shift) * sizeof(Entry) +
           child_count(node, shift) * sizeof(Node*);
  }

  /// The node itself if the edit made it, else a copy.
  static Node* editable(Node* node, unsigned shift, Edit& edit) {
    if (node->birth == edit.version) return node;
    const std::size_t size = size_of(node, shift);
    void* memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    std::memcpy(memory, node, size);
    auto* copy = static_cast<Node*>(memory);
    copy->birth = edit.version;
    drop(node, edit);
    return copy;
  }

  /// A copy of `node` with other bits: the entry of `entry_bit` or the child of `child_bit` is added
  /// (from `entry` or `child`) or removed.
  static Node* reshape(Node* node, std::uint32_t entry_bits, std::uint32_t child_bits,
                       const Entry* entry, Node* child, Edit& edit) {
    const auto entries = static_cast<std::uint32_t>(popcount(entry_bits));
    const auto child_nodes = static_cast<std::uint32_t>(popcount(child_bits));
    Node* out = allocate(entries, child_nodes, edit);
    out->entry_bits = entry_bits;
    out->child_bits = child_bits;
    merge(node->entries(), node->entry_bits, out->entries(), entry_bits, entry);
    merge(children(node, false), node->child_bits, children(out, false), child_bits,
          child == nullptr ? nullptr : &child);
    drop(node, edit);
    return out;
  }

  template <class T>
  static void merge(const T* from, std::uint32_t from_bits, T* to, std::uint32_t to_bits,
                    const T* added) {
    const std::uint32_t changed = from_bits ^ to_bits;
    const auto n = static_cast<std::size_t>(popcount(from_bits));
    if (changed == 0) {
      if (n > 0) std::memcpy(to, from, n * sizeof(T));
      return;
    }
    const std::size_t at = index_of(from_bits, changed);
    if (at > 0) std::memcpy(to, from, at * sizeof(T));
    if ((to_bits & changed) != 0) {
      to[at] = *added;
      if (n > at) std::memcpy(to + at + 1, from + at, (n - at) * sizeof(T));
    } else if (n > at + 1) {
      std::memcpy(to + at, from + at + 1, (n - at - 1) * sizeof(T));
    }
  }

  static Node* single(const Entry& entry, std::uint32_t hash, unsigned shift, Edit& edit) {
    Node* node = allocate(1, 0, edit);
    node->entry_bits = shift >= kHashBits ? 1 : bit_of(hash, shift);
    node->child_bits = 0;
    node->entries()[0] = entry;
    return node;
  }

  /// A node for two entries whose hashes agree in all bits above `shift`.
  static Node* pair(const Entry& a, std::uint32_t hash_a, const Entry& b, std::uint32_t hash_b,
                    unsigned shift, Edit& edit) {
    if (shift >= kHashBits) {
      Node* list = allocate(2, 0, edit);
      list->entry_bits = 2;
      list->child_bits = 0;
      list->entries()[0] = a;
      list->entries()[1] = b;
      return list;
    }
    const std::uint32_t bit_a = bit_of(hash_a, shift);
    const std::uint32_t bit_b = bit_of(hash_b, shift);
    if (bit_a == bit_b) {
      Node* node = allocate(0, 1, edit);
      node->entry_bits = 0;
      node->child_bits = bit_a;
      children(node, false)[0] = pair(a, hash_a, b, hash_b, shift + kBits, edit);
      return node;
    }
    Node* node = allocate(2, 0, edit);
    node->entry_bits = bit_a | bit_b;
    node->child_bits = 0;
    node->entries()[bit_a < bit_b ? 0 : 1] = a;
    node->entries()[bit_a < bit_b ? 1 : 0] = b;
    return node;
  }

  template <class Match>
  static Node* put_at(Node* node, const Entry& entry, std::uint32_t hash, unsigned shift,
                      const Ops& ops, Match match, Edit& edit, std::optional<Entry>& replaced) {
    if (node == nullptr) return single(entry, hash, shift, edit);
    if (shift >= kHashBits) return put_in_list(node, entry, shift, match, edit, replaced);
    const std::uint32_t bit = bit_of(hash, shift);
    if ((node->entry_bits & bit) != 0) {
      const std::uint32_t i = index_of(node->entry_bits, bit);
      const Entry existing = node->entries()[i];
      if (match(existing)) {
        replaced = existing;
        Node* out = editable(node, shift, edit);
        out->entries()[i] = entry;
        return out;
      }
      Node* child = pair(existing, ops.hash(existing), entry, hash, shift + kBits, edit);
      return move_down(node, bit, child, edit);
    }
    if ((node->child_bits & bit) != 0) {
      const std::uint32_t i = index_of(node->child_bits, bit);
      Node* child =
          put_at(children(node, false)[i], entry, hash, shift + kBits, ops, match, edit, replaced);
      Node* out = editable(node, shift, edit);
      children(out, false)[i] = child;
      return out;
    }
    return reshape(node, node->entry_bits | bit, node->child_bits, &entry, nullptr, edit);
  }

  /// Replaces the entry at `bit` with a child.
  static Node* move_down(Node* node, std::uint32_t bit, Node* child, Edit& edit) {
    return reshape(node, node->entry_bits & ~bit, node->child_bits | bit, nullptr, child, edit);
  }

  template <class Match>
  static Node* put_in_list(Node* list, const Entry& entry, unsigned shift, Match match, Edit& edit,
                           std::optional<Entry>& replaced) {
    const std::uint32_t n = list->entry_bits;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!match(list->entries()[i])) continue;
      replaced = list->entries()[i];
      Node* out = editable(list, shift, edit);
      out->entries()[i] = entry;
      return out;
    }
    Node* out = allocate(n + 1, 0, edit);
    out->entry_bits = n + 1;
    out->child_bits = 0;
    std::memcpy(out->entries(), list->entries(), n * sizeof(Entry));
    out->entries()[n] = entry;
    drop(list, edit);
    return out;
  }

  template <class Match>
  static Node* erase_at(Node* node, std::uint32_t hash, unsigned shift, Match match, Edit& edit,
                        std::optional<Entry>& erased) {
    if (shift >= kHashBits) return erase_from_list(node, match, edit, erased);
    const std::uint32_t bit = bit_of(hash, shift);
    if ((node->entry_bits & bit) != 0) {
      const Entry existing = node->entries()[index_of(node->entry_bits, bit)];
      if (!match(existing)) return node;
      erased = existing;
      if (popcount(node->entry_bits) + popcount(node->child_bits) == 1) {
        drop(node, edit);
        return nullptr;
      }
      return reshape(node, node->entry_bits & ~bit, node->child_bits, nullptr, nullptr, edit);
    }
    if ((node->child_bits & bit) == 0) return node;
    const std::uint32_t i = index_of(node->child_bits, bit);
    Node* before = children(node, false)[i];
    Node* child = erase_at(before, hash, shift + kBits, match, edit, erased);
    if (!erased) return node;
    if (child == nullptr) {
      if (node->entry_bits == 0 && popcount(node->child_bits) == 1) {
        drop(node, edit);
        return nullptr;
      }
      return reshape(node, node->entry_bits, node->child_bits & ~bit, nullptr, nullptr, edit);
    }
    if (entry_count(child, shift + kBits) == 1 && child_count(child, shift + kBits) == 0) {
      // A single entry moves up as far as possible.
      const Entry entry = child->entries()[0];
      drop(child, edit);
      return reshape(node, node->entry_bits | bit, node->child_bits & ~bit, &entry, nullptr, edit);
    }
    Node* out = editable(node, shift, edit);
    children(out, false)[i] = child;
    return out;
  }

  template <class Match>
  static Node* erase_from_list(Node* list, Match match, Edit& edit, std::optional<Entry>& erased) {
    const std::uint32_t n = list->entry_bits;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!match(list->entries()[i])) continue;
      erased = list->entries()[i];
      if (n == 1) {
        drop(list, edit);
        return nullptr;
      }
      Node* out = allocate(n - 1, 0, edit);
      out->entry_bits = n - 1;
      out->child_bits = 0;
      std::memcpy(out->entries(), list->entries(), i * sizeof(Entry));
      std::memcpy(out->entries() + i, list->entries() + i + 1, (n - 1 - i) * sizeof(Entry));
      drop(list, edit);
      return out;
    }
    return list;
  }
};

}  // namespace lookout::cache::detail
