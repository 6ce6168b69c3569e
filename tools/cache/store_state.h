// State: one version of a store. StoreCore: the data that all versions share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/index.h"
#include "lookout/tools/cache/key.h"
#include "lookout/tools/cache/read_view.h"
#include "tools/cache/newest_table.h"
#include "tools/cache/reclaimer.h"
#include "tools/cache/slots.h"
#include "tools/cache/trie.h"

namespace lookout::cache::detail {

inline const api::Object& object_of(const api::detail::ObjectHeader* const& header) {
  return *handles_of(&header);
}
inline const api::Object& object_of(const Slot& slot) { return object_of(slot.header); }

/// An object in a trie: the hash of its key, and its slot. The slot stays the same as long as the key is
/// in the store, so a new version of an object changes no trie.
struct Place {
  std::uint32_t hash;
  Slots::Number slot;
};

struct PlaceOps {
  std::uint32_t hash(const Place& place) const { return place.hash; }
};
using PlaceTrie = Trie<Place, PlaceOps>;

/// The objects with one value of an index.
struct Bucket {
  std::uint64_t birth;
  PlaceTrie::Node* places;
  std::uint32_t count;
  std::uint32_t hash;
  std::uint32_t length;

  std::string_view value() const { return {reinterpret_cast<const char*>(this + 1), length}; }
};

struct BucketOps {
  std::uint32_t hash(Bucket* const& bucket) const { return bucket->hash; }
};
using BucketTrie = Trie<Bucket*, BucketOps>;

struct IndexDefinition {
  std::string name;
  IndexFunc function;
};
using IndexDefinitions = std::vector<IndexDefinition>;

/// The indexes of a version, shared by later versions until an index changes.
struct Indexes {
  std::uint64_t birth = 1;
  const IndexDefinitions* definitions = nullptr;  // one of StoreCore::definitions
  std::vector<BucketTrie::Node*> roots;           // one for each definition
};

/// Immutable once published, except that slots may be changed in place, as a new version, while no
/// snapshot sees them.
struct State {
  std::uint64_t version = 1;
  Slots slots;                        // the objects
  PlaceTrie::Node* places = nullptr;  // their slots by key
  std::size_t size = 0;
  const Indexes* indexes = nullptr;
  std::string resource_version;

  const IndexDefinitions& definitions() const { return *indexes->definitions; }

  /// The version, including changes in place; for writers before and during their turn.
  std::uint64_t load_version() const {
    return std::atomic_ref(const_cast<State*>(this)->version).load(std::memory_order_acquire);
  }
  void store_version(std::uint64_t next) const {
    std::atomic_ref(const_cast<State*>(this)->version).store(next, std::memory_order_release);
  }
  /// The position of an index. Throws InvalidArgument if there is no such index.
  std::size_t index_of(std::string_view name) const;
  const Bucket* bucket(std::size_t index, std::string_view value) const;
  /// The same with hash_text(value).
  const Bucket* bucket(std::size_t index, std::string_view value, std::uint32_t hash) const;
};

std::uint32_t hash_text(std::string_view text);

/// An object and its slot, or null.
struct Found {
  const api::detail::ObjectHeader* header = nullptr;
  Slots::Number slot = 0;
};

/// Shared by a store and its snapshots.
struct StoreCore {
  explicit StoreCore(KeyFunc function);
  ~StoreCore();

  const KeyFunc key_func;  // empty: the usual keys
  Reclaimer reclaimer;
  /// All definitions so far, because old versions may still use them. Changed in a writer's turn.
  std::vector<std::unique_ptr<const IndexDefinitions>> definitions;
  // The variables that a lookup reads share a cache line, which the writer changes with every version.
  alignas(64) std::atomic<const State*> current;
  /// The objects of `current`; null with a key function. The writer makes `changes` odd before it
  /// changes the table, publishes the version in the meantime, and makes it even again. A reader that
  /// finds the same even number before and after a read has seen one whole version.
  std::atomic<NewestTable*> newest{nullptr};
  std::atomic<std::uint64_t> changes{0};

  /// The object with this key in the newest version, or null. The caller must hold a guard. While the
  /// writer changes the table, the lookup uses the trie instead, so it never waits.
  const api::detail::ObjectHeader* find_newest(std::string_view ns, std::string_view name) const {
    return find_newest(ns, name, api::key_hash(ns, name));
  }
  /// The same with api::key_hash() of the key.
  const api::detail::ObjectHeader* find_newest(std::string_view ns, std::string_view name,
                                               std::uint32_t hash) const;
  const api::detail::ObjectHeader* find_newest_key(std::string_view key) const;
  /// The objects with these keys. Overlaps the memory accesses of several lookups; otherwise like
  /// find_newest().
  void find_newest(std::span<const ObjectName> keys, const api::detail::ObjectHeader** found) const;

  /// Prefetches the object that probably has a key with this hash, before a slower lookup in the trie.
  /// The caller must hold a guard.
  void prefetch(std::uint32_t hash) const;
  /// The object with this key in a version that the caller protects.
  Found find(const State& state, std::string_view ns, std::string_view name) const;
  Found find_key(const State& state, std::string_view key) const;
  /// The object with the same key as `object`. `hash` is the key's hash; `key` is the key if there is a
  /// key function.
  Found find_like(const State& state, const api::Object& object, std::uint32_t hash,
                  std::string_view key) const;
};

/// Splits a key (without a key function); empty if no object can have this key.
std::optional<ObjectName> split_key(std::string_view key);

/// Holds one version for a snapshot.
struct Pin {
  explicit Pin(std::shared_ptr<StoreCore> owner);
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  const std::shared_ptr<StoreCore> core;
  const State* state = nullptr;
};

}  // namespace lookout::cache::detail
