#include "cmd/registry/page/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace lookout::cmd::registry_cmd {
namespace {

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

/// Removes and returns the text before the first of the characters `ends`.
std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::string_view out = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(out.size());
  return out;
}

bool take_char(std::string_view& text, char c) {
  skip_blanks(text);
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// A quoted string with the escapes \\, \" and \n; nullopt if it is malformed or too long.
std::optional<std::string> take_quoted(std::string_view& text) {
  if (!take_char(text, '"')) return std::nullopt;
  std::string out;
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '"') return out;
    if (c == '\\') {
      if (text.empty()) return std::nullopt;
      c = text.front() == 'n' ? '\n' : text.front();
      text.remove_prefix(1);
    }
    if (out.size() == kLongestLabel) return std::nullopt;
    out += c;
  }
  return std::nullopt;
}

/// {name="value",...}
bool take_labels(std::string_view& text, MetricLine& line) {
  if (!take_char(text, '{')) return true;
  while (!take_char(text, '}')) {
    skip_blanks(text);
    const std::string_view name = take_until(text, "= \t");
    if (name.empty() || !take_char(text, '=')) return false;
    auto value = take_quoted(text);
    if (!value) return false;
    if (name == "service") line.service = std::move(*value);
    if (name == "instance") line.instance = std::move(*value);
    take_char(text, ',');
  }
  return true;
}

/// The number; a timestamp after it is ignored.
bool take_value(std::string_view& text, double& value) {
  skip_blanks(text);
  const std::string_view number = take_until(text, " \t");
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  return error == std::errc() && end == number.data() + number.size() && std::isfinite(value);
}

}  // namespace

void read_metrics(std::string_view text, std::string_view prefix,
                  const std::function<void(MetricLine line)>& take) {
  while (!text.empty()) {
    std::string_view rest = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(rest.size() + 1, text.size()));
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    if (!rest.starts_with(prefix)) continue;
    MetricLine line;
    line.name = take_until(rest, "{ \t");
    if (!take_labels(rest, line) || line.service.empty() || !take_value(rest, line.value)) continue;
    take(std::move(line));
  }
}

}  // namespace lookout::cmd::registry_cmd
