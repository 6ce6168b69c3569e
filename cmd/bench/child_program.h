// Programs that a measurement needs beside it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lookout::cmd::bench {

/// A program that runs for as long as this object, or this process. What it prints goes to a file.
class ChildProgram {
 public:
  /// `command` is found on the PATH. Throws lookout::Error if it cannot be started.
  ChildProgram(const std::vector<std::string>& command, const std::string& log);
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  bool running();
  /// The program's output so far.
  std::string output() const;

  /// A line of its /proc/PID/status, as process_status().
  std::int64_t status(const char* name) const;
  /// The processor time that it has used.
  std::chrono::duration<double> cpu() const;

 private:
  const std::string log_;
  pid_t child_ = -1;
};

/// A TCP port of 127.0.0.1 that nobody uses at this moment.
std::uint16_t free_port();

}  // namespace lookout::cmd::bench
