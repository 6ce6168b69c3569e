#include "lookout/tools/cache/expiration_cache.h"

#include <utility>

#include "tools/cache/map_parts.h"

namespace lookout::cache {

ExpirationCache::ExpirationCache(std::unique_ptr<ExpirationPolicy> policy, KeyFunc key_func,
                                 std::shared_ptr<Clock> clock)
    : policy_(std::move(policy)), key_func_(std::move(key_func)), clock_(std::move(clock)) {}

ExpirationCache::ExpirationCache(Clock::Duration ttl, KeyFunc key_func,
                                 std::shared_ptr<Clock> clock)
    : ExpirationCache(std::make_unique<TtlPolicy>(ttl), std::move(key_func), std::move(clock)) {}

void ExpirationCache::add(const api::Object& object) {
  std::string key = key_func_(object);
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(std::move(key), Entry{object, clock_->now()});
}

void ExpirationCache::remove(const api::Object& object) {
  const std::string key = key_func_(object);
  const std::lock_guard lock(mutex_);
  entries_.erase(key);
}

void ExpirationCache::replace(const std::vector<api::Object>& objects,
                              std::string resource_version) {
  const auto now = clock_->now();
  std::unordered_map<std::string, Entry> entries;
  for (const auto& object : objects)
    entries.insert_or_assign(key_func_(object), Entry{object, now});
  const std::lock_guard lock(mutex_);
  entries_.swap(entries);
  resource_version_ = std::move(resource_version);
}

api::Object ExpirationCache::get(const api::Object& object) {
  return get_by_key(key_func_(object));
}

api::Object ExpirationCache::get_by_key(std::string_view key) {
  std::pair<std::string, Entry> found(std::string(key), Entry{});
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(found.first);
    if (at == entries_.end()) return {};
    found.second = at->second;
  }
  const auto left = without_expired({std::move(found)});
  return left.empty() ? api::Object{} : left.front();
}

std::vector<api::Object> ExpirationCache::list() {
  std::vector<std::pair<std::string, Entry>> all;
  {
    const std::lock_guard lock(mutex_);
    all.assign(entries_.begin(), entries_.end());
  }
  return without_expired(all);
}

std::vector<api::Object> ExpirationCache::without_expired(
    const std::vector<std::pair<std::string, Entry>>& entries) {
  // The policy is user code: call it without the lock.
  const auto now = clock_->now();
  std::vector<api::Object> out;
  std::vector<const std::pair<std::string, Entry>*> expired;
  for (const auto& entry : entries) {
    if (policy_->is_expired(entry.second.object, now - entry.second.since)) {
      expired.push_back(&entry);
    } else {
      out.push_back(entry.second.object);
    }
  }
  const std::lock_guard lock(mutex_);
  for (const auto* entry : expired) {
    // Unless the entry was replaced in the meantime.
    const auto at = entries_.find(entry->first);
    if (at != entries_.end() && at->second.object.same(entry->second.object) &&
        at->second.since == entry->second.since)
      entries_.erase(at);
  }
  return out;
}

std::vector<std::string> ExpirationCache::list_keys() const {
  const std::lock_guard lock(mutex_);
  return detail::keys_of(entries_);
}

void ExpirationCache::set_resource_version(std::string resource_version) {
  const std::lock_guard lock(mutex_);
  resource_version_ = std::move(resource_version);
}

std::string ExpirationCache::resource_version() const {
  const std::lock_guard lock(mutex_);
  return resource_version_;
}

}  // namespace lookout::cache
