#include "apiserver/endpoints/warning_headers.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::size_t kMaxWarnings = 4096;
constexpr std::size_t kMaxCutWarning = 256;

/// The length of a text in characters.
struct MeasuredText {
  std::size_t characters = 0;
  /// The bytes of its first kMaxCutWarning characters.
  std::size_t beginning = 0;
  bool valid = true;
};

MeasuredText measure_text(std::string_view text) {
  MeasuredText out;
  for (std::size_t at = 0; at < text.size();) {
    const api::detail::Rune rune = api::detail::first_rune(text.substr(at));
    out.valid = out.valid && rune.valid;
    at += rune.size;
    if (++out.characters <= kMaxCutWarning) out.beginning = at;
  }
  return out;
}

std::string warning_header(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    // Clients choose the names of fields, and a line break would end the header.
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    quoted += control ? ' ' : c;
  }
  return "299 - \"" + quoted + "\"";
}

/// The texts without duplicates and invalid ones.
std::vector<std::string_view> distinct_texts(const std::vector<std::string>& texts) {
  std::vector<std::string_view> out;
  for (const std::string& text : texts) {
    if (!text.empty() && measure_text(text).valid && std::ranges::find(out, text) == out.end())
      out.emplace_back(text);
  }
  return out;
}

}  // namespace

std::vector<std::string> warning_headers(const std::vector<std::string>& texts) {
  const std::vector<std::string_view> all = distinct_texts(texts);
  std::size_t total = 0;
  for (const std::string_view text : all) total += measure_text(text).characters;
  const bool shortened = total > kMaxWarnings;
  std::vector<std::string> out;
  std::size_t written = 0;
  for (const std::string_view text : all) {
    if (shortened && written >= kMaxWarnings) break;
    const MeasuredText measured = measure_text(text);
    written += shortened ? std::min(measured.characters, kMaxCutWarning) : measured.characters;
    out.push_back(warning_header(shortened ? text.substr(0, measured.beginning) : text));
  }
  return out;
}

}  // namespace lookout::apiserver::endpoints
