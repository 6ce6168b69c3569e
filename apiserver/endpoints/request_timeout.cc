#include "apiserver/endpoints/request_timeout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::endpoints {
namespace {

struct DurationUnit {
  std::string_view name;
  std::uint64_t nanoseconds;
};
constexpr std::uint64_t kNanosecondsOfSecond = 1'000'000'000;
constexpr std::array<DurationUnit, 8> kDurationUnits = {{{"ns", 1},
                                                         {"us", 1'000},
                                                         {"\u00B5s", 1'000},
                                                         {"\u03BCs", 1'000},
                                                         {"ms", 1'000'000},
                                                         {"s", kNanosecondsOfSecond},
                                                         {"m", 60 * kNanosecondsOfSecond},
                                                         {"h", 3600 * kNanosecondsOfSecond}}};
constexpr std::uint64_t kLongestDuration = std::uint64_t{1} << 63;
constexpr std::string_view kDecimalDigits = "0123456789";

/// Takes the digits from the beginning of the text.
std::string_view take_digits(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of(kDecimalDigits), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

/// The error of Go's time.ParseDuration; empty if there is none.
std::string duration_error(std::string_view text) {
  const std::string quoted = api::detail::quote(text);
  std::string invalid = fmt::format("time: invalid duration {}", quoted);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return {};
  if (text.empty()) return invalid;
  while (!text.empty()) {
    const std::string_view whole = take_digits(text);
    std::string_view fraction;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      fraction = take_digits(text);
    }
    if (whole.empty() && fraction.empty()) return invalid;
    std::uint64_t number = 0;
    if (!whole.empty() &&
        std::from_chars(whole.data(), whole.data() + whole.size(), number).ec != std::errc{})
      return invalid;
    const std::string_view name =
        text.substr(0, std::min(text.find_first_of(".0123456789"), text.size()));
    if (name.empty()) return fmt::format("time: missing unit in duration {}", quoted);
    const auto unit = std::ranges::find(kDurationUnits, name, &DurationUnit::name);
    if (unit == kDurationUnits.end()) {
      return fmt::format("time: unknown unit {} in duration {}", api::detail::quote(name), quoted);
    }
    if (number > kLongestDuration / unit->nanoseconds) return invalid;
    text.remove_prefix(name.size());
  }
  return {};
}

bool is_long_running(const RequestInfo& info) {
  constexpr std::array<std::string_view, 5> kSubresources = {"attach", "exec", "log", "portforward",
                                                             "proxy"};
  return info.verb == "watch" ||
         std::ranges::find(kSubresources, info.subresource) != kSubresources.end();
}

}  // namespace

void check_timeout(const http::Request& request, const RequestInfo& info) {
  const std::string_view timeout = request.parameter("timeout").value_or("");
  if (timeout.empty() || is_long_running(info)) return;
  if (const std::string error = duration_error(timeout); !error.empty()) {
    throw api::StatusError::bad_request("invalid timeout specified in the request URL - " + error);
  }
}

}  // namespace lookout::apiserver::endpoints
