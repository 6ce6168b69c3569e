// What a world logs takes no part in it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace spdlog {
class logger;
namespace sinks {
class sink;
}
}  // namespace spdlog

namespace lookout::sim {

/// spdlog's loggers and where they print, to be put back in the end.
class LogSinks {
 public:
  LogSinks();
  ~LogSinks();
  LogSinks(const LogSinks&) = delete;
  LogSinks& operator=(const LogSinks&) = delete;

 private:
  using Sinks = std::vector<std::shared_ptr<spdlog::sinks::sink>>;

  std::vector<std::pair<std::shared_ptr<spdlog::logger>, Sinks>> before_;
};

/// Has the sinks of spdlog's loggers work outside of the world, for as long as it lives: they lock a
/// mutex for each line, and every unlocked mutex is a place where the kernel draws. A world must be
/// the same whether its lines are printed or not. A sink must not wait for a thread of the world.
class LogsApart {
 public:
  LogsApart();

 private:
  const LogSinks before_;
};

/// Has nothing printed that is logged. The levels stay as they are: lines that nobody prints are made
/// all the same, with the time that they show.
class Quiet {
 public:
  explicit Quiet(bool quiet);

 private:
  const LogSinks before_;
};

}  // namespace lookout::sim
