#include "lookout/tools/cache/expiration_cache.h"

#include <utility>

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
  const std::string key = key_func_(object);
  const std::lock_guard lock(mutex_);
  return get_or_expire(key);
}

api::Object ExpirationCache::get_by_key(std::string_view key) {
  const std::lock_guard lock(mutex_);
  return get_or_expire(std::string(key));
}

api::Object ExpirationCache::get_or_expire(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return {};
  if (!policy_->is_expired(at->second.object, clock_->now() - at->second.since))
    return at->second.object;
  entries_.erase(at);
  return {};
}

std::vector<api::Object> ExpirationCache::list() {
  const std::lock_guard lock(mutex_);
  const auto now = clock_->now();
  std::vector<api::Object> out;
  std::erase_if(entries_, [&](const auto& entry) {
    if (policy_->is_expired(entry.second.object, now - entry.second.since)) return true;
    out.push_back(entry.second.object);
    return false;
  });
  return out;
}

std::vector<std::string> ExpirationCache::list_keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  out.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) out.push_back(key);
  return out;
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
