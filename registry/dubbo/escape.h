// URL escaping as in Go, and splitting of strings.
#pragma once

#include <string>
#include <string_view>

namespace lookout::registry::dubbo {

/// Returns the part before the separator, and sets `text` to the part after it.
std::string_view cut(std::string_view& text, char separator);

/// Go's url.QueryEscape(): a space becomes '+'.
std::string query_escape(std::string_view text);
/// Reverses query_escape(). Keeps invalid escapes.
std::string query_unescape(std::string_view text);
/// Whether the text is UTF-8 without NUL bytes. Escapes can encode any bytes, but JSON and protobuf
/// accept only UTF-8, and libcurl ends a text at a NUL byte.
bool is_text(std::string_view unescaped);

}  // namespace lookout::registry::dubbo
