// Reading and printing text as Go does, for messages that must match the API server's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::api::detail {

/// One character of a text: a code point, or a byte that is not part of valid UTF-8.
struct Rune {
  char32_t code = 0;
  std::size_t size = 1;
  bool valid = true;
};

/// The first character of `text`, which must not be empty.
Rune first_rune(std::string_view text);

/// Quotes and escapes the text as "%q" does.
std::string quote(std::string_view text);

/// strconv.ParseInt(text, 10, 64).
std::optional<std::int64_t> parse_int(std::string_view text);

}  // namespace lookout::api::detail
