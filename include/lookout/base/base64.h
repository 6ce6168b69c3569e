// Base64, as JSON and kubeconfig carry binary data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lookout {

/// Standard alphabet, padded.
std::string encode_base64(std::string_view bytes);

/// Nothing if the text is no padded base64. Line breaks are ignored, as Go does.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace lookout
