// Timestamps in Kubernetes' formats.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::api {

/// metav1.Time and metav1.MicroTime: UTC, in microseconds (metav1.Time is sent in whole seconds).
using Time = std::chrono::sys_time<std::chrono::microseconds>;

/// The machine's time, for the setters of drafts: metav1.Now().
Time now();

/// Parses RFC 3339 ("2026-11-20T11:14:57Z", "2026-11-20T11:14:57.123456+01:00") as Go's time.Parse
/// does, and truncates to microseconds. "T" and "Z" must be upper case; an hour may have one digit, a
/// comma may replace the decimal point, and an offset may have 24 hours or 60 minutes. Empty for any
/// other text, including dates that do not exist.
std::optional<Time> parse_time(std::string_view text);

/// "2026-11-20T11:14:57Z": metav1.Time.
std::string format_time(Time time);
/// "2026-11-20T11:14:57.123456Z": metav1.MicroTime.
std::string format_micro_time(Time time);

/// Formats a duration in its two largest units, as kubectl shows ages: "45s", "3m20s", "5h", "12d",
/// "2y40d".
std::string format_age(std::chrono::seconds age);

}  // namespace lookout::api
