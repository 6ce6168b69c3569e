#include "lookout/base/json_strings.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "lookout/base/structural_scanner.h"

namespace lookout {
namespace {

constexpr std::size_t kEscapeSize = 6;  // \u0041

/// The code unit of the escape at `at`; empty if there is none.
std::optional<std::uint16_t> code_unit(std::string_view json, std::size_t at) {
  const std::string_view escape = json.substr(at, kEscapeSize);
  if (escape.size() < kEscapeSize || !escape.starts_with("\\u")) return std::nullopt;
  constexpr int kHexadecimal = 16;
  std::uint16_t out = 0;
  const char* const end = escape.data() + escape.size();
  const auto parsed = std::from_chars(escape.data() + 2, end, out, kHexadecimal);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return out;
}

bool is_high(std::uint16_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(std::uint16_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace

std::size_t find_control_character(std::string_view json) {
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string && c == '\\') {
      ++i;
      if (i < json.size() && static_cast<unsigned char>(json[i]) < 0x20) return i;
    } else if (in_string && static_cast<unsigned char>(c) < 0x20) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string_view repair_surrogates(std::string_view json, std::string& room) {
  bool repaired = false;
  for (std::size_t at = json.find('\\'); at < json.size(); at = json.find('\\', at)) {
    const auto unit = code_unit(json, at);
    if (!unit) {
      at += 2;
    } else if (is_high(*unit) && is_low(code_unit(json, at + kEscapeSize).value_or(0))) {
      at += 2 * kEscapeSize;
    } else {
      if (is_high(*unit) || is_low(*unit)) {
        if (!repaired) room.assign(json);
        repaired = true;
        room.replace(at, kEscapeSize, "\\ufffd");
      }
      at += kEscapeSize;
    }
  }
  return repaired ? std::string_view(room) : json;
}

std::string repair_utf8(std::string text) {
  std::string_view rest = text;
  std::size_t bad = find_invalid_utf8(rest);
  if (bad == std::string_view::npos) return text;
  std::string out;
  for (; bad != std::string_view::npos; bad = find_invalid_utf8(rest)) {
    out.append(rest.substr(0, bad)).append("\xEF\xBF\xBD");
    rest.remove_prefix(bad + 1);
  }
  return out.append(rest);
}

}  // namespace lookout
