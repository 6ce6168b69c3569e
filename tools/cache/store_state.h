// One version of a store, and what all versions share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/index.h"
#include "lookout/tools/cache/key.h"
#include "tools/cache/newest_table.h"
#include "tools/cache/reclaimer.h"
#include "tools/cache/trie.h"

namespace lookout::cache::detail {

/// An object in the main trie, which owns one reference to it. The pointer is that of an
/// api::Object.
struct ObjectEntry {
  static constexpr std::uint64_t kMany = 0xFFFF;

  ObjectEntry(const api::detail::ObjectHeader* object, std::uint64_t version, std::size_t values)
      : header(object), packed(version << 16 | std::min<std::uint64_t>(values, kMany)) {}

  /// The version that brought it.
  std::uint64_t birth() const { return packed >> 16; }
  /// Under how many values of all indexes it is filed; kMany if they are too many to count.
  std::uint64_t filed() const { return packed & 0xFFFF; }

  const api::detail::ObjectHeader* header;
  std::uint64_t packed;
};

/// An object in an index. It is in the main trie of the same versions, which owns it.
struct SetEntry {
  const api::detail::ObjectHeader* header;
};

/// A handle is nothing but the pointer, so a stored pointer may be looked at as a handle.
template <class Entry>
const api::Object& object_of(const Entry& entry) {
  static_assert(sizeof(api::Object) == sizeof entry.header);
  return reinterpret_cast<const api::Object&>(entry.header);
}

/// Hashes of entries: kept in the object for the usual keys, looked up for keys of a key function
/// (which must not be called in a writer's turn).
struct ObjectOps {
  const std::unordered_map<const void*, std::uint32_t>* hashes = nullptr;

  template <class Entry>
  std::uint32_t hash(const Entry& entry) const {
    return hashes == nullptr ? object_of(entry).key_hash() : hashes->at(entry.header);
  }
};

using ObjectTrie = Trie<ObjectEntry, ObjectOps>;
using SetTrie = Trie<SetEntry, ObjectOps>;

/// The objects under one value of an index.
struct Bucket {
  std::uint64_t birth;
  SetTrie::Node* objects;
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

/// Immutable once published.
struct State {
  std::uint64_t version = 1;
  ObjectTrie::Node* objects = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const IndexDefinitions> definitions;
  std::vector<BucketTrie::Node*> indexes;  // one for each definition
  std::string resource_version;

  /// The place of an index; throws InvalidArgument if there is none of that name.
  std::size_t index_of(std::string_view name) const;
  const Bucket* bucket(std::size_t index, std::string_view value) const;
  /// The same with hash_text(value).
  const Bucket* bucket(std::size_t index, std::string_view value, std::uint32_t hash) const;
};

std::uint32_t hash_text(std::string_view text);

/// Shared by a store and its snapshots.
struct StoreCore {
  explicit StoreCore(KeyFunc function);
  ~StoreCore();

  const KeyFunc key_func;  // empty: the usual keys
  Reclaimer reclaimer;
  // What a look-up reads lies together: the writer changes it with every version.
  alignas(64) std::atomic<const State*> current;
  /// The objects of `current`; null with a key function. The writer makes `changes` odd before it
  /// begins to change the table, publishes the version meanwhile, and makes it even again. Who
  /// finds the same even number before and after a look has seen one whole version.
  std::atomic<NewestTable*> newest{nullptr};
  std::atomic<std::uint64_t> changes{0};

  /// The object of a key in the newest version, or null. The caller has a guard. While the writer
  /// changes the table it is looked for in the trie, so nobody waits.
  const api::detail::ObjectHeader* find_newest(std::string_view ns, std::string_view name) const;
  const api::detail::ObjectHeader* find_newest_key(std::string_view key) const;

  /// The entry of a key in a version that the caller protects.
  const ObjectEntry* find(const State& state, std::string_view ns, std::string_view name) const;
  const ObjectEntry* find_key(const State& state, std::string_view key) const;
  /// The entry with the key of `object`; `key` is the key if there is a key function.
  const ObjectEntry* find_like(const State& state, const api::Object& object,
                               std::string_view key) const;
};

/// The parts of a key without a key function; nothing if no object can have it.
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
