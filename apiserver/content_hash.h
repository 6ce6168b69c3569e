// The hash that identifies the content of a document.
#pragma once

#include <string>
#include <string_view>

namespace lookout::apiserver {

/// SHA-512 in hexadecimal digits.
std::string content_hash(std::string_view text);

}  // namespace lookout::apiserver
