// Lookout's log: one line per call, to spdlog's default logger.
#pragma once

#include <fmt/core.h>

/// Sources log through this header, because <spdlog/spdlog.h> makes a compiler instantiate fmt's
/// whole formatter in every source: four seconds each with GCC at -O2.
namespace lookout::log {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };

/// True if the logger accepts this level.
bool enabled(Level level);

/// Formats the arguments only if the logger accepts this level. Safe to call from any thread.
void write(Level level, fmt::string_view format, fmt::format_args arguments);

template <class... Args>
void at(Level level, fmt::format_string<Args...> format, Args&&... args) {
  write(level, format, fmt::make_format_args(args...));
}

template <class... Args>
void trace(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kTrace, format, fmt::make_format_args(args...));
}

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kDebug, format, fmt::make_format_args(args...));
}

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, format, fmt::make_format_args(args...));
}

template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarn, format, fmt::make_format_args(args...));
}

template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, format, fmt::make_format_args(args...));
}

}  // namespace lookout::log
