#include "tools/record/event_series.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace lookout::record::detail {
namespace {

/// client-go's eventKey. Excludes the note, so a series has the note of its first event.
std::string isomorphism_key(const RecordedEvent& event) {
  std::string out;
  const auto add = [&](std::string_view part) {
    out += part;
    out += '\0';
  };
  const auto add_reference = [&](const ObjectReference& reference) {
    add(reference.api_version);
    add(reference.kind);
    add(reference.ns);
    add(reference.name);
    add(reference.uid);
    add(reference.resource_version);
    add(reference.field_path);
  };
  add(to_string(event.type));
  add(event.action);
  add(event.reason);
  add(event.source.component);
  add(event.source.host);
  add_reference(event.regarding);
  if (event.related) add_reference(*event.related);
  return out;
}

}  // namespace

std::optional<std::string> EventSeries::observe(RecordedEvent event, Clock::TimePoint now) {
  std::string key = isomorphism_key(event);
  if (const auto found = index_.find(key); found != index_.end()) {
    const auto entry = found->second;
    entries_.splice(entries_.begin(), entries_, entry);
    RecordedEvent& known = entry->event;
    if (known.count < std::numeric_limits<std::int32_t>::max()) ++known.count;
    known.last_time = event.last_time;
    entry->observed = now;
    entry->finishing = false;
    // A pending write includes this count; after a running one, end() requests another.
    if (known.count != 2 || entry->queued || entry->writing) return std::nullopt;
    entry->queued = true;
    return key;
  }

  if (index_.size() >= capacity_) {
    // The series that was not observed for longest, unless it is being written.
    const auto idle = std::find_if(entries_.rbegin(), entries_.rend(),
                                   [](const Entry& e) { return !e.queued && !e.writing; });
    if (idle == entries_.rend()) {
      ++lost_;
      return std::nullopt;
    }
    lost_ += static_cast<std::uint64_t>(idle->event.count - idle->written);
    erase(std::prev(idle.base()));
  }
  Entry added;
  added.key = key;
  added.event = std::move(event);
  added.event.count = 1;
  added.queued = true;
  added.observed = now;
  added.refreshed = now;
  entries_.push_front(std::move(added));
  index_.emplace(key, entries_.begin());
  return key;
}

std::optional<EventSeries::Write> EventSeries::begin(const std::string& key) {
  const auto found = index_.find(key);
  if (found == index_.end() || found->second->writing) return std::nullopt;
  found->second->queued = false;
  found->second->writing = true;
  return Write{found->second->event, found->second->exists};
}

bool EventSeries::end(const std::string& key, const Write& write, bool written,
                      Clock::TimePoint now) {
  const auto found = index_.find(key);
  if (found == index_.end()) return false;
  const auto entry = found->second;
  entry->writing = false;
  entry->refreshed = now;
  if (written) {
    entry->exists = true;
    entry->written = write.event.count;
  }
  // An observation during the last write continues the series.
  if (entry->finishing && entry->event.count == write.event.count) {
    erase(entry);
    return false;
  }
  const bool becomes_series = write.event.count == 1 && entry->event.count > 1;
  const bool again =
      written && (becomes_series || (flushing_ && entry->event.count > entry->written));
  entry->queued = again;
  return again;
}

std::vector<std::string> EventSeries::due(Clock::TimePoint now) {
  std::vector<std::string> out;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (!entry->queued && !entry->writing) {
      if (now - entry->observed >= times_.finish_after) {
        if (entry->event.count == entry->written || entry->event.count == 1) {
          erase(entry);
        } else {
          entry->finishing = true;
          entry->queued = true;
          out.push_back(entry->key);
        }
      } else if (entry->event.count > 1 && now - entry->refreshed >= times_.refresh_every) {
        entry->queued = true;
        out.push_back(entry->key);
      }
    }
    entry = next;
  }
  return out;
}

std::optional<Clock::TimePoint> EventSeries::next_due() const {
  std::optional<Clock::TimePoint> out;
  for (const Entry& entry : entries_) {
    Clock::TimePoint time = entry.observed + times_.finish_after;
    if (entry.event.count > 1) time = std::min(time, entry.refreshed + times_.refresh_every);
    if (!out || time < *out) out = time;
  }
  return out;
}

std::vector<std::string> EventSeries::flush() {
  flushing_ = true;
  std::vector<std::string> out;
  for (Entry& entry : entries_) {
    // The first event was given up.
    if (entry.queued || entry.writing || entry.event.count < 2 ||
        entry.event.count == entry.written)
      continue;
    entry.queued = true;
    out.push_back(entry.key);
  }
  return out;
}

void EventSeries::erase(Entries::iterator entry) {
  index_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace lookout::record::detail
