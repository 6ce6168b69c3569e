#include "lookout/api/detail/go_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "lookout/base/numbers.h"
#include "lookout/base/structural_scanner.h"

namespace lookout::api::detail {

Rune first_rune(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (size > text.size() || find_invalid_utf8(text.substr(0, size)) != std::string_view::npos)
    return {lead, 1, false};
  char32_t code = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte(i) & 0x3F);
  return {code, size, true};
}

std::string quote(std::string_view text) {
  constexpr std::string_view kEscaped = "\a\b\f\n\r\t\v\"\\";
  constexpr std::string_view kLetters = "abfnrtv\"\\";
  std::string out = "\"";
  while (!text.empty()) {
    const Rune rune = first_rune(text);
    const std::string_view unit = text.substr(0, rune.size);
    text.remove_prefix(rune.size);
    if (const auto i = kEscaped.find(unit[0]); i != std::string_view::npos) {
      out += '\\';
      out += kLetters[i];
    } else if (!rune.valid || rune.code < 0x20 || rune.code == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(rune.code));
    } else if (rune.code < 0x7F || fmt::format("{:?}", unit).find(unit) != std::string::npos) {
      // {fmt} escapes the same code points as Go, but writes some of them differently.
      out += unit;
    } else if (rune.code < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(rune.code));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<unsigned>(rune.code));
    }
  }
  return out += '"';
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return base::parse_number<std::int64_t>(text);
}

}  // namespace lookout::api::detail
