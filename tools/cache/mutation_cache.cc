#include "lookout/tools/cache/mutation_cache.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include "lookout/base/numbers.h"

namespace lookout::cache {
namespace {

/// A version that is not a number is older than all numbers.
std::uint64_t version(const api::Object& object) {
  return base::parse_number<std::uint64_t>(object.resource_version()).value_or(0);
}

}  // namespace

MutationCache::MutationCache(std::shared_ptr<const Indexer> store, MutationCacheOptions options)
    : store_(std::move(store)),
      options_(std::move(options)),
      clock_(options_.clock ? options_.clock : Clock::real()) {}

MutationCache::Entries::iterator MutationCache::find(const std::string& key) {
  const auto place = places_.find(key);
  if (place == places_.end()) return entries_.end();
  if (place->second->expires <= clock_->now()) {
    erase(place->second);
    return entries_.end();
  }
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second;
}

void MutationCache::erase(Entries::iterator entry) {
  places_.erase(entry->key);
  entries_.erase(entry);
}

void MutationCache::put(std::string key, const api::Object& object, bool deleted) {
  if (const auto entry = find(key); entry != entries_.end()) erase(entry);
  entries_.push_front(
      {std::move(key), object, deleted, clock_->now() + Clock::limited(options_.ttl)});
  places_.emplace(entries_.front().key, entries_.begin());
  while (entries_.size() > options_.max_size) erase(std::prev(entries_.end()));
}

api::Object MutationCache::newer(const std::string& key, api::Object stored) {
  const auto entry = find(key);
  if (entry == entries_.end()) return stored;
  if (entry->deleted || version(stored) >= version(entry->object)) {
    erase(entry);
    return stored;
  }
  return entry->object;
}

api::Object MutationCache::get(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const std::string text(key);
  if (api::Object stored = store_->get_by_key(key)) return newer(text, std::move(stored));
  if (!options_.include_adds) return {};
  const auto entry = find(text);
  return entry == entries_.end() || entry->deleted ? api::Object{} : entry->object;
}

std::vector<api::Object> MutationCache::by_index(std::string_view index, std::string_view value) {
  std::vector<api::Object> out;
  std::vector<api::Object> added;  // may have other index values
  {
    const std::lock_guard lock(mutex_);
    std::unordered_set<std::string> keys;
    for (const auto& object : store_->snapshot().by_index(index, value)) {
      const auto place = keys.insert(object.key()).first;
      out.push_back(newer(*place, object));
    }
    if (!options_.include_adds) return out;
    const auto now = clock_->now();
    for (const auto& entry : entries_) {
      if (!entry.deleted && entry.expires > now && !keys.contains(entry.key))
        added.push_back(entry.object);
    }
  }
  // Index functions are user code: call them without the lock.
  for (auto& object : added) {
    const auto values = store_->values_of(index, object);
    if (std::find(values.begin(), values.end(), value) != values.end())
      out.push_back(std::move(object));
  }
  return out;
}

void MutationCache::mutation(const api::Object& object) {
  const std::lock_guard lock(mutex_);
  std::string key = object.key();
  if (const auto known = find(key); known != entries_.end()) {
    const auto ours = version(object);
    const auto theirs = version(known->object);
    if (ours < theirs) return;
    // This or another version of the object has been deleted since.
    if (known->deleted && (ours == theirs || known->object.uid() == object.uid())) return;
  }
  put(std::move(key), object, false);
}

void MutationCache::on_add_or_update(const api::Object& object) {
  const std::lock_guard lock(mutex_);
  const auto known = find(object.key());
  if (known != entries_.end() && version(object) >= version(known->object)) erase(known);
}

void MutationCache::on_delete(const api::Object& object) {
  const std::lock_guard lock(mutex_);
  std::string key = object.key();
  if (const auto known = find(key); known != entries_.end()) {
    // A newer object with another uid may or may not exist.
    if (version(object) < version(known->object) && known->object.uid() != object.uid()) return;
  }
  put(std::move(key), object, true);
}

}  // namespace lookout::cache
