// Points in time as Kubernetes writes them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::api {

/// metav1.Time and metav1.MicroTime: UTC, in microseconds (metav1.Time travels with whole seconds).
using Time = std::chrono::sys_time<std::chrono::microseconds>;

/// Reads RFC 3339 ("2026-11-20T11:14:57Z", "2026-11-20T11:14:57.123456+01:00"); digits beyond
/// microseconds are cut off. Nothing for anything else, including dates that do not exist.
std::optional<Time> parse_time(std::string_view text);

/// "2026-11-20T11:14:57Z": metav1.Time.
std::string format_time(Time time);
/// "2026-11-20T11:14:57.123456Z": metav1.MicroTime.
std::string format_micro_time(Time time);

/// How long, in the largest two units that matter, as kubectl shows ages: "45s", "3m20s", "5h",
/// "12d", "2y40d".
std::string format_age(std::chrono::seconds age);

}  // namespace lookout::api
