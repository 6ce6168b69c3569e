// ExpirationCache: a store whose entries expire.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/clock.h"
#include "lookout/tools/cache/key.h"

namespace lookout::cache {

/// Decides when an entry has expired. Called from any thread, without a lock.
class ExpirationPolicy {
 public:
  virtual ~ExpirationPolicy() = default;
  /// `age`: the time since the object was added or updated.
  virtual bool is_expired(const api::Object& object, Clock::Duration age) const = 0;
};

/// Expires entries after a fixed time; never if the time is not positive.
class TtlPolicy : public ExpirationPolicy {
 public:
  explicit TtlPolicy(Clock::Duration ttl) : ttl_(ttl) {}
  bool is_expired(const api::Object&, Clock::Duration age) const override {
    return ttl_ > Clock::Duration::zero() && age > ttl_;
  }

 private:
  const Clock::Duration ttl_;
};

/// client-go's ExpirationCache. Expired entries are no longer found; they are evicted lazily, on
/// access. For a program's own data; for the objects of an informer, Indexer reads faster. Safe to
/// use from any thread.
class ExpirationCache {
 public:
  explicit ExpirationCache(std::unique_ptr<ExpirationPolicy> policy,
                           KeyFunc key_func = meta_namespace_key,
                           std::shared_ptr<Clock> clock = Clock::real());
  /// client-go's NewTTLStore.
  explicit ExpirationCache(Clock::Duration ttl, KeyFunc key_func = meta_namespace_key,
                           std::shared_ptr<Clock> clock = Clock::real());

  /// Each function throws what the key function throws. Adding an object again restarts its age.
  void add(const api::Object& object);
  void update(const api::Object& object) { add(object); }
  void remove(const api::Object& object);
  void replace(const std::vector<api::Object>& objects, std::string resource_version);

  /// The object with the same key, or an empty handle.
  api::Object get(const api::Object& object);
  api::Object get_by_key(std::string_view key);
  std::vector<api::Object> list();
  /// Includes the keys of expired entries that have not been evicted yet.
  std::vector<std::string> list_keys() const;

  void set_resource_version(std::string resource_version);
  std::string resource_version() const;

 private:
  struct Entry {
    api::Object object;
    Clock::TimePoint since;
  };
  /// Evicts the expired entries and returns the others.
  std::vector<api::Object> without_expired(
      const std::vector<std::pair<std::string, Entry>>& entries);

  const std::unique_ptr<ExpirationPolicy> policy_;
  const KeyFunc key_func_;
  const std::shared_ptr<Clock> clock_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<std::string, Entry> entries_;
  std::string resource_version_;
};

}  // namespace lookout::cache
