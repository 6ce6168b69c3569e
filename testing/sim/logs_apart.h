// Keeps logging from affecting a world.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lookout/base/pinned.h"

namespace spdlog {
class logger;
namespace sinks {
class sink;
}
}  // namespace spdlog

namespace lookout::sim {

/// The sinks of spdlog's loggers, to be restored.
class LogSinks : public base::Pinned {
 public:
  LogSinks();
  ~LogSinks();

 private:
  using Sinks = std::vector<std::shared_ptr<spdlog::sinks::sink>>;

  std::vector<std::pair<std::shared_ptr<spdlog::logger>, Sinks>> before_;
};

/// While it exists, the sinks of spdlog's loggers work outside of the world. They lock a mutex for each
/// line, and each unlock is a preemption point; a world must not depend on whether its log is printed.
/// A sink must not wait for a thread of the world.
class LogsApart {
 public:
  LogsApart();

 private:
  const LogSinks before_;
};

/// Suppresses log output. Levels do not change: lines are still formatted, including their time.
class Quiet {
 public:
  explicit Quiet(bool quiet);

 private:
  const LogSinks before_;
};

}  // namespace lookout::sim
