#include "lookout/tools/cache/fifo.h"

#include <utility>

#include "tools/cache/map_parts.h"

namespace lookout::cache {

void Fifo::add(const api::Object& object) {
  std::string key = key_func_(object);
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  populated_ = true;
  const auto [item, inserted] = items_.insert_or_assign(key, object);
  if (inserted) queue_.push_back(std::move(key));
  changed_.notify_one();
}

void Fifo::remove(const api::Object& object) {
  const std::string key = key_func_(object);
  const std::lock_guard lock(mutex_);
  populated_ = true;
  items_.erase(key);
}

void Fifo::replace(const std::vector<api::Object>& objects) {
  std::unordered_map<std::string, api::Object> items;
  std::vector<std::string> order;
  for (const auto& object : objects) {
    std::string key = key_func_(object);
    if (items.insert_or_assign(key, object).second) order.push_back(std::move(key));
  }
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (!std::exchange(populated_, true)) initial_count_ = items.size();
  // Waiting items keep their positions.
  std::deque<std::string> queue;
  for (auto& key : queue_) {
    if (items.contains(key) && items_.erase(key) > 0) queue.push_back(std::move(key));
  }
  items_.swap(items);
  std::unordered_map<std::string_view, bool> queued;
  for (const auto& key : queue) queued[key] = true;
  for (auto& key : order) {
    if (!queued.contains(key)) queue.push_back(std::move(key));
  }
  queue_ = std::move(queue);
  changed_.notify_all();
}

std::optional<Fifo::Item> Fifo::pop(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, stop, [&] { return !queue_.empty() || closed_; });
    if (closed_ || stop.stop_requested()) {
      // This call may have consumed the notification for an item: notify another waiter.
      if (!queue_.empty()) changed_.notify_one();
      return std::nullopt;
    }
    const std::string key = std::move(queue_.front());
    queue_.pop_front();
    const bool initial = initial_count_ > 0;
    if (initial) --initial_count_;
    const auto item = items_.find(key);
    if (item == items_.end()) continue;  // it has been removed
    Item out{std::move(item->second), initial};
    items_.erase(item);
    return out;
  }
}

void Fifo::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool Fifo::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

bool Fifo::has_synced() const {
  const std::lock_guard lock(mutex_);
  return populated_ && initial_count_ == 0;
}

api::Object Fifo::get_by_key(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto item = items_.find(std::string(key));
  return item == items_.end() ? api::Object{} : item->second;
}

std::vector<api::Object> Fifo::list() const {
  const std::lock_guard lock(mutex_);
  return detail::values_of(items_);
}

std::vector<std::string> Fifo::list_keys() const {
  const std::lock_guard lock(mutex_);
  return detail::keys_of(items_);
}

std::size_t Fifo::size() const {
  const std::lock_guard lock(mutex_);
  return items_.size();
}

}  // namespace lookout::cache
