#include "lookout/tools/record/event_broadcaster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <deque>
#include <exception>
#include <mutex>
#include <random>
#include <stop_token>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/k8s/events/v1_draft.h"
#include "lookout/rest/error.h"
#include "tools/record/event_series.h"

namespace lookout::record {
namespace {

// The limits of pkg/apis/core/validation/events.go.
constexpr std::size_t kNoteLimit = 1024;
constexpr std::size_t kWordLimit = 128;
constexpr std::size_t kNoLimit = std::string::npos;
/// The minimum time between two maintenance runs of the series.
constexpr std::chrono::seconds kShortestPause{1};
constexpr int kNotFound = 404;
constexpr int kTooManyRequests = 429;
constexpr int kFirstServerError = 500;

std::string host_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return host.data();
}

template <class ReferenceDraft>
void write_reference(const ReferenceDraft& draft, const ObjectReference& reference) {
  const auto set = [&](const char* field, const std::string& value) {
    if (!value.empty()) draft[field].set(limit_text(value, kNoLimit));
  };
  set("apiVersion", reference.api_version);
  set("kind", reference.kind);
  set("namespace", reference.ns);
  set("name", reference.name);
  set("uid", reference.uid);
  set("resourceVersion", reference.resource_version);
  set("fieldPath", reference.field_path);
}

template <class Draft>
void write_annotations(const Draft& draft, const RecordedEvent& event) {
  for (const auto& [key, value] : event.annotations)
    draft.metadata().annotations().set(limit_text(key, kNoLimit), limit_text(value, kNoLimit));
}

api::Object core_event(const RecordedEvent& event) {
  const auto draft = k8s::core::v1::Event::draft(event.name, event.ns);
  write_annotations(draft, event);
  write_reference(draft.involved_object(), event.regarding);
  if (event.related) write_reference(draft.related(), *event.related);
  draft.source().set_component(event.source.component);
  if (!event.source.host.empty()) draft.source().set_host(event.source.host);
  draft.set_reporting_component(event.source.component);
  draft.set_reporting_instance(event.source.host);
  draft.set_type(to_string(event.type)).set_reason(event.reason).set_action(event.action);
  draft.set_message(event.note).set_count(event.count);
  draft.set_first_timestamp(event.first_time).set_last_timestamp(event.last_time);
  return draft.build();
}

std::string core_patch(const RecordedEvent& event) {
  const api::ObjectDraft patch;
  patch["count"].set(event.count);
  patch["lastTimestamp"].set(api::format_time(event.last_time));
  patch["message"].set(event.note);
  return patch.diff();
}

api::Object events_event(const RecordedEvent& event) {
  const auto draft = k8s::events::v1::Event::draft(event.name, event.ns);
  write_annotations(draft, event);
  write_reference(draft.regarding(), event.regarding);
  if (event.related) write_reference(draft.related(), *event.related);
  draft.set_reporting_controller(event.source.component);
  draft.set_reporting_instance(event.source.host);
  draft.set_type(to_string(event.type)).set_reason(event.reason).set_action(event.action);
  draft.set_note(event.note).set_event_time(event.first_time);
  if (event.count > 1)
    draft.series().set_count(event.count).set_last_observed_time(event.last_time);
  return draft.build();
}

std::string events_patch(const RecordedEvent& event) {
  const api::ObjectDraft patch;
  patch["series"]["count"].set(event.count);
  patch["series"]["lastObservedTime"].set(api::format_micro_time(event.last_time));
  return patch.diff();
}

BroadcasterOptions checked(BroadcasterOptions options) {
  if (options.queue_size == 0 || options.attempts < 1 || options.max_series == 0 ||
      options.max_requests == 0)
    throw InvalidArgument("event broadcaster: sizes and attempts must be positive");
  if (!options.clock) throw InvalidArgument("event broadcaster: there is no clock");
  options.retry_pause = Clock::limited(options.retry_pause);
  options.finish_after = Clock::limited(options.finish_after);
  options.refresh_every = Clock::limited(options.refresh_every);
  options.correlator.max_interval = Clock::limited(options.correlator.max_interval);
  return options;
}

/// The outcome of an attempt to write.
enum class Outcome {
  kWritten,
  kRefused,  ///< the server rejected the event; a retry is pointless
  kFailed,   ///< a retry may succeed
  kStopped,  ///< the broadcaster is shut down
};

}  // namespace

