// EventBroadcaster: writes events to an API server in the background.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lookout/api/time.h"
#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/rest/client.h"
#include "lookout/tools/record/event.h"
#include "lookout/tools/record/event_correlator.h"
#include "lookout/tools/record/event_recorder.h"
#include "lookout/tools/record/event_sink.h"

namespace lookout::record {

/// The defaults are client-go's.
struct BroadcasterOptions {
  EventsApi api = EventsApi::kCore;
  /// The label `name` of the metrics.
  LOOKOUT_OPTION std::string name = "events";
  /// The capacity of the queue; further events are dropped.
  std::size_t queue_size = 1000;
  /// The number of attempts while the server fails, and the pause between them. In core/v1 the
  /// first pause is a random part of it; in events.k8s.io/v1 each pause is up to a quarter longer.
  int attempts = 12;
  std::chrono::milliseconds retry_pause{10'000};
  /// core/v1 only.
  LOOKOUT_OPTION CorrelatorOptions correlator = {};
  /// events.k8s.io/v1 only: a series that is not observed for `finish_after` is over, and its last
  /// count is written; a continuing series is written every `refresh_every`.
  std::chrono::milliseconds finish_after{360'000};
  std::chrono::milliseconds refresh_every{1'800'000};
  /// The maximum number of series kept, and of concurrent requests.
  std::size_t max_series = 4096;
  std::size_t max_requests = 8;
  /// How long the destructor waits for events to be written.
  std::chrono::milliseconds shutdown_timeout{5'000};
  /// Called with every event before similar ones are combined, on the event loop; must not block.
  /// client-go's StartEventWatcher.
  LOOKOUT_OPTION std::function<void(const RecordedEvent&)> on_event = {};
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = Clock::real();
  /// The source of timestamps in events; empty: the machine's clock.
  LOOKOUT_OPTION std::function<api::Time()> wall_clock = {};
  /// Seeds pauses and names; 0: a random seed.
  std::uint64_t seed = 0;
};

/// Writes the events of its recorders to one API server; client-go's record.EventBroadcaster
/// (EventsApi::kCore) and events.EventBroadcaster (kEvents).
///
///     record::EventBroadcaster broadcaster(client);
///     const auto recorder = broadcaster.recorder({.component = "website"});
///     recorder->normal(site, "Created", "deployment web");
///
/// Writes happen on a strand of the client's event loop. An event that the server refuses is
/// dropped; while the server is unreachable or fails (5xx, 429), events wait. Beyond client-go:
/// - shutdown() writes waiting events and the last counts of series, until a deadline.
/// - Dropped events are counted by reason.
/// - 5xx and 429 answers are retried; client-go drops the event.
/// - In events.k8s.io/v1, each event has one request at a time, so that an update of its series
///   cannot overtake its creation.
///
/// The program needs permission to create and patch `events` in the API group of EventsApi.
///
/// All functions may be called from any thread.
class EventBroadcaster : public metrics::Source {
 public:
  explicit EventBroadcaster(rest::Client client, BroadcasterOptions options = BroadcasterOptions());
  /// Uses a custom sink, whose calls run on `loop`.
  EventBroadcaster(std::shared_ptr<EventLoop> loop, std::shared_ptr<EventSink> sink,
                   BroadcasterOptions options = BroadcasterOptions());
  /// Calls shutdown(options.shutdown_timeout). On a thread of the event loop it does not wait:
  /// unwritten events are dropped.
  ~EventBroadcaster() override;
  EventBroadcaster(const EventBroadcaster&) = delete;
  EventBroadcaster& operator=(const EventBroadcaster&) = delete;

  /// A recorder may outlive the broadcaster; it then drops events.
  std::shared_ptr<EventRecorder> recorder(EventSource source);

  /// Accepts no more events and writes the waiting ones. After `timeout` (by the clock of the
  /// options), it cancels requests and drops the rest. Once it returns, nothing of the broadcaster
  /// runs any more. Returns true if the shutdown dropped nothing. May be called more than once; the
  /// earliest deadline counts. The blocking function throws InvalidArgument on a thread of the
  /// event loop.
  bool shutdown(std::chrono::milliseconds timeout);
  Awaitable<bool> async_shutdown(std::chrono::milliseconds timeout);

  /// event_recorder_*: see docs/metrics.md.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  class Core;

  const std::shared_ptr<Core> core_;
};

}  // namespace lookout::record
