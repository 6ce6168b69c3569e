// Runs another program and reads its output, with limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

namespace lookout::rest::detail {

struct ChildRequest {
  std::vector<std::string> command;  // the program (in the PATH or with a path) and its arguments
  std::vector<std::string> environment;  // "NAME=value"
  bool share_stdin = false;              // else it reads /dev/null
  std::size_t max_output = 1u << 20;
  std::chrono::milliseconds timeout{0};
  std::stop_token stop;
};

/// Instead of an errno: the program is in a relative folder of $PATH.
inline constexpr int kRelativeToHere = -1;

struct ChildResult {
  enum class End {
    kExited,      // status is the exit code
    kSignalled,   // status is the signal
    kNotStarted,  // status is errno, or kRelativeToHere
    kTimedOut,
    kTooMuchOutput,
    kStopped
  };
  End end = End::kExited;
  int status = 0;
  std::string output;  // its standard output
};

/// Runs a program and waits for it. It shares this process's standard error. It is killed when it
/// takes too long, writes too much, or a stop is requested. Blocks. Thread-safe.
///
/// Without a terminal, the program's own children are killed with it. With one, they are in this
/// process's group, so that they can use the terminal and end with Ctrl-C.
ChildResult run_child(const ChildRequest& request);

}  // namespace lookout::rest::detail
