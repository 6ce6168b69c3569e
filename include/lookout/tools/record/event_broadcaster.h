// Writing events to an API server, in the background.
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
  /// How many events wait to be processed; further ones are dropped.
  std::size_t queue_size = 1000;
  /// How often an event is tried while the server fails, and the pause between: in core/v1 the
  /// first pause is a random part of it, in events.k8s.io/v1 each is longer by up to a quarter.
  int attempts = 12;
  std::chrono::milliseconds retry_pause{10'000};
  /// core/v1 only.
  LOOKOUT_OPTION CorrelatorOptions correlator = {};
  /// events.k8s.io/v1 only: a series that was not observed for `finish_after` is over, and its last
  /// count is written; one that goes on is written every `refresh_every`.
  std::chrono::milliseconds finish_after{360'000};
  std::chrono::milliseconds refresh_every{1'800'000};
  /// How many series are kept, and how many requests are under way at a time.
  std::size_t max_series = 4096;
  std::size_t max_requests = 8;
  /// How long the destructor waits for events to be written.
  std::chrono::milliseconds shutdown_timeout{5'000};
  /// Called with every event before similar ones are combined, on the event loop; must not block.
  /// client-go's StartEventWatcher.
  LOOKOUT_OPTION std::function<void(const RecordedEvent&)> on_event = {};
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = Clock::real();
  /// The time that is written into events; empty: the machine's.
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
/// Writing happens on the client's event loop, on a strand. An event that the server refuses is
/// dropped; while the server cannot be reached or fails (5xx, 429), events wait. Beyond client-go:
/// - shutdown() writes what waits, and the last counts of series, until a deadline.
/// - What is dropped is counted, with the reason why.
/// - An answer 5xx or 429 is tried again; client-go drops the event.
/// - In events.k8s.io/v1 one event is written by one request at a time, so that its series cannot
///   overtake its creation.
///
/// The program needs the rights to create and patch `events`, in the API group of EventsApi.
///
/// All functions may be called from any thread.
class EventBroadcaster : public metrics::Source {
 public:
  explicit EventBroadcaster(rest::Client client, BroadcasterOptions options = BroadcasterOptions());
  /// With a sink of one's own, whose calls run on `loop`.
  EventBroadcaster(std::shared_ptr<EventLoop> loop, std::shared_ptr<EventSink> sink,
                   BroadcasterOptions options = BroadcasterOptions());
  /// shutdown(options.shutdown_timeout). On a thread of the event loop it does not wait: events
  /// that are not written yet are dropped.
  ~EventBroadcaster() override;
  EventBroadcaster(const EventBroadcaster&) = delete;
  EventBroadcaster& operator=(const EventBroadcaster&) = delete;

  /// A recorder may outlive the broadcaster; it drops events then.
  std::shared_ptr<EventRecorder> recorder(EventSource source);

  /// Takes no more events, and writes those that wait. After `timeout` (of the options' clock),
  /// requests are cancelled and what is left is dropped. When it returns, nothing of the
  /// broadcaster's runs any more. True if nothing was dropped because of the shutdown. May be
  /// called more than once; the earliest deadline counts. The blocking function throws
  /// InvalidArgument on a thread of the event loop.
  bool shutdown(std::chrono::milliseconds timeout);
  Awaitable<bool> async_shutdown(std::chrono::milliseconds timeout);

  /// event_recorder_*: see docs/metrics.md.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  class Core;

  const std::shared_ptr<Core> core_;
};

}  // namespace lookout::record
