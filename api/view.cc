#include "lookout/api/view.h"

#include <charconv>

#include "lookout/api/base64.h"

namespace lookout::api {

std::optional<std::string> Bytes::decode() const { return decode_base64(text_); }

namespace {

/// All of `text` as a number.
std::optional<std::int64_t> parse_whole(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::int32_t IntOrString::int_value() const {
  return static_cast<std::int32_t>(is_int() ? value_.as_int()
                                            : parse_whole(value_.as_string()).value_or(0));
}

std::string IntOrString::to_string() const {
  return is_int() ? std::to_string(int_value()) : std::string(string_value());
}

std::optional<std::int32_t> IntOrString::scaled(std::int32_t total, bool round_up) const {
  if (is_int()) return int_value();
  const std::string_view text = string_value();
  if (!text.ends_with('%')) return std::nullopt;
  const auto percent = parse_whole(text.substr(0, text.size() - 1));
  if (!percent || *percent > 1'000'000 || *percent < -1'000'000) return std::nullopt;
  const std::int64_t hundredths = *percent * total;
  std::int64_t whole = hundredths / 100;
  const std::int64_t rest = hundredths % 100;
  if (round_up && rest > 0) ++whole;
  if (!round_up && rest < 0) --whole;
  return static_cast<std::int32_t>(whole);
}

}  // namespace lookout::api
