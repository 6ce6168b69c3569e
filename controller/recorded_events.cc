#include "lookout/controller/recorded_events.h"

#include <utility>

namespace lookout::controller {

RecordedEvents::RecordedEvents(rest::Client client, record::BroadcasterOptions options)
    : broadcaster_(std::move(client), std::move(options)) {}

RecordedEvents::~RecordedEvents() = default;

void RecordedEvents::event(const api::Object& regarding, EventType type, std::string_view reason,
                           const std::string& message, std::string_view controller) {
  recorder_of(controller)
      ->event(
          regarding,
          type == EventType::kWarning ? record::EventType::kWarning : record::EventType::kNormal,
          reason, message);
}

void RecordedEvents::collect(std::vector<metrics::Sample>& out) const { broadcaster_.collect(out); }

std::shared_ptr<record::EventRecorder> RecordedEvents::recorder_of(std::string_view controller) {
  const std::lock_guard lock(mutex_);
  const auto found = recorders_.find(controller);
  if (found != recorders_.end()) return found->second;
  record::EventSource source;
  source.component = controller;
  return recorders_.emplace(controller, broadcaster_.recorder(std::move(source))).first->second;
}

}  // namespace lookout::controller