/// The state that recorders and coroutines share. Coroutines run on strand_.
class EventBroadcaster::Core : public std::enable_shared_from_this<Core> {
 public:
  /// Why an event was dropped: the label `reason` of the metric.
  enum Drop : std::size_t {
    kInvalid,
    kQueueFull,
    kSpam,
    kRefusedByServer,
    kGivenUp,
    kSeriesEvicted,
    kShutdown,
    kDrops
  };

  Core(std::shared_ptr<EventLoop> event_loop, std::shared_ptr<EventSink> sink,
       BroadcasterOptions given)
      : options_(checked(std::move(given))),
        loop_(std::move(event_loop)),
        sink_(std::move(sink)),
        strand_(boost::asio::make_strand(loop_->context())),
        correlator_(options_.correlator, options_.clock),
        series_({options_.finish_after, options_.refresh_every}, options_.max_series),
        pauses_(seed(options_.seed)),
        names_(seed(options_.seed)) {}

  void record(Event event, const EventSource& source);
  static Awaitable<bool> shutdown(std::shared_ptr<Core> self, std::chrono::milliseconds timeout);
  void abandon();
  void collect(std::vector<metrics::Sample>& out) const;
  const BroadcasterOptions& options() const { return options_; }
  EventLoop& loop() const { return *loop_; }

 private:
  static std::uint64_t seed(std::uint64_t given) {
    if (given != 0) return given;
    std::random_device random;
    return (static_cast<std::uint64_t>(random()) << 32U) | random();
  }

  RecordedEvent complete(Event event, const EventSource& source);
  void name(RecordedEvent& event);
  void drop(Drop why, std::uint64_t count = 1) {
    dropped_[why].fetch_add(count, std::memory_order_relaxed);
  }

  enum class Taken { kEvent, kLastOne, kNothing };
  Taken take(RecordedEvent& event);
  void spawn(Awaitable<void> task);
  void finished();
  static Awaitable<void> drain(std::shared_ptr<Core> self);
  Awaitable<void> process(RecordedEvent event);
  Clock::TimePoint now();
  void note_exception();
  static Awaitable<void> write_series(std::shared_ptr<Core> self);
  static Awaitable<void> tend_series(std::shared_ptr<Core> self);
  static Awaitable<void> cancel_after(std::shared_ptr<Core> self,
                                      std::chrono::milliseconds timeout);
  Awaitable<void> correlate(RecordedEvent event);
  void enqueue_series(std::string key);
  void start_tending();
  Awaitable<bool> deliver(RecordedEvent event, bool exists);
  Awaitable<Outcome> attempt(const RecordedEvent& event, bool exists, bool tried_before);
  Outcome classify(const RecordedEvent& event, const std::exception& error, bool repeats,
                   bool tried_before) const;
  Clock::Duration pause_after(int tries);

  const BroadcasterOptions options_;
  const std::shared_ptr<EventLoop> loop_;
  const std::shared_ptr<EventSink> sink_;
  const boost::asio::strand<boost::asio::io_context::executor_type> strand_;
  std::stop_source closing_;  // no more events; ends the maintenance of series
  std::stop_source cancel_;   // the shutdown deadline has passed
  std::stop_source idle_;     // after closing_: no coroutine runs

  // On strand_.
  EventCorrelator correlator_;
  detail::EventSeries series_;
  std::deque<std::string> series_to_write_;
  std::size_t series_writers_ = 0;
  bool tending_ = false;
  Clock::TimePoint last_now_;
  std::minstd_rand pauses_;

  std::atomic<std::uint64_t> recorded_{0};
  std::atomic<std::uint64_t> writes_{0};
  std::atomic<std::uint64_t> failures_{0};
  std::array<std::atomic<std::uint64_t>, kDrops> dropped_{};
  std::atomic<std::size_t> series_count_{0};

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<RecordedEvent> queue_;
  bool draining_ = false;
  bool full_ = false;
  bool closed_ = false;
  bool flushed_ = false;
  std::size_t running_ = 0;
  std::int64_t last_nanoseconds_ = 0;
  std::mt19937_64 names_;
};

