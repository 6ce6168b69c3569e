// Events: the Events of the simulated cluster, as a real cluster's components report them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/controller/event_sink.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "lookout/tools/record/event_broadcaster.h"

namespace lookout::cmd::cluster {

/// Writes Events in the background. Safe to use from any thread.
class Events : public controller::EventSink {
 public:
  explicit Events(rest::Client client);

  /// The component is the one that does the controller's work in a real cluster, such as
  /// "deployment-controller". The kubelet's host is the pod's node.
  void event(const api::Object& regarding, controller::EventType type, std::string_view reason,
             const std::string& message, std::string_view controller) override;
  /// A kubelet's event about a container of a pod.
  void about_container(const k8s::core::v1::Pod& pod, std::string_view container,
                       controller::EventType type, std::string_view reason, std::string note);

  /// Writes the waiting events, for at most two seconds; then nothing is written any more.
  void stop();

 private:
  std::shared_ptr<record::EventRecorder> recorder_of(std::string component, std::string host);

  record::EventBroadcaster broadcaster_;
  std::mutex mutex_;
  // Guarded by mutex_: by component and host.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<record::EventRecorder>> recorders_;
};

}  // namespace lookout::cmd::cluster
