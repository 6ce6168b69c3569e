// Table: the objects of one resource and their history.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/storage/history.h"
#include "apiserver/storage/memory/watchers.h"
#include "apiserver/storage/ordered_items.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage::memory {

/// The keys with unreadable values, each with an error Status.
using Unreadable = std::map<std::string, api::Object, std::less<>>;

/// The state of a resource at a revision: the current items, and the objects that later changes have
/// replaced.
struct Moment {
  OrderedItems::Snapshot items;
  Revision revision = 0;
  /// By key: the object at the revision; empty if it did not exist. Null: no changes.
  using Undone = std::map<std::string, api::Object, std::less<>>;
  std::shared_ptr<const Undone> undone = nullptr;
  /// The history of the table that the revision belongs to: see Table::restart().
  std::uint64_t epoch = 1;
  /// The unreadable entries, which are not in `items` or `undone`. Null: none.
  std::shared_ptr<const Unreadable> unreadable = nullptr;

  /// The error if an object of this key, or of the keys with this prefix from `start` on, is unreadable;
  /// else null. An unreadable object must not look like a missing one.
  const api::Object* unreadable_in(const std::string& key, bool recursive,
                                   const std::string& start = {}) const;
  /// The number of keys.
  std::size_t count() const { return items.size() + (unreadable ? unreadable->size() : 0); }
};

/// The objects and the history of a resource. Thread-safe. Calls wait only for each other. Writing calls
/// wake watchers before they return.
class Table {
 public:
  using Clock = std::chrono::steady_clock;

  /// `revision` is the shared counter of the backend's tables; the history starts at `first`.
  Table(std::string prefix, std::shared_ptr<std::atomic<Revision>> revision, HistoryLimits history,
        std::chrono::seconds ttl, Revision first = 0);

  const std::string& prefix() const { return prefix_; }
  std::string whole_key(std::string_view key) const { return prefix_ + "/" + std::string(key); }
  Revision current_revision() const { return revision_->load(std::memory_order_acquire); }

  /// Null if there is no object, or if it cannot be read.
  ItemPtr find(std::string_view key) const;
  /// The same; nullopt if the object cannot be read.
  std::optional<ItemPtr> find_readable(std::string_view key) const;
  /// The number of keys, readable or not.
  std::size_t size() const;
  Moment now() const;
  /// The state at a past revision; nullopt if the history does not go back that far.
  std::optional<Moment> at(Revision revision) const;

  /// Writes `object` under `key` (or deletes the key if it is empty) if the stored object is `expected`
  /// (null: none). Returns the stored object, or the last state of the deleted one, with the new
  /// resourceVersion; nullopt after a concurrent write.
  std::optional<api::Object> commit(const std::string& key, const ItemPtr& expected,
                                    const api::Object& object);

  // For a table that follows another storage. (It has its own counter.)

  /// A change in the other storage.
  struct Change {
    std::string key;
    /// The new state, or the last one for a deletion, with the resourceVersion of the change.
    api::Object object;
    bool deleted = false;
    /// The new state, or the last one for a deletion, is unreadable; `object` is an error Status, with
    /// which watches of the key end.
    bool unreadable = false;
  };
  /// Applies all changes of one revision atomically.
  void apply(std::vector<Change> changes, Revision revision);
  /// Replaces the whole state. Watchers that have not received everything up to `revision` expire.
  void replace(const std::vector<ItemPtr>& items, Revision revision, Unreadable unreadable = {});
  /// The same for a storage with a new history: all watchers expire, at any revision, as do those that
  /// start with a revision of the old history.
  void restart(const std::vector<ItemPtr>& items, Revision revision, Unreadable unreadable = {});
  /// The storage has no further changes up to this revision.
  void advance(Revision revision);
  /// The same after a query of the storage, if the table still has the history of `epoch`.
  void advance(Revision revision, std::uint64_t epoch);

  /// Deletes expired objects.
  void expire(Clock::time_point now);
  /// Drops history that is too old, also without changes.
  void trim(Clock::time_point now);

  enum class Reading { kChanges, kNothing, kExpired };
  /// For a watcher: the changes after its cursor, which moves to the last of them. Without changes, the
  /// watcher is parked (a matching change wakes it) and its cursor moves to `caught_up`, the revision up
  /// to which it has received everything.
  Reading read(Watcher& watcher, std::size_t max, std::vector<ChangePtr>& changes,
               Revision& caught_up);
  /// The revision from which watches may start.
  Revision history_start() const;

  void add(Watcher& watcher);
  void remove(Watcher& watcher);
  /// Ends all watches.
  void close();

 private:
  struct Expiry {
    Clock::time_point when;
    std::string key;
    Revision revision = 0;
  };

  Reading read_locked(Watcher& watcher, std::size_t max, std::vector<ChangePtr>& changes) const;
  void take_over(const std::vector<ItemPtr>& items, Revision revision, Unreadable unreadable);
  void apply_locked(Change change, Revision revision);
  bool end_unreadable(const std::string& key, Revision revision);
  void dispatch();
  void ring_expired();

  const std::string prefix_;
  const std::shared_ptr<std::atomic<Revision>> revision_;
  const std::chrono::seconds ttl_;

  // Locked after the mutex of watchers_ where both are.
  mutable std::shared_mutex mutex_;
  OrderedItems items_;
  History history_;
  std::deque<Expiry> expiries_;                   // in the order of time
  std::uint64_t epoch_ = 1;                       // changed with both mutexes locked
  std::shared_ptr<const Unreadable> unreadable_;  // null for nothing
  Revision readable_since_ = 0;                   // earlier unreadable values are not recorded

  WatcherList watchers_;
  bool closed_ = false;      // guarded by the mutex of watchers_
  Revision dispatched_ = 0;  // guarded by the mutex of watchers_
};

}  // namespace lookout::apiserver::storage::memory