void EventBroadcaster::Core::record(Event event, const EventSource& source) {
  if (event.regarding.kind.empty() || event.regarding.api_version.empty()) {
    drop(kInvalid);
    log::error("events: an event with reason {} is about an object without apiVersion or kind",
               limit_text(event.reason, kWordLimit));
    return;
  }
  RecordedEvent recorded = complete(std::move(event), source);
  bool start = false;
  bool report_full = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      drop(kShutdown);
      return;
    }
    if (queue_.size() >= options_.queue_size) {
      drop(kQueueFull);
      report_full = !std::exchange(full_, true);
    } else {
      full_ = false;
      name(recorded);
      queue_.push_back(std::move(recorded));
      recorded_.fetch_add(1, std::memory_order_relaxed);
      start = !std::exchange(draining_, true);
      if (start) ++running_;
    }
  }
  if (report_full)
    log::error("events: the queue of {} events is full; dropping further events",
               options_.queue_size);
  if (start) spawn(drain(shared_from_this()));
}

/// Limits the texts and adds the recorder's fields.
RecordedEvent EventBroadcaster::Core::complete(Event event, const EventSource& source) {
  RecordedEvent out;
  static_cast<Event&>(out) = std::move(event);
  out.source.component = limit_text(source.component, kWordLimit);
  out.source.host = limit_text(source.host, kWordLimit);
  out.reason = limit_text(out.reason, kWordLimit);
  out.action = limit_text(out.action, kWordLimit);
  out.note = limit_text(out.note, kNoteLimit);
  if (options_.api == EventsApi::kEvents && out.action.empty()) out.action = out.reason;
  out.ns = out.regarding.ns.empty() ? "default" : out.regarding.ns;
  out.first_time =
      options_.wall_clock
          ? options_.wall_clock()
          : std::chrono::time_point_cast<api::Time::duration>(std::chrono::system_clock::now());
  out.last_time = out.first_time;
  return out;
}

/// Sets a unique name: the clock may not advance between two events, and several processes may report
/// on one object at the same time.
void EventBroadcaster::Core::name(RecordedEvent& event) {
  constexpr int kNanosecondsPerMicrosecond = 1000;
  const auto within = static_cast<std::int64_t>(names_() % kNanosecondsPerMicrosecond);
  const std::int64_t now =
      event.first_time.time_since_epoch().count() * kNanosecondsPerMicrosecond + within;
  last_nanoseconds_ = std::max(now, last_nanoseconds_ + 1);
  event.name = make_event_name(event.regarding.name, last_nanoseconds_,
                               fmt::format("event-{:016x}{:016x}", names_(), names_()));
}

/// The caller has counted `task` in running_.
void EventBroadcaster::Core::spawn(Awaitable<void> task) {
  boost::asio::co_spawn(strand_, std::move(task),
                        [self = shared_from_this()](const std::exception_ptr& error) {
                          if (error) log::error("events: writing ended with an exception");
                          self->finished();
                        });
}

void EventBroadcaster::Core::finished() {
  bool idle = false;
  {
    const std::lock_guard lock(mutex_);
    --running_;
    idle = closed_ && flushed_ && running_ == 0;
  }
  if (idle) idle_.request_stop();
}

/// The next event of the queue.
EventBroadcaster::Core::Taken EventBroadcaster::Core::take(RecordedEvent& event) {
  const std::lock_guard lock(mutex_);
  if (!queue_.empty()) {
    event = std::move(queue_.front());
    queue_.pop_front();
    return Taken::kEvent;
  }
  if (closed_ && !std::exchange(flushed_, true)) return Taken::kLastOne;
  draining_ = false;
  return Taken::kNothing;
}

/// Processes the queue until it is empty; during a shutdown, then writes the series.
Awaitable<void> EventBroadcaster::Core::drain(std::shared_ptr<Core> self) {
  for (;;) {
    RecordedEvent event;
    const Taken taken = self->take(event);
    if (taken == Taken::kNothing) co_return;
    if (taken == Taken::kLastOne) {
      for (std::string& key : self->series_.flush()) self->enqueue_series(std::move(key));
      continue;
    }
    if (self->cancel_.stop_requested()) {
      self->drop(kShutdown);
      continue;
    }
    try {
      co_await self->process(std::move(event));
    } catch (...) {
      self->note_exception();
    }
  }
}

