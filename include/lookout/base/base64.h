// Base64, the encoding of binary data in JSON and kubeconfig files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lookout {

/// Standard alphabet, padded.
std::string encode_base64(std::string_view bytes);

/// Empty if the text is not padded base64. Ignores line breaks, as Go does.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace lookout
