// RecordedEvents: writes the Events of controllers to the API server.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/metrics.h"
#include "lookout/controller/event_sink.h"
#include "lookout/rest/client.h"
#include "lookout/tools/record/event_broadcaster.h"

namespace lookout::controller {

/// Writes the Events of Context::event() to the server in the background, with a
/// record::EventBroadcaster: similar events are combined, and a reconciler never waits.
///
///     ManagerOptions options;
///     options.events = std::make_shared<controller::RecordedEvents>(client);
///
/// The name of the controller is the component of its events. The program needs permission to
/// create and patch `events`. Safe to use from any thread.
class RecordedEvents : public EventSink, public metrics::Source {
 public:
  explicit RecordedEvents(rest::Client client,
                          record::BroadcasterOptions options = record::BroadcasterOptions());
  /// Writes waiting events, for at most BroadcasterOptions::shutdown_timeout.
  ~RecordedEvents() override;

  void event(const api::Object& regarding, EventType type, std::string_view reason,
             const std::string& message, std::string_view controller) override;

  /// The metrics of the broadcaster; for Manager::add_metrics().
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  std::shared_ptr<record::EventRecorder> recorder_of(std::string_view controller);

  record::EventBroadcaster broadcaster_;
  std::mutex mutex_;
  // Guarded by mutex_: one recorder per controller.
  std::map<std::string, std::shared_ptr<record::EventRecorder>, std::less<>> recorders_;
};

}  // namespace lookout::controller