Awaitable<void> EventBroadcaster::Core::process(RecordedEvent event) {
  if (options_.on_event) {
    try {
      options_.on_event(event);
    } catch (const std::exception& e) {
      log::error("events: on_event threw: {}", e.what());
    } catch (...) {
      log::error("events: on_event threw");
    }
  }
  if (options_.api == EventsApi::kCore) {
    co_await correlate(std::move(event));
    co_return;
  }
  const std::uint64_t lost = series_.lost();
  auto key = series_.observe(std::move(event), now());
  drop(kSeriesEvicted, series_.lost() - lost);
  series_count_.store(series_.size(), std::memory_order_relaxed);
  if (key) enqueue_series(*std::move(key));
  start_tending();
}

/// The clock's time; if the clock throws, its last time, so that series continue.
Clock::TimePoint EventBroadcaster::Core::now() {
  try {
    last_now_ = options_.clock->now();
  } catch (const std::exception& e) {
    log::error("events: the clock threw: {}", e.what());
  } catch (...) {
    log::error("events: the clock threw something that is not a std::exception");
  }
  return last_now_;
}

/// In a catch block: something of the program, such as its clock, threw while an event was processed.
void EventBroadcaster::Core::note_exception() {
  drop(kInvalid);
  try {
    throw;
  } catch (const std::exception& e) {
    log::error("events: an event is dropped, because the program threw: {}", e.what());
  } catch (...) {
    log::error("events: an event is dropped, because the program threw");
  }
}

/// core/v1: handles one event at a time, so that counts never decrease.
Awaitable<void> EventBroadcaster::Core::correlate(RecordedEvent event) {
  EventCorrelator::Result result;
  try {
    result = correlator_.correlate(std::move(event));
  } catch (const std::exception& e) {
    drop(kInvalid);
    log::error("events: a function of the correlator threw: {}", e.what());
    co_return;
  } catch (...) {
    drop(kInvalid);
    log::error("events: a function of the correlator threw");
    co_return;
  }
  if (result.skip) {
    drop(kSpam);
    co_return;
  }
  // The program's message function may have returned a longer note.
  result.event.note = limit_text(result.event.note, kNoteLimit);
  co_await deliver(std::move(result.event), result.repeated);
}

void EventBroadcaster::Core::enqueue_series(std::string key) {
  series_to_write_.push_back(std::move(key));
  if (series_writers_ >= options_.max_requests) return;
  ++series_writers_;
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  spawn(write_series(shared_from_this()));
}

Awaitable<void> EventBroadcaster::Core::write_series(std::shared_ptr<Core> self) {
  while (!self->series_to_write_.empty()) {
    const std::string key = std::move(self->series_to_write_.front());
    self->series_to_write_.pop_front();
    const auto write = self->series_.begin(key);
    if (!write) continue;
    bool written = false;
    try {
      written = co_await self->deliver(write->event, write->exists);
    } catch (...) {
      self->note_exception();
    }
    const bool again = self->series_.end(key, *write, written, self->now());
    self->series_count_.store(self->series_.size(), std::memory_order_relaxed);
    if (again) self->series_to_write_.push_back(key);
  }
  --self->series_writers_;
}

void EventBroadcaster::Core::start_tending() {
  if (tending_ || series_.size() == 0 || closing_.stop_requested()) return;
  tending_ = true;
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  spawn(tend_series(shared_from_this()));
}

/// Writes series that have ended or are due for a refresh, until there are no series.
Awaitable<void> EventBroadcaster::Core::tend_series(std::shared_ptr<Core> self) {
  struct AtEnd {
    ~AtEnd() { core.tending_ = false; }
    Core& core;
  } const at_end{*self};
  for (;;) {
    const auto next = self->series_.next_due();
    if (!next) break;
    const Clock::Duration pause = std::max<Clock::Duration>(kShortestPause, *next - self->now());
    const bool slept = co_await self->options_.clock->sleep(pause, self->closing_.get_token());
    if (!slept) break;
    for (std::string& key : self->series_.due(self->now())) self->enqueue_series(std::move(key));
    self->series_count_.store(self->series_.size(), std::memory_order_relaxed);
  }
}

