#include "lookout/api/view.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "lookout/api/detail/go_text.h"
#include "lookout/base/base64.h"

namespace lookout::api {

std::optional<std::string> Bytes::decode() const { return decode_base64(text_); }

namespace {

std::int32_t to_int32(std::int64_t number) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(
      number, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

std::int32_t IntOrString::int_value() const {
  return to_int32(is_int() ? value_.as_int() : detail::parse_int(value_.as_string()).value_or(0));
}

std::string IntOrString::to_string() const {
  return is_int() ? std::to_string(int_value()) : std::string(string_value());
}

std::optional<std::int32_t> IntOrString::scaled(std::int32_t total, bool round_up) const {
  if (is_int()) return int_value();
  const std::string_view text = string_value();
  if (!text.ends_with('%')) return std::nullopt;
  const auto percent = detail::parse_int(text.substr(0, text.size() - 1));
  if (!percent || !std::in_range<std::int32_t>(*percent)) return std::nullopt;
  const std::int64_t hundredths = *percent * total;
  std::int64_t whole = hundredths / 100;
  const std::int64_t rest = hundredths % 100;
  if (round_up && rest > 0) ++whole;
  if (!round_up && rest < 0) --whole;
  return to_int32(whole);
}

}  // namespace lookout::api
