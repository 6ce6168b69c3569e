// The objects of one resource and their recent past.
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

/// The keys whose values cannot be read, each with a Status that says why.
using Unreadable = std::map<std::string, api::Object, std::less<>>;

/// The state of a resource at some moment: the items now, and what was different then.
struct Moment {
  OrderedItems::Snapshot items;
  Revision revision = 0;
  /// By key: the object as it was, empty if it was not there. Null for nothing.
  using Undone = std::map<std::string, api::Object, std::less<>>;
  std::shared_ptr<const Undone> undone = nullptr;
  /// The history of the table that the revision belongs to: see Table::restart().
  std::uint64_t epoch = 1;
  /// Entries that cannot be read; in none of the above. Null: none.
  std::shared_ptr<const Unreadable> unreadable = nullptr;

  /// Why the objects of a key, or of all keys that begin with it and are not before `start`, cannot
  /// be given; null if they can be. An object that cannot be read must not look like one that is
  /// not there.
  const api::Object* unreadable_in(const std::string& key, bool recursive,
                                   const std::string& start = {}) const;
  /// How many keys there are.
  std::size_t count() const { return items.size() + (unreadable ? unreadable->size() : 0); }
};

/// All that is to be known of one resource. Thread-safe. Calls do not wait for anything but each
/// other, and rings for watchers go out before a writing call returns.
class Table {
 public:
  using Clock = std::chrono::steady_clock;

  /// `revision` is the counter of all tables of the backend; nothing before `first` is known.
  Table(std::string prefix, std::shared_ptr<std::atomic<Revision>> revision, HistoryLimits history,
        std::chrono::seconds ttl, Revision first = 0);

  const std::string& prefix() const { return prefix_; }
  std::string whole_key(std::string_view key) const { return prefix_ + "/" + std::string(key); }
  Revision current_revision() const { return revision_->load(std::memory_order_acquire); }

  /// Null if there is none, or if it cannot be read.
  ItemPtr find(std::string_view key) const;
  /// The same; nothing if it cannot be read.
  std::optional<ItemPtr> find_readable(std::string_view key) const;
  /// For all keys, readable or not.
  std::size_t size() const;
  Moment now() const;
  /// The state at a revision that has come about; nothing if the history does not go back so far.
  std::optional<Moment> at(Revision revision) const;

  /// Writes `object` under `key` (or, if it is empty, deletes what is there), provided that what is
  /// there is still `expected`, which is null for nothing. The object as it is now stored, or the
  /// last state of a deleted one, both with their new resourceVersion; nothing if somebody else was
  /// faster.
  std::optional<api::Object> commit(const std::string& key, const ItemPtr& expected,
                                    const api::Object& object);

  // For a table that follows another storage. (It has a counter of its own.)

  /// A change that has been made elsewhere.
  struct Change {
    std::string key;
    /// The new state, or of a deletion the last one, with the resourceVersion of the change.
    api::Object object;
    bool deleted = false;
    /// The new state, or of a deletion the last one, cannot be read; `object` is a Status that says
    /// so. Watches of the key end with it.
    bool unreadable = false;
  };
  /// Takes over the changes of one revision, all at once.
  void apply(std::vector<Change> changes, Revision revision);
  /// Takes over a whole state. Watchers that have not seen everything up to `revision` have fallen
  /// behind.
  void replace(const std::vector<ItemPtr>& items, Revision revision, Unreadable unreadable = {});
  /// The same, of a storage that begins another history: whatever revisions they are at, all
  /// watchers have fallen behind, and those that begin with a moment of the old one.
  void restart(const std::vector<ItemPtr>& items, Revision revision, Unreadable unreadable = {});
  /// There are no changes up to this revision but those that are known.
  void advance(Revision revision);
  /// The same, if they are known from a look at the storage: as long as the table still tells the
  /// history of `epoch`.
  void advance(Revision revision, std::uint64_t epoch);

  /// Deletes what has outlived its time.
  void expire(Clock::time_point now);
  /// Forgets the past that is too old, even where nothing happens.
  void trim(Clock::time_point now);

  enum class Reading { kChanges, kNothing, kExpired };
  /// For a watcher: the changes after its cursor, which moves on to the last of them. With nothing
  /// to read, the watcher is parked (a matching change rings it) and its cursor moves to
  /// `caught_up`, the revision up to which it has seen everything.
  Reading read(Watcher& watcher, std::size_t max, std::vector<ChangePtr>& changes,
               Revision& caught_up);
  /// Where watches may begin.
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
  Revision readable_since_ = 0;                   // what was unreadable before is not known

  WatcherList watchers_;
  bool closed_ = false;      // guarded by the mutex of watchers_
  Revision dispatched_ = 0;  // guarded by the mutex of watchers_
};

}  // namespace lookout::apiserver::storage::memory
