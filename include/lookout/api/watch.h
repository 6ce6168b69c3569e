// Watch events.
#pragma once

#include <string_view>

#include "lookout/api/object.h"

namespace lookout::api {

/// The type of a watch event, as the API server names it (metav1.WatchEvent).
enum class EventType {
  kAdded,
  kModified,
  kDeleted,
  kBookmark,  ///< Only the resourceVersion counts: all changes up to it have been sent.
  kError,     ///< The object is a Status, and the watch ends.
};

/// "ADDED", "MODIFIED" ...
std::string_view to_string(EventType type);

struct WatchEvent {
  EventType type = EventType::kError;
  Object object;
};

/// The annotation on the bookmark that ends the initial events of a streaming list.
inline constexpr std::string_view kInitialEventsEndAnnotation = "k8s.io/initial-events-end";

}  // namespace lookout::api
