#include "lookout/controller/logger.h"

#include <exception>

namespace lookout::controller {

Logger Logger::with_text(std::string_view key, std::string_view value) const {
  Logger out = *this;
  if (!out.values_.empty()) out.values_ += ", ";
  out.values_ += fmt::format("{}={}", key, value);
  return out;
}

void Logger::write(log::Level level, fmt::string_view format, fmt::format_args arguments) const {
  if (!log::enabled(level)) return;
  const bool plain = values_.empty();
  const auto line = [&](log::Level at, const std::string& text) {
    log::at(at, "{}{}{}{}: {}", subject_, plain ? "" : " (", values_, plain ? "" : ")", text);
  };
  try {
    line(level, fmt::vformat(format, arguments));
  } catch (const std::exception& e) {
    line(log::Level::kError, fmt::format("a log line could not be formatted: {}", e.what()));
  }
}

}  // namespace lookout::controller
