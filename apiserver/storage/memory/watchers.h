// Watchers: the watchers of a table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/apiserver/storage/event.h"
#include "lookout/apiserver/storage/predicate.h"

namespace lookout::apiserver::storage::memory {

/// A reader of a table's history: its filter and its position.
///
/// Watchers have no queues. A watcher that has read everything is parked: the table filters new changes
/// for it and wakes it on a match. Other watchers are processing events, and will read again.
struct Watcher {
  /// A key or, with `recursive`, a key prefix.
  std::string scope;
  bool recursive = true;
  Predicate predicate;
  /// Wakes the watcher up; may be called from any thread, with locks held.
  std::function<void()> ring;
  /// The watcher has expired: it is behind the history.
  std::function<void()> stuck;

  /// It has received everything up to here. Changed by the watcher and, while parked, by the table.
  std::atomic<Revision> cursor{0};
  std::atomic<bool> cancelled{false};
  /// The table's history to which the cursor belongs.
  std::uint64_t epoch = 1;
  /// That history has ended. Guarded by the mutex of the list.
  bool lost = false;

  bool covers(std::string_view key) const {
    return recursive ? key.starts_with(scope) : key == scope;
  }
  /// The type of the event that a change causes for this watcher; kBookmark: none.
  api::EventType event_type(const Change& change) const;

 private:
  friend class WatcherList;
  // Guarded by the mutex of the list.
  bool parked_ = false;
  bool told_stuck_ = false;
  std::size_t index_ = 0;
};

/// The watchers of a table. Its mutex is locked before the table's.
class WatcherList {
 public:
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  std::mutex& mutex() { return mutex_; }

  // With the mutex held:
  void add(Watcher& watcher);
  void remove(Watcher& watcher);
  void park(Watcher& watcher) { watcher.parked_ = true; }
  void unpark(Watcher& watcher) { watcher.parked_ = false; }
  /// Wakes the parked watchers that match these changes, and the expired ones; advances the others.
  void dispatch(const std::vector<ChangePtr>& changes, Revision history_start);
  /// Wakes the expired ones.
  void ring_expired(Revision history_start);
  /// Expires all watchers.
  void lose_all();
  void cancel_all();

 private:
  /// If the watcher has expired: wakes it, or reports that its reader is stuck.
  static bool tell_if_behind(Watcher& watcher, Revision history_start);

  std::mutex mutex_;
  std::vector<Watcher*> watchers_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace lookout::apiserver::storage::memory
