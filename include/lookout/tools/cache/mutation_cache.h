// Reading what one has just written.
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
  /// Whether to find written objects that the store does not have. The store cannot say whether it
  /// has not seen the addition yet or has seen the deletion already, so such objects may be found
  /// for up to `ttl` after they are gone, unless on_delete() tells of it.
  bool include_adds = false;
  /// How many writes are remembered; the ones not asked for the longest go first.
  std::size_t max_size = 100;
  /// Null: the machine's.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// client-go's MutationCache: a view of an informer's store in which a program finds what it has
/// written itself before the informer has seen it. It gives the newer of the store's version and
/// the written one, by their resourceVersions, which must be numbers. Safe to use from any thread.
///
///     const auto updated = client.update(pod);
///     mutations.mutation(updated);
///     mutations.get(updated.key());  // as updated or newer
///
/// Pass a handler's notifications to on_add_or_update() and on_delete(): then it is never out of
/// date for longer than the informer is.
class MutationCache {
 public:
  /// The store has the usual keys.
  explicit MutationCache(std::shared_ptr<const Indexer> store, MutationCacheOptions options = {});

  /// The object, or an empty handle.
  api::Object get(std::string_view key);
  /// Throws InvalidArgument if the store has no such index.
  std::vector<api::Object> by_index(std::string_view index, std::string_view value);

  /// The server has answered a write with this.
  void mutation(const api::Object& object);
  /// The informer has told of this.
  void on_add_or_update(const api::Object& object);
  void on_delete(const api::Object& object);

 private:
  struct Entry {
    std::string key;
    api::Object object;
    bool deleted = false;  // `object` is known to be gone
    Clock::TimePoint expires;
  };
  using Entries = std::list<Entry>;

  // All under the mutex.
  Entries::iterator find(const std::string& key);
  void put(std::string key, const api::Object& object, bool deleted);
  void erase(Entries::iterator entry);
  api::Object newer(const std::string& key, api::Object stored);

  const std::shared_ptr<const Indexer> store_;
  const MutationCacheOptions options_;
  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  // Guarded by mutex_.
  Entries entries_;  // last asked for first
  std::unordered_map<std::string, Entries::iterator> places_;
};

}  // namespace lookout::cache
