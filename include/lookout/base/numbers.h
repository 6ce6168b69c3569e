// Parsing numbers.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace lookout::base {

/// Parses the whole text as an integer in base 10, without spaces and '+'. Empty if it is not one,
/// or does not fit into a Number.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number out{};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, out);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return out;
}

}  // namespace lookout::base
