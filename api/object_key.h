// The name of an object that cannot be decoded.
#pragma once

#include <string>
#include <string_view>

namespace lookout::api::detail {

/// "namespace/name" (or "name") of the object that is JSON in `text`, or, if `event`, in the watch
/// event there; empty if the text does not say it beyond doubt. Other values are skipped by
/// their brackets, so errors in them do not matter.
std::string key_in_json(std::string_view text, bool event);

/// The same of a protobuf message of a built-in kind.
std::string key_in_protobuf(std::string_view bytes);

}  // namespace lookout::api::detail
