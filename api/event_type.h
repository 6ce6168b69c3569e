// The types of watch events in their text form.
#pragma once

#include <optional>
#include <string_view>

#include "lookout/api/watch.h"

namespace lookout::api::detail {

/// The inverse of to_string(); empty for any other text.
std::optional<EventType> parse_event_type(std::string_view text);

}  // namespace lookout::api::detail
