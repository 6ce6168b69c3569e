// ChildProgram: a program that a measurement starts.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lookout/base/pinned.h"

namespace lookout::cmd::bench {

/// A program that runs as long as this object or this process exists. Its output goes to a file.
class ChildProgram : public base::Pinned {
 public:
  /// `command` is found on the PATH. Throws lookout::Error if it cannot be started.
  ChildProgram(const std::vector<std::string>& command, const std::string& log);
  ~ChildProgram();

  bool running();
  /// The program's output so far.
  std::string output() const;

  /// A line of its /proc/PID/status, as process_status().
  std::int64_t status(const char* name) const;
  /// The processor time of the program so far.
  std::chrono::duration<double> cpu() const;

 private:
  const std::string log_;
  pid_t child_ = -1;
};

/// The URL in the output of `lookout serve`; empty until it is complete.
std::string served_url(const std::string& output);

/// A TCP port of 127.0.0.1 that is currently free.
std::uint16_t free_port();

}  // namespace lookout::cmd::bench
