#include "cmd/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lookout::cmd {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

/// East_Asian_Width W and F in blocks, and the emoji that terminals show as wide.
constexpr std::array kWide = {
    Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},   Range{0x3041, 0xa4cf},
    Range{0xa960, 0xa97f},   Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},
    Range{0xfe10, 0xfe19},   Range{0xfe30, 0xfe6f},   Range{0xff01, 0xff60},
    Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f}, Range{0x1f680, 0x1f6ff},
    Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd},
};
constexpr std::array kCombining = {
    Range{0x0300, 0x036f}, Range{0x1ab0, 0x1aff}, Range{0x1dc0, 0x1dff}, Range{0x200b, 0x200f},
    Range{0x20d0, 0x20ff}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f},
};

template <class Ranges>
bool is_in(const Ranges& ranges, std::uint32_t code) {
  return std::ranges::any_of(
      ranges, [code](const Range& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t size = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size == 1 || size > text.size()) return {};
  std::uint32_t code = lead & (0xffu >> (size + 1));
  for (const char c : text.substr(1, size - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0u) != 0x80u) return {};
    code = code << 6 | (byte & 0x3fu);
  }
  return {.bytes = size, .columns = is_in(kCombining, code) ? 0u : is_in(kWide, code) ? 2u : 1u};
}

std::size_t width_of(std::string_view text) {
  std::size_t out = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    out += next.columns;
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (c < 0x20 || c == 0x7f) text[i] = '?';
    // U+0080 to U+009F.
    if (c == 0xc2 && next >= 0x80 && next < 0xa0) text.replace(i, 2, "?");
  }
  return text;
}

}  // namespace lookout::cmd
