// Slots: a persistent array of the objects of a store.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "lookout/api/detail/object_header.h"
#include "tools/cache/trie.h"

namespace lookout::cache::detail {

/// One object of a store. The pointer is that of an api::Object; the newest version owns one reference
/// to it. Null if the slot is free.
struct Slot {
  const api::detail::ObjectHeader* header = nullptr;
  std::uint64_t packed = 0;

  /// The version that added the object.
  std::uint64_t birth() const { return packed >> 16; }
  /// A checksum of the object's values in all indexes.
  std::uint16_t filing() const { return static_cast<std::uint16_t>(packed); }
  void set(const api::detail::ObjectHeader* object, std::uint64_t version, std::uint16_t sum) {
    header = object;
    packed = version << 16 | sum;
  }
  /// set(), safe with concurrent load().
  void replace(const api::detail::ObjectHeader* object, std::uint64_t version, std::uint16_t sum) {
    std::atomic_ref(header).store(object, std::memory_order_release);
    packed = version << 16 | sum;
  }
  /// `header`, for readers of slots that may change in place (a snapshot's slots do not).
  const api::detail::ObjectHeader* load() const {
    return std::atomic_ref(const_cast<Slot*>(this)->header).load(std::memory_order_acquire);
  }
};

/// The slots of one version of a store, by number: a tree of nodes of one size, with 32 slots in a leaf
/// and 64 children in an inner node. An edit changes nodes that it has created in place, and copies
/// others on the path to the slot: two nodes for a thousand objects, three for a hundred thousand, 520
/// bytes each. If a version changes only one slot and no snapshot sees its leaf, the slot is changed in
/// place: at(). Empty nodes are freed.
///
/// A small value that does not own the nodes.
class Slots {
 public:
  using Number = std::uint32_t;

  /// All used numbers are below this one.
  Number size() const { return size_; }

  /// Requires number < size().
  const Slot& operator[](Number number) const { return leaf_of(number)->slots[number % kSlots]; }

  /// A slot to change in place, and the version that created its leaf.
  struct InPlace {
    Slot& slot;
    std::uint64_t birth;
  };
  InPlace at(Number number) const {
    auto* const leaf = const_cast<Node*>(leaf_of(number));
    return {leaf->slots[number % kSlots], leaf->birth};
  }

  /// The slot, which the edit may change.
  Slot& change(Number number, Edit& edit) {
    Node** place = &root_;
    for (unsigned level = depth_;; --level) {
      Node* const node = editable(*place, edit);
      *place = node;
      if (level == 0) return node->slots[number % kSlots];
      place = &node->children[child_of(number, level)];
    }
  }

  /// Empties a slot. Empty nodes are freed; a missing node reads as empty slots.
  void clear(Number number, Edit& edit) { clear(root_, depth_, number, edit); }

  /// Adds a slot.
  Number append(Edit& edit) {
    if (size_ == std::uint64_t{kSlots} << (kChildBits * depth_)) {
      if (root_ != nullptr) {
        Node* const above = editable(nullptr, edit);
        above->children[0] = root_;
        root_ = above;
      }
      ++depth_;
    }
    return size_++;
  }

  /// The first number from this one on whose leaf exists, or size(). Skips missing nodes as a whole.
  [[gnu::noinline]] Number skip_missing(Number number) const {
    while (number < size_) {
      const Node* node = root_;
      unsigned level = depth_;
      for (; level > 0 && node != nullptr; --level) node = node->children[child_of(number, level)];
      if (node != nullptr) return number;
      const std::uint64_t missing = std::uint64_t{kSlots} << (kChildBits * level);
      number =
          static_cast<Number>(std::min<std::uint64_t>(size_, (number / missing + 1) * missing));
    }
    return size_;
  }

  /// Calls `visit` for the objects of an array without readers, and frees its nodes.
  template <class Visit>
  void destroy(Visit visit) {
    destroy(root_, depth_, visit);
  }

  /// Iterates over the used slots, in order of their numbers. The array must outlive it.
  class Cursor {
   public:
    Cursor() = default;
    explicit Cursor(const Slots& slots) : slots_(&slots) { settle(); }
    const Slot* get() const { return slot_; }
    void next() {
      ++number_;
      settle();
    }

   private:
    void settle() {
      while (number_ < slots_->size_) {
        if (number_ % kSlots != 0) {
          ++slot_;
        } else if (const Node* const leaf = slots_->leaf_of(number_); leaf != &kEmpty) {
          slot_ = leaf->slots;
        } else {
          number_ = slots_->skip_missing(number_);
          continue;
        }
        if (slot_->header != nullptr) return;
        ++number_;
      }
      slot_ = nullptr;
    }

    const Slots* slots_ = nullptr;
    Number number_ = 0;
    const Slot* slot_ = nullptr;
  };

 private:
  static constexpr Number kSlots = 32;
  static constexpr unsigned kSlotBits = 5;
  static constexpr unsigned kChildBits = 6;

  struct Node {
    std::uint64_t birth;
    union {
      Slot slots[kSlots];
      Node* children[1U << kChildBits];
    };
  };

  static constexpr Node kEmpty{};

  static Number child_of(Number number, unsigned level) {
    return number >> (kSlotBits + kChildBits * (level - 1)) & ((1U << kChildBits) - 1);
  }

  const Node* leaf_of(Number number) const {
    const Node* node = root_;
    for (unsigned level = depth_; level > 0 && node != nullptr; --level)
      node = node->children[child_of(number, level)];
    return node == nullptr ? &kEmpty : node;
  }

  /// The node itself if the edit created it, otherwise a copy; an empty node for null.
  static Node* editable(Node* node, Edit& edit) {
    if (node != nullptr && node->birth == edit.version) return node;
    void* memory = edit.spare == nullptr ? nullptr : edit.spare->take();
    if (memory == nullptr) memory = std::malloc(sizeof(Node));
    if (memory == nullptr) throw std::bad_alloc();
    if (node != nullptr) {
      // (For a constant size, the compiler generates slower code than memcpy().)
      std::size_t size = sizeof(Node);
      asm("" : "+r"(size));
      std::memcpy(memory, node, size);
      edit.retire(node, &SpareNodes::dispose, node->birth);
    } else {
      std::memset(memory, 0, sizeof(Node));
    }
    auto* const out = static_cast<Node*>(memory);
    out->birth = edit.version;
    return out;
  }

  static void clear(Node*& place, unsigned level, Number number, Edit& edit) {
    Node* const node = place = editable(place, edit);
    if (level == 0) {
      node->slots[number % kSlots].set(nullptr, 0, 0);
    } else {
      clear(node->children[child_of(number, level)], level - 1, number, edit);
    }
    if (std::memcmp(node->children, kEmpty.slots, sizeof(node->children)) != 0) return;
    std::free(node);  // no reader has seen it
    place = nullptr;
  }

  template <class Visit>
  static void destroy(Node* node, unsigned level, Visit visit) {
    if (node == nullptr) return;
    if (level == 0) {
      for (const Slot& slot : node->slots) {
        if (slot.header != nullptr) visit(slot);
      }
    } else {
      for (Node* child : node->children) destroy(child, level - 1, visit);
    }
    std::free(node);
  }

  Node* root_ = nullptr;
  unsigned depth_ = 0;  // the number of levels of inner nodes
  Number size_ = 0;
};

}  // namespace lookout::cache::detail
