#include "controller/lease_events.h"

#include <utility>

#include "lookout/api/draft.h"

namespace lookout::controller::detail {

LeaseEvents::LeaseEvents(std::shared_ptr<EventSink> sink, std::string identity)
    : sink_(std::move(sink)), identity_(std::move(identity)) {}

void LeaseEvents::record(record::Event given) {
  const api::ObjectDraft lease;
  lease["apiVersion"].set(given.regarding.api_version);
  lease["kind"].set(given.regarding.kind);
  const auto metadata = lease["metadata"];
  metadata["name"].set(given.regarding.name);
  metadata["namespace"].set(given.regarding.ns);
  metadata["uid"].set(given.regarding.uid);
  metadata["resourceVersion"].set(given.regarding.resource_version);
  const EventType type =
      given.type == record::EventType::kWarning ? EventType::kWarning : EventType::kNormal;
  sink_->event(lease.build(), type, given.reason, given.note, identity_);
}

}  // namespace lookout::controller::detail
