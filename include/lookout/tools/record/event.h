// Event: a program's report about an object.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/time.h"
#include "lookout/base/attributes.h"

namespace lookout::record {

enum class EventType {
  kNormal,   ///< information
  kWarning,  ///< something may be wrong
};

/// "Normal" or "Warning", as the API writes it.
std::string_view to_string(EventType type);

/// core/v1 ObjectReference as a plain value.
struct ObjectReference {
  LOOKOUT_OPTION std::string api_version = {};
  LOOKOUT_OPTION std::string kind = {};
  LOOKOUT_OPTION std::string ns = {};
  LOOKOUT_OPTION std::string name = {};
  LOOKOUT_OPTION std::string uid = {};
  LOOKOUT_OPTION std::string resource_version = {};
  /// A part of the object, such as "spec.containers{web}".
  LOOKOUT_OPTION std::string field_path = {};

  friend bool operator==(const ObjectReference&, const ObjectReference&) = default;
};

/// A reference to `object` or, if `field_path` is given, to a part of it: client-go's
/// reference.GetReference and GetPartialReference. Throws InvalidArgument if the object is empty or
/// has no apiVersion or kind.
ObjectReference reference_to(const api::Object& object, std::string field_path = {});

/// One report. Text is truncated to the API's limits at a character boundary, and invalid UTF-8 is
/// replaced by U+FFFD.
struct Event {
  /// The object that the event is about. The event is created in its namespace, or in "default" if
  /// the object has none.
  LOOKOUT_OPTION ObjectReference regarding = {};
  /// A second object, such as a pod that was created for `regarding`.
  LOOKOUT_OPTION std::optional<ObjectReference> related = {};
  EventType type = EventType::kNormal;
  /// The reason: a short CamelCase word that programs can switch on; at most 128 bytes.
  LOOKOUT_OPTION std::string reason = {};
  /// The action of the controller, a CamelCase word; at most 128 bytes. If it is empty,
  /// events.k8s.io/v1, which requires an action, gets the reason instead.
  LOOKOUT_OPTION std::string action = {};
  /// Text for people; at most 1024 bytes. core/v1 calls it the message.
  LOOKOUT_OPTION std::string note = {};
  LOOKOUT_OPTION std::map<std::string, std::string> annotations = {};
};

/// The component that reports an event.
struct EventSource {
  /// The controller: a name such as "website" or "example.com/website-controller".
  LOOKOUT_OPTION std::string component = {};
  /// core/v1: the source's host and reporting instance, often empty. events.k8s.io/v1: the
  /// reporting instance; if it is empty, the component, a hyphen and the host name.
  LOOKOUT_OPTION std::string host = {};

  friend bool operator==(const EventSource&, const EventSource&) = default;
};

/// An event with the fields that a recorder adds.
struct RecordedEvent : Event {
  EventSource source = {};
  std::string ns = {};
  std::string name = {};
  api::Time first_time = {};
  api::Time last_time = {};
  std::int32_t count = 1;
};

/// Makes the name of an event: the name of the object, a dot and the time in nanoseconds as a
/// hexadecimal number, or `fallback` if the result is not a valid object name. client-go's
/// GenerateEventName.
std::string make_event_name(std::string_view regarding, std::int64_t nanoseconds,
                            std::string fallback);

/// Truncates `text` to at most `limit` bytes at a character boundary; bytes that are not UTF-8
/// become U+FFFD.
std::string limit_text(std::string_view text, std::size_t limit);

/// A field selector for the events about an object, for lists and watches of events in the API
/// version `events_api` ("v1" or "events.k8s.io/v1"). Empty fields of `regarding` are ignored.
/// Throws InvalidArgument for another API version. client-go's events.GetFieldSelector.
std::string field_selector(std::string_view events_api, const ObjectReference& regarding);

}  // namespace lookout::record
