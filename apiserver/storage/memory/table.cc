#include "apiserver/storage/memory/table.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lookout/api/detail/object_editor.h"
#include "lookout/api/status.h"
#include "lookout/api/symbols.h"

namespace lookout::apiserver::storage::memory {

const api::Object* Moment::unreadable_in(const std::string& key, bool recursive,
                                         const std::string& start) const {
  if (unreadable == nullptr) return nullptr;
  const auto first = unreadable->lower_bound(recursive ? std::max(key, start) : key);
  if (first == unreadable->end()) return nullptr;
  const bool in = recursive ? first->first.starts_with(key) : first->first == key;
  return in ? &first->second : nullptr;
}

Table::Table(std::string prefix, std::shared_ptr<std::atomic<Revision>> revision,
             HistoryLimits history, std::chrono::seconds ttl, Revision first)
    : prefix_(std::move(prefix)),
      revision_(std::move(revision)),
      ttl_(ttl),
      history_(history, first) {}

ItemPtr Table::find(std::string_view key) const {
  const std::shared_lock lock(mutex_);
  const ItemPtr* item = items_.find(key);
  return item == nullptr ? nullptr : *item;
}

std::optional<ItemPtr> Table::find_readable(std::string_view key) const {
  const std::shared_lock lock(mutex_);
  if (unreadable_ != nullptr && unreadable_->contains(key)) return std::nullopt;
  const ItemPtr* item = items_.find(key);
  return item == nullptr ? nullptr : *item;
}

std::size_t Table::size() const {
  const std::shared_lock lock(mutex_);
  return items_.size() + (unreadable_ != nullptr ? unreadable_->size() : 0);
}

// All changes of this table up to the counter's value are complete, because a change takes its revision
// with the table locked.
Moment Table::now() const {
  const std::shared_lock lock(mutex_);
  return {items_.snapshot(), current_revision(), nullptr, epoch_, unreadable_};
}

std::optional<Moment> Table::at(Revision revision) const {
  const std::shared_lock lock(mutex_);
  if (revision < history_.start() || revision < readable_since_) return std::nullopt;
  auto undone = std::make_shared<Moment::Undone>();
  history_.visit_back_to(revision, [&](const storage::Change& change) {
    undone->insert_or_assign(change.key(), change.previous());
  });
  return Moment{items_.snapshot(), revision, std::move(undone), epoch_, unreadable_};
}

std::optional<api::Object> Table::commit(const std::string& key, const ItemPtr& expected,
                                         const api::Object& object) {
  api::Object stored;
  {
    const std::unique_lock lock(mutex_);
    const ItemPtr* present = items_.find(key);
    if ((present == nullptr ? nullptr : present->get()) != expected.get()) return std::nullopt;
    const Revision revision = revision_->fetch_add(1, std::memory_order_acq_rel) + 1;
    const std::string text = std::to_string(revision);
    const bool deleting = !object;
    stored = api::with_metadata(deleting ? expected->object : object,
                                {{api::sym::kResourceVersion, std::string_view(text)}});
    if (deleting) {
      items_.erase(key);
    } else {
      items_.put(std::make_shared<const Item>(Item{key, stored, revision}));
      if (ttl_.count() > 0) expiries_.push_back({Clock::now() + ttl_, key, revision});
    }
    const api::EventType type = deleting              ? api::EventType::kDeleted
                                : expected == nullptr ? api::EventType::kAdded
                                                      : api::EventType::kModified;
    history_.add(std::make_shared<const storage::Change>(
        revision, type, key, stored, expected == nullptr ? api::Object() : expected->object));
  }
  dispatch();
  return stored;
}

void Table::apply(std::vector<Change> changes, Revision revision) {
  {
    const std::unique_lock lock(mutex_);
    if (revision <= current_revision()) return;
    for (Change& change : changes) apply_locked(std::move(change), revision);
    revision_->store(revision, std::memory_order_release);
  }
  dispatch();
}

void Table::apply_locked(Change change, Revision revision) {
  const ItemPtr* present = items_.find(change.key);
  const api::Object before = present == nullptr ? api::Object() : (*present)->object;
  const bool was_unreadable = end_unreadable(change.key, revision);
  if (change.deleted && !before && !was_unreadable) return;
  api::EventType type = change.deleted ? api::EventType::kDeleted
                        : before       ? api::EventType::kModified
                                       : api::EventType::kAdded;
  if (change.unreadable && !change.deleted) {
    auto unreadable =
        unreadable_ ? std::make_shared<Unreadable>(*unreadable_) : std::make_shared<Unreadable>();
    unreadable->insert_or_assign(change.key, change.object);
    unreadable_ = std::move(unreadable);
    items_.erase(change.key);
    // Watchers were notified when the value became unreadable.
    if (was_unreadable) return;
    type = api::EventType::kError;
  } else if (change.deleted) {
    items_.erase(change.key);
    // Without a last state there is no valid event, so watchers must relist.
    if (change.unreadable || was_unreadable) {
      type = api::EventType::kError;
      if (!change.unreadable) {
        change.object =
            api::StatusError::expired("an unreadable object was deleted").status().to_object();
      }
    }
  } else {
    items_.put(std::make_shared<const Item>(Item{change.key, change.object, revision}));
  }
  history_.add(std::make_shared<const storage::Change>(revision, type, std::move(change.key),
                                                       std::move(change.object), before));
}

/// Removes an unreadable entry. Returns whether there was one.
bool Table::end_unreadable(const std::string& key, Revision revision) {
  if (unreadable_ == nullptr || !unreadable_->contains(key)) return false;
  auto left = std::make_shared<Unreadable>(*unreadable_);
  left->erase(key);
  unreadable_ = left->empty() ? nullptr : std::shared_ptr<const Unreadable>(std::move(left));
  readable_since_ = revision;
  return true;
}

void Table::replace(const std::vector<ItemPtr>& items, Revision revision, Unreadable unreadable) {
  {
    const std::unique_lock lock(mutex_);
    take_over(items, revision, std::move(unreadable));
  }
  ring_expired();
}

void Table::restart(const std::vector<ItemPtr>& items, Revision revision, Unreadable unreadable) {
  const std::lock_guard watchers_lock(watchers_.mutex());
  {
    const std::unique_lock lock(mutex_);
    take_over(items, revision, std::move(unreadable));
    ++epoch_;
  }
  dispatched_ = revision;
  watchers_.lose_all();
}

void Table::take_over(const std::vector<ItemPtr>& items, Revision revision, Unreadable unreadable) {
  unreadable_ =
      unreadable.empty() ? nullptr : std::make_shared<const Unreadable>(std::move(unreadable));
  readable_since_ = 0;
  items_ = OrderedItems();
  for (const ItemPtr& item : items) items_.put(item);
  history_.reset(revision);
  revision_->store(revision, std::memory_order_release);
}

void Table::advance(Revision revision) {
  const std::unique_lock lock(mutex_);
  if (revision > current_revision()) revision_->store(revision, std::memory_order_release);
}

void Table::advance(Revision revision, std::uint64_t epoch) {
  const std::unique_lock lock(mutex_);
  if (epoch == epoch_ && revision > current_revision())
    revision_->store(revision, std::memory_order_release);
}

void Table::ring_expired() {
  const std::lock_guard watchers_lock(watchers_.mutex());
  const Revision start = history_start();
  dispatched_ = std::max(dispatched_, start);
  watchers_.ring_expired(start);
}

void Table::expire(Clock::time_point now) {
  for (;;) {
    Expiry expiry;
    {
      const std::unique_lock lock(mutex_);
      if (expiries_.empty() || expiries_.front().when > now) return;
      expiry = std::move(expiries_.front());
      expiries_.pop_front();
    }
    // An object that has changed since has a later entry.
    const ItemPtr item = find(expiry.key);
    if (item != nullptr && item->revision == expiry.revision) commit(expiry.key, item, {});
  }
}

void Table::trim(Clock::time_point now) {
  {
    const std::unique_lock lock(mutex_);
    const Revision start = history_.start();
    history_.trim(now);
    if (history_.start() == start) return;
  }
  ring_expired();
}

void Table::add(Watcher& watcher) {
  const std::lock_guard watchers_lock(watchers_.mutex());
  if (watchers_.empty()) {
    // Without watchers, no changes were dispatched.
    const std::shared_lock lock(mutex_);
    dispatched_ = current_revision();
  }
  watchers_.add(watcher);
  watcher.lost = watcher.epoch != epoch_;
  watcher.cancelled = watcher.cancelled || closed_;
}

void Table::remove(Watcher& watcher) {
  const std::lock_guard watchers_lock(watchers_.mutex());
  watchers_.remove(watcher);
}

Revision Table::history_start() const {
  const std::shared_lock lock(mutex_);
  return history_.start();
}

Table::Reading Table::read_locked(Watcher& watcher, std::size_t max,
                                  std::vector<ChangePtr>& changes) const {
  const Revision cursor = watcher.cursor.load(std::memory_order_relaxed);
  if (watcher.lost || cursor < history_.start()) return Reading::kExpired;
  history_.read(cursor, max, changes);
  if (changes.empty()) return Reading::kNothing;
  watcher.cursor.store(changes.back()->revision(), std::memory_order_relaxed);
  return Reading::kChanges;
}

Table::Reading Table::read(Watcher& watcher, std::size_t max, std::vector<ChangePtr>& changes,
                           Revision& caught_up) {
  changes.clear();
  const std::lock_guard watchers_lock(watchers_.mutex());
  // During a read, the watcher owns the cursor.
  watchers_.unpark(watcher);
  const std::shared_lock lock(mutex_);
  const Reading reading = read_locked(watcher, max, changes);
  if (reading != Reading::kNothing) return reading;
  caught_up = current_revision();
  if (watcher.cursor.load(std::memory_order_relaxed) < caught_up)
    watcher.cursor.store(caught_up, std::memory_order_relaxed);
  watchers_.park(watcher);
  return reading;
}

// Changes are processed in order, each once: by this thread or by another one that came first.
void Table::dispatch() {
  if (watchers_.empty()) return;
  const std::lock_guard watchers_lock(watchers_.mutex());
  std::vector<ChangePtr> changes;
  Revision history_start = 0;
  {
    const std::shared_lock lock(mutex_);
    history_start = history_.start();
    history_.read(std::max(dispatched_, history_start), static_cast<std::size_t>(-1), changes);
  }
  // The history may have dropped changes before they were processed: of a revision that is larger than the
  // history, and those of a writer that other writers overtook.
  if (changes.empty() && history_start <= dispatched_) return;
  dispatched_ = changes.empty() ? history_start : changes.back()->revision();
  watchers_.dispatch(changes, history_start);
}

void Table::close() {
  const std::lock_guard lock(watchers_.mutex());
  closed_ = true;
  watchers_.cancel_all();
}

}  // namespace lookout::apiserver::storage::memory
