#include "registry/dubbo/event_queue.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace lookout::registry::dubbo::detail {

void EventQueue::push(Event event) {
  std::unique_lock lock(mutex_);
  if (end_) return;
  events_.push_back(std::move(event));
  if (events_.size() > compact_at_) {
    compact();
    // Compaction takes linear time, so do not repeat it for each event.
    compact_at_ = std::max(max_pending_, events_.size() * 2);
  }
  changed(std::move(lock));
}

void EventQueue::compact() {
  /// A key's events in the queue: the type of the first, and the position of the last.
  struct Span {
    EventType first;
    std::size_t last;
  };
  std::unordered_map<std::string, Span> spans;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const auto [it, first] = spans.try_emplace(events_[i].key, Span{events_[i].type, i});
    if (!first) it->second.last = i;
  }
  std::deque<Event> kept;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    Event& event = events_[i];
    const Span span = spans.at(event.key);
    if (span.last != i) continue;
    const bool was_there = span.first != EventType::kCreate;
    const bool is_there = event.type != EventType::kDelete;
    if (!was_there && !is_there) continue;
    event.type = !is_there   ? EventType::kDelete
                 : was_there ? EventType::kUpdate
                             : EventType::kCreate;
    kept.push_back(std::move(event));
  }
  events_ = std::move(kept);
}

void EventQueue::end(NextOutcome reason) {
  std::deque<Event> dropped;
  std::unique_lock lock(mutex_);
  if (end_) return;
  end_ = reason;
  dropped.swap(events_);
  changed(std::move(lock));
}

std::size_t EventQueue::pending() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

std::optional<NextEvent> EventQueue::take_locked() {
  if (end_) return NextEvent(*end_);
  if (events_.empty()) return std::nullopt;
  NextEvent out(std::move(events_.front()));
  events_.pop_front();
  if (events_.size() < max_pending_ / 2) compact_at_ = max_pending_;
  return out;
}

}  // namespace lookout::registry::dubbo::detail
