#include "registry/dubbo/record_set.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace lookout::registry::dubbo::detail {
namespace {

/// Kubernetes guarantees that resource versions of one resource can be compared as numbers.
std::uint64_t number(std::string_view version) {
  std::uint64_t out = 0;
  std::from_chars(version.data(), version.data() + version.size(), out);
  return out;
}

/// The maximum number of removals that wait for the watch. The watch of a pod without the label, or of
/// a client that reads nothing, never confirms them.
constexpr std::size_t kMostRemovals = 100;

}  // namespace

template <class Change>
void RecordSet::change(const std::string& key, const std::string& pod, Change change) {
  const auto it = keys_.try_emplace(key).first;
  std::optional<std::string> before;
  if (const Holder* current = it->second.current()) before = current->value;
  change(it->second);
  const Holder* current = it->second.current();
  Event event{EventType::kUpdate, key, current != nullptr ? current->value : "", pod};
  if (current == nullptr) {
    if (it->second.holders.empty() && !it->second.own) keys_.erase(it);
    if (!before) return;
    event.type = EventType::kDelete;
    event.value = *std::move(before);
  } else if (!before) {
    event.type = EventType::kCreate;
  } else if (*before == current->value) {
    return;
  }
  // Under the mutex, so that all queues get the events in the same order; push() does not block.
  for (const auto& queue : queues_) {
    if (queue->wants(key)) queue->push(event);
  }
}

void RecordSet::apply(const std::string& pod, const std::vector<Record>& records,
                      std::string_view version) {
  const std::lock_guard lock(mutex_);
  apply_locked(pod, records);
  if (pod != own_pod_) return;
  const std::uint64_t now = watched_ = number(version);
  for (auto it = own_.begin(); it != own_.end();) {
    // After a server has lost its data, versions start over: equal content confirms the write, too.
    const auto& own = *keys_.at(it->first).own;
    const bool same = std::ranges::any_of(records, [&](const Record& r) {
      return own.present && r.key == it->first && r.value == own.holder.value;
    });
    if (now < it->second && !same) {
      ++it;
      continue;
    }
    change(it->first, pod, [](Key& key) { key.own.reset(); });
    it = own_.erase(it);
  }
}

void RecordSet::apply_locked(const std::string& pod, const std::vector<Record>& records) {
  std::map<std::string, std::string> now;
  for (const auto& record : records) now[record.key] = record.value;
  const auto was = std::exchange(pods_[pod], now);
  if (now.empty()) pods_.erase(pod);

  const auto drop = [&](Key& key) {
    std::erase_if(key.holders, [&](const Holder& holder) { return holder.pod == pod; });
  };
  for (const auto& [key, value] : was) {
    if (!now.contains(key)) change(key, pod, drop);
  }
  for (const auto& record : records) {
    const auto before = was.find(record.key);
    if (before != was.end() && before->second == record.value) continue;
    change(record.key, pod, [&](Key& key) {
      drop(key);
      key.holders.push_back({pod, record.value});
    });
  }
}

void RecordSet::gone(const std::string& pod) {
  const std::lock_guard lock(mutex_);
  apply_locked(pod, {});
  if (pod != own_pod_) return;
  for (const auto& [key, version] : std::exchange(own_, {})) {
    change(key, pod, [](Key& entry) { entry.own.reset(); });
  }
}

void RecordSet::write_locked(const std::string& key, Own own, std::string_view version) {
  if (watched_ > 0 && number(version) <= watched_) return;
  own_[key] = number(version);
  change(key, own_pod_, [&](Key& entry) { entry.own = std::move(own); });
}

void RecordSet::written(const Record& record, std::string_view version) {
  const std::lock_guard lock(mutex_);
  write_locked(record.key, {{own_pod_, record.value}, true}, version);
}

void RecordSet::erased(const std::string& key, std::string_view version) {
  const std::lock_guard lock(mutex_);
  if (!keys_.contains(key)) return;
  write_locked(key, {{own_pod_, {}}, false}, version);
  if (own_.size() > kMostRemovals) forget_an_old_removal();
}

void RecordSet::forget_an_old_removal() {
  std::size_t removals = 0;
  auto oldest = own_.end();
  for (auto it = own_.begin(); it != own_.end(); ++it) {
    if (keys_.at(it->first).own->present) continue;
    ++removals;
    if (oldest == own_.end() || it->second < oldest->second) oldest = it;
  }
  if (removals <= kMostRemovals) return;
  change(oldest->first, own_pod_, [](Key& key) { key.own.reset(); });
  own_.erase(oldest);
}

std::size_t RecordSet::unconfirmed() const {
  const std::lock_guard lock(mutex_);
  return own_.size();
}

std::vector<Record> RecordSet::with_prefix(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  std::vector<Record> out;
  for (auto it = keys_.lower_bound(prefix); it != keys_.end() && it->first.starts_with(prefix);
       ++it) {
    if (const Holder* current = it->second.current()) out.push_back({it->first, current->value});
  }
  return out;
}

std::optional<std::string> RecordSet::get(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = keys_.find(key);
  const Holder* current = it == keys_.end() ? nullptr : it->second.current();
  return current == nullptr ? std::nullopt : std::optional(current->value);
}

void RecordSet::add(const std::shared_ptr<EventQueue>& queue, Begin begin) {
  const std::lock_guard lock(mutex_);
  if (end_) return queue->end(*end_);
  if (begin == Begin::kWithWhatIsThere) {
    for (auto it = keys_.lower_bound(queue->key()); it != keys_.end(); ++it) {
      if (!queue->wants(it->first)) break;
      if (const Holder* current = it->second.current()) {
        queue->push({EventType::kCreate, it->first, current->value, current->pod});
      }
    }
  }
  queues_.insert(queue);
}

void RecordSet::remove(const std::shared_ptr<EventQueue>& queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queue);
}

void RecordSet::end(NextOutcome reason) {
  registry::detail::InOrder<std::shared_ptr<EventQueue>> queues;
  {
    const std::lock_guard lock(mutex_);
    end_ = reason;
    queues.swap(queues_);
  }
  for (const auto& queue : queues) queue->end(reason);
}

std::size_t RecordSet::queues() const {
  const std::lock_guard lock(mutex_);
  return queues_.size();
}

}  // namespace lookout::registry::dubbo::detail
