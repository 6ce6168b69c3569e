// EventRecorder: records events about objects.
#pragma once

#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/tools/record/event.h"

namespace lookout::record {

/// Records events; client-go's record.EventRecorder and events.EventRecorder. An EventBroadcaster
/// makes recorders that write to a server; test::FakeRecorder keeps events for a test.
///
/// Recording never waits for a server. Safe to use from any thread.
class EventRecorder {
 public:
  virtual ~EventRecorder() = default;

  /// Records an event. If that fails, the event is dropped, and the broadcaster's metrics count it.
  virtual void record(Event given) = 0;

  /// Records an event about `regarding`. An object without apiVersion or kind counts as a failure.
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
