// Rules for strings in JSON that parsers do not enforce.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lookout {

/// The position of the first control character inside a JSON string, which RFC 8259 forbids; npos
/// if there is none. (RapidJSON with SSE2 misses some of them, depending on their alignment in
/// memory.) The result is unspecified for text that is not JSON.
std::size_t find_control_character(std::string_view json);

/// Replaces each escaped half of a surrogate pair that has no other half ("\ud83d") by U+FFFD, as
/// Go's decoder does; RapidJSON refuses them. Returns `json` itself if there is none, otherwise a
/// text of the same size in `room`.
std::string_view repair_surrogates(std::string_view json, std::string& room);

/// Replaces each byte that is not valid UTF-8 by U+FFFD, as Go's encoder does.
std::string repair_utf8(std::string text);

}  // namespace lookout
