// Escaping in URLs as Go does it, and taking texts apart.
#pragma once

#include <string>
#include <string_view>

namespace lookout::registry::dubbo {

/// The part before the separator; `text` is what comes after it.
std::string_view cut(std::string_view& text, char separator);

/// Go's url.QueryEscape(): a space becomes '+'.
std::string query_escape(std::string_view text);
/// Undoes it. What is no escape stays as it is.
std::string query_unescape(std::string_view text);
/// Whether it is UTF-8 without NUL bytes: escapes can stand for any bytes, but JSON and protobuf
/// take only UTF-8, and a NUL byte ends the text for libcurl.
bool is_text(std::string_view unescaped);

}  // namespace lookout::registry::dubbo
