// Durations on the command line.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "cmd/cli.h"

namespace lookout::cmd {

/// Parses "300ms", "30s", "10m", "1h30m"; empty for any other text.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// An option that takes a duration.
CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::milliseconds& value,
                          const std::string& description);

/// Returns when a stop is requested.
void wait_for_stop(std::stop_token stop);
/// The same, with a time limit; returns true if the time has passed.
bool wait_for_stop(std::stop_token stop, std::chrono::milliseconds time);

}  // namespace lookout::cmd
