// Text as Go reads and prints it, for messages that must be the API server's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::api::detail {

/// One character of a text: a code point, or one byte that belongs to none.
struct Rune {
  char32_t code = 0;
  std::size_t size = 1;
  bool valid = true;
};

/// The first character of `text`, which must not be empty.
Rune first_rune(std::string_view text);

/// In quotes and escaped, as "%q" does.
std::string quote(std::string_view text);

/// strconv.ParseInt(text, 10, 64).
std::optional<std::int64_t> parse_int(std::string_view text);

}  // namespace lookout::api::detail
