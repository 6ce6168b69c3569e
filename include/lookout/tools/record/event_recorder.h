// Recording events.
#pragma once

#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/tools/record/event.h"

namespace lookout::record {

/// Takes events; client-go's record.EventRecorder and events.EventRecorder. EventBroadcaster makes
/// those that write to a server, test::FakeRecorder keeps events for a test.
///
/// Recording never waits for a server. It is safe from any thread.
class EventRecorder {
 public:
  virtual ~EventRecorder() = default;

  /// An event that cannot be recorded is dropped, which the broadcaster counts: see its metrics.
  virtual void record(Event given) = 0;

  /// The same for an object at hand. An object without apiVersion or kind counts as an event that
  /// cannot be recorded.
  void event(const api::Object& regarding, EventType type, std::string_view reason,
             std::string_view note);
  void normal(const api::Object& regarding, std::string_view reason, std::string_view note) {
    event(regarding, EventType::kNormal, reason, note);
  }
  void warning(const api::Object& regarding, std::string_view reason, std::string_view note) {
    event(regarding, EventType::kWarning, reason, note);
  }
};

}  // namespace lookout::record
