// EventSink: the destination of the Kubernetes Events of controllers.
#pragma once

#include <string>
#include <string_view>

#include "lookout/api/object.h"

namespace lookout::controller {

enum class EventType { kNormal, kWarning };

/// Receives the Events that reconcilers report with Context::event(): an event recorder, or a fake
/// in a test. Called from any thread, including the event loop, so it must not block.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// `regarding` is the object that the Event is about; `reason` is a short CamelCase word;
  /// `controller` is the name of the controller that reports it.
  virtual void event(const api::Object& regarding, EventType type, std::string_view reason,
                     const std::string& message, std::string_view controller) = 0;
};

}  // namespace lookout::controller
