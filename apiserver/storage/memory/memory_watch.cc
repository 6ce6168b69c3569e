#include "apiserver/storage/memory/memory_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apiserver/storage/revision.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::storage::memory {
namespace {

/// The number of events read at once: many per write, without blocking other threads for long.
constexpr std::size_t kBatch = 100;

}  // namespace

MemoryWatch::MemoryWatch(std::shared_ptr<Table> table, boost::asio::any_io_executor executor,
                         std::string key, bool recursive, WatchOptions options, Moment start,
                         Patience patience)
    : table_(std::move(table)),
      doorbell_(std::move(executor)),
      asked_(options.revision),
      patience_(std::move(patience)) {
  watcher_.scope = std::move(key);
  watcher_.recursive = recursive;
  watcher_.epoch = start.epoch;
  watcher_.predicate = std::move(options.predicate);
  watcher_.ring = [bell = doorbell_] { bell.ring(); };
  watcher_.stuck = [this] {
    if (on_stuck) on_stuck();
  };
  switch (options.start) {
    case WatchOptions::Start::kState: {
      watcher_.cursor = start.revision;
      state_.emplace(std::move(start), recursive ? watcher_.scope : std::string(), watcher_.scope);
      initial_events_end_ = options.initial_events_end;
      break;
    }
    case WatchOptions::Start::kRevision:
      watcher_.cursor = asked_;
      if (asked_ > table_->current_revision())
        begins_until_ = std::chrono::steady_clock::now() + patience_.wait;
      break;
    case WatchOptions::Start::kNow:
      watcher_.cursor = start.revision;
      break;
  }
}

MemoryWatch::~MemoryWatch() {
  if (added_) table_->remove(watcher_);
}

void MemoryWatch::cancel() {
  watcher_.cancelled = true;
  doorbell_.ring();
}

Awaitable<bool> MemoryWatch::next(std::vector<Event>& events, TimePoint until) {
  events.clear();
  if (!std::exchange(added_, true)) table_->add(watcher_);
  for (;;) {
    if (ended_ || watcher_.cancelled) co_return false;
    if (state_ ? read_state(events) : read_changes(events)) co_return true;
    const auto now = std::chrono::steady_clock::now();
    if (begins_until_ && now >= *begins_until_) {
      const bool begun = co_await has_begun(events);
      if (!begun) co_return true;
      continue;
    }
    if (now >= until) co_return true;
    const TimePoint wake = begins_until_ ? std::min(until, *begins_until_) : until;
    co_await doorbell_.wait(wake);
  }
}

Awaitable<bool> MemoryWatch::has_begun(std::vector<Event>& events) {
  Revision newest = table_->current_revision();
  api::Object error;
  if (asked_ > newest && patience_.newest) {
    try {
      newest = co_await patience_.newest(asked_);
    } catch (const StorageError& e) {
      // The storage is unavailable: wait once more.
      log::debug("a watch from revision {} waits: {}", asked_, e.what());
      begins_until_ = std::chrono::steady_clock::now() + patience_.wait;
      co_return true;
    } catch (const api::StatusError& e) {
      error = e.status().to_object();
    }
  }
  begins_until_.reset();
  if (!error && asked_ <= newest) co_return true;
  if (!error) error = too_large(asked_, newest).status().to_object();
  ended_ = true;
  events.emplace_back().object = std::move(error);
  co_return false;
}

/// Reads initial objects in batches. Returns true, as more events follow.
bool MemoryWatch::read_state(std::vector<Event>& events) {
  while (events.size() < kBatch) {
    api::Object object = state_->next();
    const bool past_the_key = !watcher_.recursive && object && state_->key() != watcher_.scope;
    if (!object || past_the_key) {
      const Revision revision = state_->revision();
      state_.reset();
      if (!std::exchange(initial_events_end_, false))
        return !events.empty() || read_changes(events);
      Event& bookmark = events.emplace_back();
      bookmark.type = api::EventType::kBookmark;
      bookmark.revision = revision;
      bookmark.initial_events_end = true;
      return true;
    }
    if (!watcher_.predicate.matches(object)) continue;
    Event& event = events.emplace_back();
    event.type = api::EventType::kAdded;
    event.revision = revision_of(object);
    event.object = std::move(object);
  }
  return true;
}

bool MemoryWatch::read_changes(std::vector<Event>& events) {
  while (events.empty()) {
    Revision caught_up = 0;
    switch (table_->read(watcher_, kBatch, changes_, caught_up)) {
      case Table::Reading::kExpired: {
        ended_ = true;
        Event& error = events.emplace_back();
        error.object =
            api::StatusError::expired(fmt::format("too old resource version: {} ({})",
                                                  watcher_.cursor.load(), table_->history_start()))
                .status()
                .to_object();
        return true;
      }
      case Table::Reading::kChanges:
        for (ChangePtr& change : changes_) {
          const api::EventType type = watcher_.event_type(*change);
          if (type == api::EventType::kError) {
            ended_ = true;
            Event& error = events.emplace_back();
            error.object = change->object();
            return true;
          }
          if (type != api::EventType::kBookmark)
            events.push_back(event_of(std::move(change), type));
        }
        break;
      case Table::Reading::kNothing:
        // A watch from a future revision has not reached it yet.
        if (!bookmark_requested_ || watcher_.cursor > caught_up) return false;
        bookmark_requested_ = false;
        Event& bookmark = events.emplace_back();
        bookmark.type = api::EventType::kBookmark;
        bookmark.revision = caught_up;
        return true;
    }
  }
  return true;
}

Event MemoryWatch::event_of(ChangePtr change, api::EventType type) {
  Event event;
  event.type = type;
  event.revision = change->revision();
  event.object =
      type == api::EventType::kDeleted ? change->previous_at_revision() : change->object();
  event.change = std::move(change);
  return event;
}

}  // namespace lookout::apiserver::storage::memory
