// Fewer events: similar ones become one, equal ones are counted, too many are dropped.
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

/// The keys by which events are similar, and by which similar events differ.
struct AggregateKeys {
  std::string group;
  std::string local;
};

/// client-go's EventAggregatorByReasonFunc: all but the message and the field path make the group;
/// the message is the difference.
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
  /// Events about one object from one source: so many at once, and then so many a second.
  double spam_burst = 25;
  double spam_per_second = 1.0 / 300;
  /// The last of so many different messages in one group, and all further ones, become one event...
  std::size_t max_similar = 10;
  /// ...unless the group was silent for longer than this.
  std::chrono::milliseconds max_interval{600'000};
  LOOKOUT_OPTION std::function<std::string(const RecordedEvent&)> spam_key = spam_key_of;
  LOOKOUT_OPTION std::function<AggregateKeys(const RecordedEvent&)> aggregate_keys =
      aggregate_by_reason;
  LOOKOUT_OPTION std::function<std::string(const RecordedEvent&)> message = combined_message;
};

/// client-go's EventCorrelator, which core/v1 events go through: EventAggregator, eventLogger and
/// EventSourceObjectSpamFilter, in this order. Not thread-safe.
class EventCorrelator {
 public:
  struct Result {
    /// The event to write; it has the name of the one that it repeats, if it repeats one.
    RecordedEvent event;
    /// Whether the event has been seen before, so that count, time and message are all to write.
    bool repeated = false;
    /// Whether to write nothing: there were too many events.
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
