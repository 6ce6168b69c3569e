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

/// A reader of a table's history: what it wants, and how far it has come.
///
/// Watchers have no queues. One that has read everything is parked: the table looks at each new
/// change in its stead and rings it when there is something for it. One that is not parked is busy
/// with what it has read and will come back for more by itself.
struct Watcher {
  /// A key, or with `recursive` what keys begin with.
  std::string scope;
  bool recursive = true;
  Predicate predicate;
  /// Wakes the watcher up; may be called from any thread, with locks held.
  std::function<void()> ring;
  /// Tells that the watcher has fallen behind the history.
  std::function<void()> stuck;

  /// It has seen everything up to here. Changed by the watcher, and by the table while parked.
  std::atomic<Revision> cursor{0};
  std::atomic<bool> cancelled{false};
  /// The history of the table in which the cursor means something.
  std::uint64_t epoch = 1;
  /// That history has ended. Guarded by the mutex of the list.
  bool lost = false;

  bool covers(std::string_view key) const {
    return recursive ? key.starts_with(scope) : key == scope;
  }
  /// The event that a change is for this watcher; nothing (kBookmark) if it is none.
  api::EventType event_type(const Change& change) const;

 private:
  friend class WatcherList;
  // Guarded by the mutex of the list.
  bool parked_ = false;
  bool told_stuck_ = false;
  std::size_t index_ = 0;
};

/// The watchers of a table. The mutex is taken before the table's own.
class WatcherList {
 public:
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  std::mutex& mutex() { return mutex_; }

  // With the mutex held:
  void add(Watcher& watcher);
  void remove(Watcher& watcher);
  void park(Watcher& watcher) { watcher.parked_ = true; }
  void unpark(Watcher& watcher) { watcher.parked_ = false; }
  /// Rings the parked watchers that these changes are for, and those that have fallen behind, and
  /// moves the others on.
  void dispatch(const std::vector<ChangePtr>& changes, Revision history_start);
  /// Rings those that have fallen behind.
  void ring_expired(Revision history_start);
  /// All have fallen behind, wherever they are.
  void lose_all();
  void cancel_all();

 private:
  /// If the watcher has fallen behind: rings it, or tells that its reader is stuck.
  static bool tell_if_behind(Watcher& watcher, Revision history_start);

  std::mutex mutex_;
  std::vector<Watcher*> watchers_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace lookout::apiserver::storage::memory
