// A persistent array: where the objects of a store lie.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "lookout/api/detail/object_header.h"
#include "tools/cache/trie.h"

namespace lookout::cache::detail {

/// One object of a store. The pointer is that of an api::Object, to which the newest version owns
/// one reference; null where no object is.
struct Slot {
  const api::detail::ObjectHeader* header = nullptr;
  std::uint64_t packed = 0;

  /// The version that brought the object.
  std::uint64_t birth() const { return packed >> 16; }
  /// A sum over the values of all indexes under which the object is filed.
  std::uint16_t filing() const { return static_cast<std::uint16_t>(packed); }
  void set(const api::detail::ObjectHeader* object, std::uint64_t version, std::uint16_t sum) {
    header = object;
    packed = version << 16 | sum;
  }
  /// set() while others may load().
  void replace(const api::detail::ObjectHeader* object, std::uint64_t version, std::uint16_t sum) {
    std::atomic_ref(header).store(object, std::memory_order_release);
    packed = version << 16 | sum;
  }
  /// `header`, for those who do not know that the slot stays as it is (a snapshot's do).
  const api::detail::ObjectHeader* load() const {
    return std::atomic_ref(const_cast<Slot*>(this)->header).load(std::memory_order_acquire);
  }
};

/// Slots by number, as one version of a store has them: a tree of nodes of one size, whose leaves
/// have 32 slots and whose inner nodes 64 children. A node that an edit has made itself is changed
/// in place, others are copied on the way to the slot: two of them for a thousand objects, three
/// for a hundred thousand, of 520 bytes each. A slot whose leaf no snapshot sees is changed where
/// it is, whoever made the leaf, if that is all that a version changes: at(). Nodes without objects
/// are not kept.
///
/// A small value, which does not own the nodes.
class Slots {
 public:
  using Number = std::uint32_t;

  /// All numbers below this one have been in use.
  Number size() const { return size_; }

  /// `number` is below size().
  const Slot& operator[](Number number) const { return leaf_of(number)->slots[number % kSlots]; }

  /// A slot, to be changed where it is, and the version since which its leaf is there.
  struct InPlace {
    Slot& slot;
    std::uint64_t birth;
  };
  InPlace at(Number number) const {
    auto* const leaf = const_cast<Node*>(leaf_of(number));
    return {leaf->slots[number % kSlots], leaf->birth};
  }

  /// The slot, for the edit to change.
  Slot& change(Number number, Edit& edit) {
    Node** place = &root_;
    for (unsigned level = depth_;; --level) {
      Node* const node = editable(*place, edit);
      *place = node;
      if (level == 0) return node->slots[number % kSlots];
      place = &node->children[child_of(number, level)];
    }
  }

  /// Empties a slot. Nodes that have nothing left go; one that lacks reads as empty slots.
  void clear(Number number, Edit& edit) { clear(root_, depth_, number, edit); }

  /// One more slot.
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

  /// Calls `visit` for the objects of an array that nobody else can see, and frees its nodes.
  template <class Visit>
  void destroy(Visit visit) {
    destroy(root_, depth_, visit);
  }

  /// Walks over the slots that have objects, in order of their numbers. The array must outlive it.
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
          number_ += kSlots;
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

  /// The node itself if the edit made it, else a copy; one without content for null.
  static Node* editable(Node* node, Edit& edit) {
    if (node != nullptr && node->birth == edit.version) return node;
    void* memory = edit.spare == nullptr ? nullptr : edit.spare->take();
    if (memory == nullptr) memory = std::malloc(sizeof(Node));
    if (memory == nullptr) throw std::bad_alloc();
    if (node != nullptr) {
      // (For a size that it knows the compiler writes slower code than memcpy's.)
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
    std::free(node);  // nobody has seen it
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
  unsigned depth_ = 0;  // so many levels of inner nodes
  Number size_ = 0;
};

}  // namespace lookout::cache::detail
