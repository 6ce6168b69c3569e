// The series of events.k8s.io/v1: equal events are one, which is counted.
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

/// Says which writes the events need; client-go's eventCache with recordToSink, finishSeries and
/// refreshExistingEventSeries. The first event is to be created, the second one makes a series of
/// it; further ones are counted, and written from time to time. Not thread-safe.
class EventSeries {
 public:
  struct Times {
    Clock::Duration finish_after;
    Clock::Duration refresh_every;
  };

  EventSeries(Times times, std::size_t capacity) : times_(times), capacity_(capacity) {}

  /// The key of a series that is to be written now, if one is.
  std::optional<std::string> observe(RecordedEvent event, Clock::TimePoint now);

  /// A write begins: the event as it is to be on the server. Nothing if the series is gone or is
  /// being written already.
  struct Write {
    RecordedEvent event;
    bool exists = false;  // whether the server has had the event
  };
  std::optional<Write> begin(const std::string& key);
  /// The write has ended; `written` is false if it was given up. True if the series is to be
  /// written once more now.
  bool end(const std::string& key, const Write& write, bool written, Clock::TimePoint now);

  /// The series that are to be written because they are over or have not been written for long.
  /// Forgets events that did not become series.
  std::vector<std::string> due(Clock::TimePoint now);
  /// When due() has to be asked next; nothing if there are no series.
  std::optional<Clock::TimePoint> next_due() const;
  /// The series with observations that have not been written. From now on end() asks for another
  /// write as long as there are such observations.
  std::vector<std::string> flush();

  std::size_t size() const { return index_.size(); }
  /// How many observations have been lost because there were too many series.
  std::uint64_t lost() const { return lost_; }

 private:
  struct Entry {
    std::string key;
    RecordedEvent event;  // with the present count
    bool exists = false;
    bool queued = false;   // the key was handed out, and begin() has not been called
    bool writing = false;  // between begin() and end()
    bool finishing = false;
    std::int32_t written = 0;  // the count in the last write
    Clock::TimePoint observed;
    Clock::TimePoint refreshed;  // when it was last written or tried
  };
  using Entries = std::list<Entry>;

  void erase(Entries::iterator entry);

  const Times times_;
  const std::size_t capacity_;
  Entries entries_;  // the one that was observed last is the first
  std::unordered_map<std::string, Entries::iterator> index_;
  std::uint64_t lost_ = 0;
  bool flushing_ = false;
};

}  // namespace lookout::record::detail
