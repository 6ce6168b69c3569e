// The name of an object that cannot be decoded.
#pragma once

#include <string>
#include <string_view>

namespace lookout::api::detail {

/// "namespace/name" (or "name") of the JSON object in `text` or, if `event`, in its watch event;
/// empty if it cannot be determined. Ignores errors in other values.
std::string key_in_json(std::string_view text, bool event);

/// The same for a protobuf message of a built-in kind.
std::string key_in_protobuf(std::string_view bytes);

}  // namespace lookout::api::detail
