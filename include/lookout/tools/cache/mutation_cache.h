// MutationCache: reads that include a program's own writes.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout::cache {

struct MutationCacheOptions {
  /// How long a write is remembered.
  Clock::Duration ttl = std::chrono::minutes(5);
  /// Also finds written objects that the store does not have. The store cannot tell whether it has
  /// not seen the addition yet or has already seen the deletion, so such objects may be found for
  /// up to `ttl` after they are deleted, unless on_delete() reports the deletion.
  bool include_adds = false;
  /// How many writes are remembered; the least recently used ones are evicted first.
  std::size_t max_size = 100;
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// client-go's MutationCache: a view of an informer's store that includes the program's own writes
/// before the informer has seen them. It returns the newer of the stored and the written version,
/// by their resourceVersions, which must be numbers. Safe to use from any thread.
///
///     const auto updated = client.update(pod);
///     mutations.mutation(updated);
///     mutations.get(updated.key());  // as updated or newer
///
/// Pass a handler's notifications to on_add_or_update() and on_delete(): the view is then never
/// older than the informer.
class MutationCache {
 public:
  /// The store must use the default keys.
  explicit MutationCache(std::shared_ptr<const Indexer> store, MutationCacheOptions options = {});

  /// The object, or an empty handle.
  api::Object get(std::string_view key);
  /// Throws InvalidArgument if the store has no such index.
  std::vector<api::Object> by_index(std::string_view index, std::string_view value);

  /// Records the server's answer to a write.
  void mutation(const api::Object& object);
  /// Records a notification of the informer.
  void on_add_or_update(const api::Object& object);
  void on_delete(const api::Object& object);

 private:
  struct Entry {
    std::string key;
    api::Object object;
    bool deleted = false;  // `object` is known to be deleted
    Clock::TimePoint expires;
  };
  using Entries = std::list<Entry>;

  // These functions require the mutex.
  Entries::iterator find(const std::string& key);
  void put(std::string key, const api::Object& object, bool deleted);
  void erase(Entries::iterator entry);
  api::Object newer(const std::string& key, api::Object stored);

  const std::shared_ptr<const Indexer> store_;
  const MutationCacheOptions options_;
  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  // Guarded by mutex_.
  Entries entries_;  // most recently used first
  std::unordered_map<std::string, Entries::iterator> places_;
};

}  // namespace lookout::cache
