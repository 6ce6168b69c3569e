// The store: objects by key, with indexes.
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
#include "lookout/tools/cache/snapshot.h"

namespace lookout::cache {

/// One step of a batch.
struct StoreChange {
  enum class Type { kPut, kRemove };
  Type type = Type::kPut;
  /// The new object; for a removal, any version of it (only the key matters).
  api::Object object;
};

class Indexer;

/// One index of a store, in place of its name: a mistyped one does not compile. A small value; the
/// store must outlive it. (lister::Index<T> has types, and holds its store.)
class IndexHandle {
 public:
  IndexHandle(const Indexer& store, std::string name) : store_(&store), name_(std::move(name)) {}

  /// The objects under a value, as they are at this moment.
  template <IndexKey Key>
  ObjectRange get(const Key& value) const;
  /// All values under which there is something.
  std::vector<std::string> values() const;
  const std::string& name() const { return name_; }

 private:
  const Indexer* store_;
  std::string name_;
};

/// Objects by key, with any number of indexes: client-go's Store, Indexer and ThreadSafeStore.
///
/// Reading and writing do not wait for each other. A change makes a new version that shares nearly
/// everything with the one before and becomes visible all at once, indexes included; readers see
/// one version or the other. Look-ups (get) take no lock; snapshots take one for a few
/// instructions. Writers take turns; index and key functions run before a writer's turn, never
/// during it.
///
/// All functions may be called from any thread.
class Indexer {
 public:
  explicit Indexer(Indexers indexers = {});
  /// With keys of one's own making. get(ns, name) then finds nothing; use get_by_key.
  Indexer(KeyFunc key_func, Indexers indexers);
  ~Indexer();
  Indexer(const Indexer&) = delete;
  Indexer& operator=(const Indexer&) = delete;

  // --- Writing

  /// Puts the object in the place of the one with the same key, if there is one. Returns what was
  /// there.
  api::Object put(api::Object object);
  /// client-go's names for the same.
  void add(api::Object object) { put(std::move(object)); }
  void update(api::Object object) { put(std::move(object)); }
  /// Takes out the object with the key of this one. Returns what was there.
  api::Object remove(const api::Object& object);
  api::Object remove_key(std::string_view key);

  /// Several changes, in order, as one version; returns what each of them met under its key. A put
  /// of the very handle that is there (Object::same) costs a look-up and writes nothing.
  /// `resource_version`, if given, is what the store has followed the server to.
  std::vector<api::Object> apply(std::span<const StoreChange> changes,
                                 std::optional<std::string> resource_version = std::nullopt);

  /// These objects, and no others, as one version.
  void replace(std::vector<api::Object> objects, std::string resource_version);

  /// Notes that nothing has changed up to this resourceVersion (a bookmark).
  void set_resource_version(std::string resource_version);

  // --- Reading

  Snapshot snapshot() const;

  /// The object as it is now, or an empty handle.
  api::Object get(std::string_view ns, std::string_view name) const;
  api::Object get_by_key(std::string_view key) const;
  /// The stored object with the key of this one.
  api::Object get(const api::Object& object) const;
  std::size_t size() const;

  /// Copies, for those who want one; snapshot() is lazy.
  std::vector<api::Object> list() const;
  std::vector<std::string> list_keys() const;

  /// The objects that share a value of this index with `object` (client-go's Index), each once.
  std::vector<api::Object> index(std::string_view index, const api::Object& object) const;
  std::vector<api::Object> by_index(std::string_view index, std::string_view value) const;
  std::vector<std::string> index_keys(std::string_view index, std::string_view value) const;
  std::vector<std::string> index_values(std::string_view index) const {
    return snapshot().index_values(index);
  }

  /// Under which values an index would file this object, which need not be in the store. Throws
  /// InvalidArgument if there is no such index, and what the index function throws.
  std::vector<std::string> values_of(std::string_view index, const api::Object& object) const;

  std::string resource_version() const;
  std::string key_of(const api::Object& object) const;
  /// Throws what key_of() throws, and makes no key where none is needed for that.
  void require_key(const api::Object& object) const;

  // --- Indexes

  /// Adds indexes, filled with what is there. Throws InvalidArgument if one of the names is taken;
  /// none is added then.
  void add_indexers(Indexers indexers);
  /// Adds one, for those who want to hold it.
  IndexHandle add_index(std::string name, IndexFunc function);
  std::vector<std::string> indexers() const;
  /// How often an index function threw.
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
