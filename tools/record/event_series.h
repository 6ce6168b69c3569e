// EventSeries: the series of events.k8s.io/v1.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lookout/api/time.h"
#include "lookout/base/clock.h"
#include "lookout/tools/record/event.h"

namespace lookout::record::detail {

/// Determines the writes that events need; client-go's eventCache with recordToSink, finishSeries and
/// refreshExistingEventSeries. The first event is created, the second one starts a series; later ones
/// are counted and written periodically. Not thread-safe.
class EventSeries {
 public:
  struct Times {
    Clock::Duration finish_after;
    Clock::Duration refresh_every;
  };

  EventSeries(Times times, std::size_t capacity) : times_(times), capacity_(capacity) {}

  /// Returns the key of a series that must be written now, if any.
  std::optional<std::string> observe(RecordedEvent event, Clock::TimePoint now);

  /// Begins a write: returns the event to write; empty if the series no longer exists or is being
  /// written already.
  struct Write {
    RecordedEvent event;
    bool exists = false;  // true if the event was created before
  };
  std::optional<Write> begin(const std::string& key);
  /// Ends a write; `written` is false if it was given up. Returns true if the series must be written
  /// again now.
  bool end(const std::string& key, const Write& write, bool written, Clock::TimePoint now);

  /// The series that must be written because they have ended or are due for a refresh. Removes events
  /// that did not become series.
  std::vector<std::string> due(Clock::TimePoint now);
  /// The next time to call due(); empty if there are no series.
  std::optional<Clock::TimePoint> next_due() const;
  /// The series with unwritten observations. After this call, end() requests another write while there
  /// are such observations.
  std::vector<std::string> flush();

  std::size_t size() const { return index_.size(); }
  /// The number of observations that were lost because there were too many series.
  std::uint64_t lost() const { return lost_; }

 private:
  struct Entry {
    std::string key;
    RecordedEvent event;  // with the current count
    bool exists = false;
    bool queued = false;   // the key was returned, but begin() has not been called
    bool writing = false;  // between begin() and end()
    bool finishing = false;
    std::int32_t written = 0;  // the count in the last write
    Clock::TimePoint observed;
    Clock::TimePoint refreshed;  // the time of the last attempt to write
  };
  using Entries = std::list<Entry>;

  void erase(Entries::iterator entry);

  const Times times_;
  const std::size_t capacity_;
  Entries entries_;  // most recently observed first
  std::unordered_map<std::string, Entries::iterator> index_;
  std::uint64_t lost_ = 0;
  bool flushing_ = false;
};

}  // namespace lookout::record::detail