/// Writes an event, with retries; returns false if it was dropped.
Awaitable<bool> EventBroadcaster::Core::deliver(RecordedEvent event, bool exists) {
  for (int tries = 1;; ++tries) {
    Outcome outcome = Outcome::kStopped;
    if (!cancel_.stop_requested()) outcome = co_await attempt(event, exists, tries > 1);
    if (outcome == Outcome::kFailed) {
      if (tries >= options_.attempts) {
        drop(kGivenUp);
        log::error("events: {}/{} ({}) was not written in {} attempts", event.ns, event.name,
                   event.reason, tries);
        co_return false;
      }
      const Clock::Duration pause = pause_after(tries);
      const bool slept = co_await options_.clock->sleep(pause, cancel_.get_token());
      if (slept) continue;
      outcome = Outcome::kStopped;
    }
    if (outcome == Outcome::kRefused) drop(kRefusedByServer);
    if (outcome == Outcome::kStopped) drop(kShutdown);
    if (outcome == Outcome::kWritten) writes_.fetch_add(1, std::memory_order_relaxed);
    co_return outcome == Outcome::kWritten;
  }
}

Awaitable<Outcome> EventBroadcaster::Core::attempt(const RecordedEvent& event, bool exists,
                                                   bool tried_before) {
  rest::CallOptions call;
  call.stop = cancel_.get_token();
  const bool core = options_.api == EventsApi::kCore;
  bool create = !exists;
  std::exception_ptr error;
  if (exists) {
    try {
      const std::string patch = core ? core_patch(event) : events_patch(event);
      co_await sink_->patch(event.ns, event.name, patch, call);
    } catch (const api::StatusError& e) {
      // The event has expired on the server (after an hour by default): create it again.
      create = e.code() == kNotFound;
      if (!create) error = std::current_exception();
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (create) {
    try {
      const api::Object made = core ? core_event(event) : events_event(event);
      co_await sink_->create(made, call);
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (!error) co_return Outcome::kWritten;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    co_return classify(event, e, exists, tried_before);
  } catch (...) {
    co_return Outcome::kFailed;
  }
}

Outcome EventBroadcaster::Core::classify(const RecordedEvent& event, const std::exception& error,
                                         bool repeats, bool tried_before) const {
  const auto refused = [&](log::Level level) {
    log::at(level, "events: {}/{} ({}) is dropped: {}", event.ns, event.name, event.reason,
            error.what());
    return Outcome::kRefused;
  };
  if (const auto* const answer = dynamic_cast<const api::StatusError*>(&error)) {
    if (api::is_already_exists(error)) {
      // An earlier attempt, whose response was lost, has created it; the next attempt patches it.
      if (repeats) return Outcome::kFailed;
      if (tried_before) return Outcome::kWritten;
      return refused(log::Level::kDebug);
    }
    if (api::has_status_cause(error, "NamespaceTerminating")) return refused(log::Level::kDebug);
    const bool may_work_later =
        answer->code() == kTooManyRequests || answer->code() >= kFirstServerError;
    if (!may_work_later) return refused(log::Level::kError);
  } else if (dynamic_cast<const InvalidArgument*>(&error) != nullptr) {
    // The request is invalid, and a retry would be, too.
    return refused(log::Level::kError);
  } else if (cancel_.stop_requested() && rest::is_cancelled(error)) {
    return Outcome::kStopped;
  }
  log::warn("events: {}/{} ({}) will be retried: {}", event.ns, event.name, event.reason,
            error.what());
  return Outcome::kFailed;
}

Clock::Duration EventBroadcaster::Core::pause_after(int tries) {
  constexpr double kSeriesJitter = 0.25;
  const double random = std::uniform_real_distribution<>()(pauses_);
  double factor = 1;
  if (options_.api == EventsApi::kEvents) {
    factor += kSeriesJitter * random;
  } else if (tries == 1) {
    factor = random;
  }
  failures_.fetch_add(1, std::memory_order_relaxed);
  return std::chrono::duration_cast<Clock::Duration>(options_.retry_pause * factor);
}

Awaitable<bool> EventBroadcaster::Core::shutdown(std::shared_ptr<Core> self,
                                                 std::chrono::milliseconds timeout) {
  bool start = false;
  {
    const std::lock_guard lock(self->mutex_);
    start = !std::exchange(self->closed_, true) && !std::exchange(self->draining_, true);
    if (start) ++self->running_;
  }
  self->closing_.request_stop();
  if (timeout <= std::chrono::milliseconds(0)) self->cancel_.request_stop();
  if (start) self->spawn(drain(self));
  boost::asio::co_spawn(self->strand_, cancel_after(self, timeout),
                        [](const std::exception_ptr&) {});
  while (!self->idle_.stop_requested())
    co_await self->options_.clock->sleep(std::chrono::hours(24), self->idle_.get_token());
  const std::uint64_t lost = self->dropped_[kShutdown].load();
  if (lost > 0) log::warn("events: {} were not written before the shutdown", lost);
  co_return lost == 0;
}

Awaitable<void> EventBroadcaster::Core::cancel_after(std::shared_ptr<Core> self,
                                                     std::chrono::milliseconds timeout) {
  const bool slept =
      co_await self->options_.clock->sleep(Clock::limited(timeout), self->idle_.get_token());
  if (slept) self->cancel_.request_stop();
}

/// Ends without waiting.
void EventBroadcaster::Core::abandon() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    flushed_ = true;
  }
  closing_.request_stop();
  cancel_.request_stop();
}

void EventBroadcaster::Core::collect(std::vector<metrics::Sample>& out) const {
  metrics::Collector collector(out, {{"name", options_.name}});
  collector.counter("event_recorder_events_total", "Events that were accepted from recorders.",
                    recorded_);
  collector.counter("event_recorder_writes_total", "Requests that wrote an event.", writes_);
  collector.counter("event_recorder_retries_total", "Failed attempts that were retried.",
                    failures_);
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = queue_.size();
  }
  collector.gauge("event_recorder_queue_length", "Events that wait to be processed.",
                  static_cast<double>(waiting));
  if (options_.api == EventsApi::kEvents) {
    collector.gauge("event_recorder_series", "Series that are kept.",
                    static_cast<double>(series_count_.load()));
  }
  constexpr std::array<const char*, kDrops> kReasons = {
      "invalid",           "queue_full",     "spam",    "refused",
      "retries_exhausted", "series_evicted", "shutdown"};
  for (std::size_t why = 0; why < kDrops; ++why) {
    metrics::Collector one(out, {{"name", options_.name}, {"reason", kReasons[why]}});
    one.counter("event_recorder_dropped_total", "Events that were dropped.", dropped_[why]);
  }
}

