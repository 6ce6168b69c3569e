// NewestTable: a hash table of the objects in the newest version of a store.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "lookout/api/detail/object_header.h"

namespace lookout::cache::detail {

/// Finds an object with one memory access, where the trie needs three or four. An entry is the object's
/// address and, in its 16 unused bits, a part of the hash, so that lookups rarely visit other
/// objects.
///
/// Linear probing; at most seven of eight places are in use. There are no tombstones: an erasure moves
/// later entries up.
///
/// One thread changes the table; others may read concurrently. A concurrent read may miss an object or
/// find a removed one, so readers must check afterwards for changes (StoreCore::find_newest()). The
/// table owns neither objects nor references.
class NewestTable {
 public:
  using Header = api::detail::ObjectHeader;

  /// An empty table with room for this many objects and some more.
  explicit NewestTable(std::size_t objects)
      : shift_(kHashBits - static_cast<unsigned>(std::bit_width(capacity_for(objects) - 1))),
        mask_(capacity_for(objects) - 1),
        // (The system zeroes this memory lazily.)
        places_(static_cast<Place*>(std::calloc(mask_ + 1, sizeof(Place)))) {
    if (places_ == nullptr) throw std::bad_alloc();
  }
  /// A table of these objects, with room for some more.
  explicit NewestTable(std::span<const Header* const> objects) : NewestTable(objects.size()) {
    // Prefetch: their hashes are scattered in memory.
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (i + kAhead < objects.size()) __builtin_prefetch(objects[i + kAhead]);
      insert(objects[i]);
    }
  }

  /// False for an address that uses the bits of the hash.
  static bool can_hold(const Header* object) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(object)) >> kTagShift == 0;
  }
  bool has_room_for(std::size_t objects) const { return capacity_for(objects) <= mask_ + 1; }
  /// True if the table is neither nearly full nor much too large for this many objects.
  bool suits(std::size_t objects) const {
    return objects * 16 <= (mask_ + 1) * 13 && capacity_for(objects) >= (mask_ + 1) / 8;
  }

  /// The object that most likely has this hash, or null.
  const Header* guess(std::uint32_t hash) const {
    return find(hash, [](const Header*) { return true; });
  }
  /// The object with this hash for which `match` is true, or null. The caller must keep the store from
  /// freeing objects.
  template <class Match>
  const Header* find(std::uint32_t hash, Match match) const {
    const std::uint64_t tag = tag_of(hash);
    std::size_t at = hash >> shift_;
    for (std::size_t n = 0; n <= mask_; ++n, at = (at + 1) & mask_) {
      const std::uint64_t word = places_[at].load(std::memory_order_acquire);
      if (word == 0) break;
      if ((word ^ tag) >> kTagShift != 0) continue;
      const Header* object = object_of_word(word);
      if (match(object)) return object;
    }
    return nullptr;
  }

  /// Prefetches the place at which find() starts.
  void prefetch(std::uint32_t hash) const { __builtin_prefetch(&places_[hash >> shift_]); }

  // --- For the one thread that changes the table. There must be room.

  void insert(const Header* object) {
    std::size_t at = object->key_hash >> shift_;
    while (places_[at].load(std::memory_order_relaxed) != 0) at = (at + 1) & mask_;
    store(at, object);
  }
  /// Replaces `before` with `after`, which has the same key.
  void replace(const Header* before, const Header* after) {
    const std::size_t at = place_of(before);
    if (at <= mask_) store(at, after);
  }
  void erase(const Header* object) {
    std::size_t hole = place_of(object);
    if (hole > mask_) return;
    for (std::size_t at = (hole + 1) & mask_;; at = (at + 1) & mask_) {
      const std::uint64_t word = places_[at].load(std::memory_order_relaxed);
      if (word == 0) break;
      const std::size_t home = object_of_word(word)->key_hash >> shift_;
      // An entry may move up to the hole, but not before the place where its search starts.
      if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
      places_[hole].store(word, std::memory_order_release);
      hole = at;
    }
    places_[hole].store(0, std::memory_order_release);
  }

 private:
  using Place = std::atomic<std::uint64_t>;
  struct Free {
    void operator()(Place* places) const { std::free(places); }
  };

  static constexpr unsigned kHashBits = 32;
  static constexpr unsigned kTagShift = 48;
  static constexpr std::uint64_t kAddress = (std::uint64_t{1} << kTagShift) - 1;
  static constexpr std::size_t kSmallest = 16;

  static std::size_t capacity_for(std::size_t objects) {
    return std::max(kSmallest, std::bit_ceil(objects + objects / 7 + 1));
  }
  // (The place in the table comes from the upper bits.)
  static std::uint64_t tag_of(std::uint32_t hash) {
    return static_cast<std::uint64_t>(hash) << kTagShift;
  }
  static const Header* object_of_word(std::uint64_t word) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the word was made of an address.
    return reinterpret_cast<const Header*>(static_cast<std::uintptr_t>(word & kAddress));
  }
  void store(std::size_t at, const Header* object) {
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(object);
    places_[at].store(address | tag_of(object->key_hash), std::memory_order_release);
  }
  /// The end of the table if the object is not in it.
  std::size_t place_of(const Header* object) const {
    for (std::size_t at = object->key_hash >> shift_;; at = (at + 1) & mask_) {
      const std::uint64_t word = places_[at].load(std::memory_order_relaxed);
      if (word == 0) return mask_ + 1;
      if (object_of_word(word) == object) return at;
    }
  }

  const unsigned shift_;
  const std::size_t mask_;
  const std::unique_ptr<Place[], Free> places_;
};

}  // namespace lookout::cache::detail
