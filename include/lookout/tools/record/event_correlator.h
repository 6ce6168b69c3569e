// EventCorrelator: combines similar events, counts equal ones, and drops excessive ones.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/tools/record/event.h"

namespace lookout::record {

/// Keys for similarity: similar events share `group` and differ in `local`.
struct AggregateKeys {
  std::string group;
  std::string local;
};

/// client-go's EventAggregatorByReasonFunc: everything except the message and the field path forms
/// the group; the message is the local key.
AggregateKeys aggregate_by_reason(const RecordedEvent& event);
/// client-go's EventAggregatorByReasonMessageFunc: "(combined from similar events): " and the
/// message.
std::string combined_message(const RecordedEvent& event);
/// client-go's getSpamKey: source, object and type.
std::string spam_key_of(const RecordedEvent& event);

/// The defaults are client-go's.
struct CorrelatorOptions {
  /// Entries of each of the three caches; the least recently used one is evicted.
  std::size_t cache_size = 4096;
  /// The rate limit for events about one object from one source: a burst, then a rate per second.
  double spam_burst = 25;
  double spam_per_second = 1.0 / 300;
  /// Once a group has this many different messages, its further events are combined into one...
  std::size_t max_similar = 10;
  /// ...unless the group was silent for longer than this.
  std::chrono::milliseconds max_interval{600'000};
  LOOKOUT_OPTION std::function<std::string(const RecordedEvent&)> spam_key = spam_key_of;
  LOOKOUT_OPTION std::function<AggregateKeys(const RecordedEvent&)> aggregate_keys =
      aggregate_by_reason;
  LOOKOUT_OPTION std::function<std::string(const RecordedEvent&)> message = combined_message;
};

/// client-go's EventCorrelator for core/v1 events: EventAggregator, eventLogger and
/// EventSourceObjectSpamFilter, in this order. Not thread-safe.
class EventCorrelator {
 public:
  struct Result {
    /// The event to write; if it repeats an earlier event, it has that event's name.
    RecordedEvent event;
    /// True if the event has been seen before: only count, time and message need to be written.
    bool repeated = false;
    /// True if nothing should be written, because there were too many events.
    bool skip = false;
  };

  explicit EventCorrelator(CorrelatorOptions options = {},
                           std::shared_ptr<Clock> clock = Clock::real());
  ~EventCorrelator();
  EventCorrelator(EventCorrelator&&) noexcept;
  EventCorrelator& operator=(EventCorrelator&&) noexcept;

  Result correlate(RecordedEvent event);

 private:
  struct Caches;

  CorrelatorOptions options_;
  std::shared_ptr<Clock> clock_;
  std::unique_ptr<Caches> caches_;
};

}  // namespace lookout::record