EventBroadcaster::EventBroadcaster(rest::Client client, BroadcasterOptions options)
    : EventBroadcaster(client.shared_loop(), make_event_sink(client, options.api),
                       std::move(options)) {}

EventBroadcaster::EventBroadcaster(std::shared_ptr<EventLoop> loop, std::shared_ptr<EventSink> sink,
                                   BroadcasterOptions options)
    : core_(std::make_shared<Core>(std::move(loop), std::move(sink), std::move(options))) {}

EventBroadcaster::~EventBroadcaster() {
  if (core_->loop().running_in_this_thread()) {
    core_->abandon();
    return;
  }
  try {
    core_->loop().run(Core::shutdown(core_, core_->options().shutdown_timeout));
  } catch (const std::exception& e) {
    log::error("events: the broadcaster was not shut down: {}", e.what());
  }
}

std::shared_ptr<EventRecorder> EventBroadcaster::recorder(EventSource source) {
  class Recorder : public EventRecorder {
   public:
    Recorder(std::shared_ptr<Core> core, EventSource given)
        : core_(std::move(core)), source_(std::move(given)) {}
    void record(Event given) override { core_->record(std::move(given), source_); }

   private:
    const std::shared_ptr<Core> core_;
    const EventSource source_;
  };
  if (core_->options().api == EventsApi::kEvents && source.host.empty())
    source.host = fmt::format("{}-{}", source.component, host_name());
  return std::make_shared<Recorder>(core_, std::move(source));
}

bool EventBroadcaster::shutdown(std::chrono::milliseconds timeout) {
  return core_->loop().run(Core::shutdown(core_, timeout));
}

Awaitable<bool> EventBroadcaster::async_shutdown(std::chrono::milliseconds timeout) {
  return Core::shutdown(core_, timeout);
}

void EventBroadcaster::collect(std::vector<metrics::Sample>& out) const { core_->collect(out); }

}  // namespace lookout::record
