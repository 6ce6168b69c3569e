#include "lookout/base/detail/log.h"

#include <spdlog/spdlog.h>

#include <exception>

namespace lookout::log {
namespace {

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::kTrace:
      return spdlog::level::trace;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

bool enabled(Level level) {
  const auto* logger = spdlog::default_logger_raw();
  return logger->should_log(level_of(level)) || logger->should_backtrace();
}

void write(Level level, fmt::string_view format, fmt::format_args arguments) {
  const auto spdlog_level = level_of(level);
  auto* logger = spdlog::default_logger_raw();
  if (!logger->should_log(spdlog_level) && !logger->should_backtrace()) return;
  try {
    try {
      logger->log(spdlog_level, std::string_view(fmt::vformat(format, arguments)));
    } catch (const std::exception& e) {
      // Like spdlog, log formatting errors instead of throwing them.
      logger->log(spdlog::level::err, std::string_view(e.what()));
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // A sink threw. The line is lost, but the program continues.
  }
}

}  // namespace lookout::log
