// Indexer: a store of objects by key, with indexes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/tools/cache/index.h"
#include "lookout/tools/cache/key.h"
#include "lookout/tools/cache/read_view.h"
#include "lookout/tools/cache/snapshot.h"

namespace lookout::cache {

/// One change of a batch.
struct StoreChange {
  enum class Type { kPut, kRemove };
  Type type = Type::kPut;
  /// The new object; for a removal, any version of it (only the key matters).
  api::Object object;
};

class Indexer;

/// A handle to one index of a store: a mistyped variable does not compile, unlike a mistyped name.
/// A small value; the store must outlive it. (lister::Index<T> is typed and keeps its store alive.)
class IndexHandle {
 public:
  IndexHandle(const Indexer& store, std::string name) : store_(&store), name_(std::move(name)) {}

  /// The objects with this index value, at this moment.
  template <IndexKey Key>
  ObjectRange get(const Key& value) const;
  /// All index values that have objects.
  std::vector<std::string> values() const;
  const std::string& name() const { return name_; }

 private:
  const Indexer* store_;
  std::string name_;
};

/// Objects by key, with any number of indexes: client-go's Store, Indexer and ThreadSafeStore.
///
/// Readers and writers do not block each other. A change makes a new version that shares most of
/// its memory with the previous one and becomes visible at once, including indexes; readers see one
/// version or the other. Lookups (get) take no lock; snapshots take one for a few instructions.
/// Writers run one at a time; index and key functions run before a writer's turn, never during it. If
/// other writers change the store meanwhile, these functions run again. A batch that was overtaken
/// takes precedence: other writers wait for it, for a limited time.
///
/// All functions may be called from any thread.
class Indexer {
 public:
  explicit Indexer(Indexers indexers = {});
  /// Uses a custom key function. get(ns, name) then finds nothing; use get_by_key.
  Indexer(KeyFunc key_func, Indexers indexers);
  ~Indexer();
  Indexer(const Indexer&) = delete;
  Indexer& operator=(const Indexer&) = delete;

  // --- Writing

  /// Adds the object, or replaces the one with the same key. Returns the previous object.
  api::Object put(api::Object object);
  /// client-go's names for put().
  void add(api::Object object) { put(std::move(object)); }
  void update(api::Object object) { put(std::move(object)); }
  /// Removes the object with the same key. Returns the previous object.
  api::Object remove(const api::Object& object);
  api::Object remove_key(std::string_view key);

  /// Applies several changes, in order, as one version; returns the previous object for each.
  /// Putting the handle that is stored already (Object::same) costs a lookup and writes nothing.
  /// `resource_version`, if given, becomes the store's resourceVersion.
  std::vector<api::Object> apply(std::span<const StoreChange> changes,
                                 std::optional<std::string> resource_version = std::nullopt);

  /// Replaces the whole content, as one version.
  void replace(std::vector<api::Object> objects, std::string resource_version);

  /// Records that nothing has changed up to this resourceVersion (a bookmark).
  void set_resource_version(std::string resource_version);

  // --- Reading

  Snapshot snapshot() const;
  /// For many lookups at once.
  ReadView read() const LOOKOUT_LIFETIME_BOUND;

  /// The current object, or an empty handle.
  api::Object get(std::string_view ns, std::string_view name) const;
  api::Object get_by_key(std::string_view key) const;
  /// The stored object with the same key.
  api::Object get(const api::Object& object) const;
  std::size_t size() const;

  /// Copies of everything; snapshot() is lazy.
  std::vector<api::Object> list() const;
  std::vector<std::string> list_keys() const;

  /// The objects that share a value of this index with `object` (client-go's Index), without
  /// duplicates.
  std::vector<api::Object> index(std::string_view index, const api::Object& object) const;
  std::vector<api::Object> by_index(std::string_view index, std::string_view value) const;
  std::vector<std::string> index_keys(std::string_view index, std::string_view value) const;
  std::vector<std::string> index_values(std::string_view index) const {
    return snapshot().index_values(index);
  }

  /// The values of this index for an object, which need not be in the store. Throws InvalidArgument
  /// if there is no such index, and what the index function throws.
  std::vector<std::string> values_of(std::string_view index, const api::Object& object) const;

  std::string resource_version() const;
  std::string key_of(const api::Object& object) const;
  /// Throws what key_of() throws, without building the key if it is not needed.
  void require_key(const api::Object& object) const;

  // --- Indexes

  /// Adds indexes and fills them from the stored objects. Throws InvalidArgument if a name is
  /// taken or a function is empty; it then adds none.
  void add_indexers(Indexers indexers);
  /// Adds one index and returns a handle to it.
  IndexHandle add_index(std::string name, IndexFunc function);
  std::vector<std::string> indexers() const;
  /// The number of exceptions that index functions threw.
  std::uint64_t index_failures() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

template <IndexKey Key>
ObjectRange IndexHandle::get(const Key& value) const {
  return store_->snapshot().by_index(name_, index_text(value));
}
inline std::vector<std::string> IndexHandle::values() const { return store_->index_values(name_); }

}  // namespace lookout::cache
