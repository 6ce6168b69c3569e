#include "apiserver/storage/memory/watchers.h"

#include <utility>

namespace lookout::apiserver::storage::memory {

api::EventType Watcher::event_type(const Change& change) const {
  if (!covers(change.key())) return api::EventType::kBookmark;
  // It is unknown whether a predicate matches an unreadable value.
  if (change.type() == api::EventType::kError) return api::EventType::kError;
  // Without a predicate, everything matches.
  if (predicate.accepts_everything()) return change.type();
  const bool is_in =
      change.type() != api::EventType::kDeleted && predicate.matches(change.object());
  const bool was_in = change.previous() && predicate.matches(change.previous());
  if (is_in) return was_in ? api::EventType::kModified : api::EventType::kAdded;
  return was_in ? api::EventType::kDeleted : api::EventType::kBookmark;
}

void WatcherList::add(Watcher& watcher) {
  watcher.index_ = watchers_.size();
  watchers_.push_back(&watcher);
  count_.store(watchers_.size(), std::memory_order_release);
}

void WatcherList::remove(Watcher& watcher) {
  watchers_.back()->index_ = watcher.index_;
  watchers_[watcher.index_] = watchers_.back();
  watchers_.pop_back();
  count_.store(watchers_.size(), std::memory_order_release);
}

void WatcherList::dispatch(const std::vector<ChangePtr>& changes, Revision history_start) {
  for (Watcher* watcher : watchers_) {
    if (tell_if_behind(*watcher, history_start) || !watcher->parked_) continue;
    const Revision cursor = watcher->cursor.load(std::memory_order_relaxed);
    Revision passed = cursor;
    for (const ChangePtr& change : changes) {
      if (change->revision() <= cursor) continue;
      passed = change->revision();
      if (watcher->event_type(*change) == api::EventType::kBookmark) continue;
      // The watcher reads the whole revision, because other changes of it may match, too.
      --passed;
      watcher->parked_ = false;
      watcher->ring();
      break;
    }
    watcher->cursor.store(passed, std::memory_order_relaxed);
  }
}

void WatcherList::ring_expired(Revision history_start) {
  for (Watcher* watcher : watchers_) tell_if_behind(*watcher, history_start);
}

bool WatcherList::tell_if_behind(Watcher& watcher, Revision history_start) {
  if (watcher.cursor.load(std::memory_order_relaxed) >= history_start) return false;
  if (watcher.parked_) {
    watcher.parked_ = false;
    watcher.ring();
  } else if (!watcher.told_stuck_) {
    watcher.told_stuck_ = true;
    watcher.stuck();
  }
  return true;
}

void WatcherList::lose_all() {
  for (Watcher* watcher : watchers_) {
    watcher->lost = true;
    // A busy watcher is not stuck: it reads again.
    if (std::exchange(watcher->parked_, false)) watcher->ring();
  }
}

void WatcherList::cancel_all() {
  for (Watcher* watcher : watchers_) {
    watcher->cancelled.store(true, std::memory_order_release);
    watcher->ring();
  }
}

}  // namespace lookout::apiserver::storage::memory
