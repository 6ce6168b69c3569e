#include "lookout/tools/record/event_correlator.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "lookout/api/error.h"
#include "tools/record/lru_cache.h"

namespace lookout::record {
namespace {

/// Joins with separators, so that different lists give different keys.
std::string join(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) {
    out += part;
    out += '\0';
  }
  return out;
}

/// client-go's getEventKey: equal events have equal keys.
std::string equality_key(const RecordedEvent& event) {
  return join({event.source.component, event.source.host, event.regarding.kind, event.regarding.ns,
               event.regarding.name, event.regarding.field_path, event.regarding.uid,
               event.regarding.api_version, to_string(event.type), event.reason, event.note});
}

}  // namespace

AggregateKeys aggregate_by_reason(const RecordedEvent& event) {
  return {join({event.source.component, event.source.host, event.regarding.kind, event.regarding.ns,
                event.regarding.name, event.regarding.uid, event.regarding.api_version,
                to_string(event.type), event.reason}),
          event.note};
}

std::string combined_message(const RecordedEvent& event) {
  return "(combined from similar events): " + event.note;
}

std::string spam_key_of(const RecordedEvent& event) {
  return join({event.source.component, event.source.host, event.regarding.kind, event.regarding.ns,
               event.regarding.name, event.regarding.uid, event.regarding.api_version,
               to_string(event.type)});
}

struct EventCorrelator::Caches {
  /// Events of one group: client-go's aggregateRecord.
  struct Group {
    std::set<std::string> messages;
    Clock::TimePoint last;
  };
  /// The first of several equal events: client-go's eventLog.
  struct Log {
    std::int32_t count = 0;
    api::Time first_time = {};
    std::string name;
  };
  /// A token bucket: client-go's PassiveRateLimiter.
  struct Bucket {
    bool used = false;
    double tokens = 0;
    Clock::TimePoint filled;
  };

  explicit Caches(std::size_t size) : groups(size), logs(size), buckets(size) {}

  detail::LruCache<Group> groups;
  detail::LruCache<Log> logs;
  detail::LruCache<Bucket> buckets;
};

EventCorrelator::EventCorrelator(CorrelatorOptions options, std::shared_ptr<Clock> clock)
    : options_(std::move(options)), clock_(std::move(clock)) {
  if (!clock_ || !options_.spam_key || !options_.aggregate_keys || !options_.message)
    throw InvalidArgument("event correlator: there is no clock, or a function is empty");
  if (options_.cache_size == 0 || options_.max_similar == 0)
    throw InvalidArgument("event correlator: cache_size and max_similar must be positive");
  caches_ = std::make_unique<Caches>(options_.cache_size);
}

EventCorrelator::~EventCorrelator() = default;
EventCorrelator::EventCorrelator(EventCorrelator&&) noexcept = default;
EventCorrelator& EventCorrelator::operator=(EventCorrelator&&) noexcept = default;

EventCorrelator::Result EventCorrelator::correlate(RecordedEvent event) {
  const Clock::TimePoint now = clock_->now();
  Result result;
  result.event = std::move(event);
  RecordedEvent& out = result.event;

  std::string key = equality_key(out);
  AggregateKeys keys = options_.aggregate_keys(out);
  Caches::Group& group = caches_->groups.get(keys.group);
  if (now - group.last > options_.max_interval) group.messages.clear();
  group.last = now;
  const auto added = group.messages.insert(keys.local).first;
  if (group.messages.size() >= options_.max_similar) {
    // Limits the set; the next message exceeds the limit, too.
    group.messages.erase(added);
    out.note = options_.message(out);
    out.related.reset();
    out.annotations.clear();
    out.first_time = out.last_time;
    key = std::move(keys.group);
  }

  Caches::Log& log = caches_->logs.get(key);
  if (log.count > 0) {
    result.repeated = true;
    out.name = log.name;
    out.first_time = log.first_time;
    out.count = log.count < std::numeric_limits<std::int32_t>::max() ? log.count + 1 : log.count;
  }
  log.count = out.count;
  log.first_time = out.first_time;
  log.name = out.name;

  // Dropped events are counted: the next written event includes them.
  Caches::Bucket& bucket = caches_->buckets.get(options_.spam_key(out));
  const double gained = bucket.used ? std::chrono::duration<double>(now - bucket.filled).count() *
                                          options_.spam_per_second
                                    : options_.spam_burst;
  bucket.tokens = std::min(options_.spam_burst, bucket.tokens + gained);
  bucket.filled = now;
  bucket.used = true;
  result.skip = bucket.tokens < 1;
  if (!result.skip) bucket.tokens -= 1;
  return result;
}

}  // namespace lookout::record
