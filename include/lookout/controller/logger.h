// Logger: log lines that belong to one reconcile.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "lookout/base/attributes.h"
#include "lookout/base/detail/log.h"

namespace lookout::controller {

/// Writes log lines that name the controller, the request and the reconcile; the logger that
/// controller-runtime puts into a reconcile's context. See Context::logger().
///
///     context.logger().info("created {}", name);
///
/// writes
///
///     controller website: default/shop (reconcileID=0c6e2d1a-...): created blog
///
/// Lines go to spdlog's default logger, in one write. The format string is fmt's; nothing is
/// formatted if the level is off. Formatting errors are logged instead of thrown.
///
/// A small value that may outlive its reconcile. Safe to use from any thread.
class Logger {
 public:
  /// `subject` is the beginning of each line, `values` the text in parentheses.
  Logger(std::string subject, std::string values)
      : subject_(std::move(subject)), values_(std::move(values)) {}

  /// A logger that adds "key=value" to each line; logr's WithValues().
  template <class Value>
  [[nodiscard]] Logger with(std::string_view key, const Value& value) const {
    return with_text(key, fmt::format("{}", value));
  }

  /// For a text that is not a literal: `error("{}", text)`.
  template <class... Arguments>
  void trace(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    write(log::Level::kTrace, format, fmt::make_format_args(arguments...));
  }
  template <class... Arguments>
  void debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    write(log::Level::kDebug, format, fmt::make_format_args(arguments...));
  }
  template <class... Arguments>
  void info(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    write(log::Level::kInfo, format, fmt::make_format_args(arguments...));
  }
  template <class... Arguments>
  void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    write(log::Level::kWarn, format, fmt::make_format_args(arguments...));
  }
  template <class... Arguments>
  void error(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    write(log::Level::kError, format, fmt::make_format_args(arguments...));
  }

  /// "controller website: default/shop"
  const std::string& subject() const LOOKOUT_LIFETIME_BOUND { return subject_; }
  /// "reconcileID=0c6e2d1a-..."
  const std::string& values() const LOOKOUT_LIFETIME_BOUND { return values_; }

 private:
  Logger with_text(std::string_view key, std::string_view value) const;
  void write(log::Level level, fmt::string_view format, fmt::format_args arguments) const;

  std::string subject_;
  std::string values_;
};

}  // namespace lookout::controller
