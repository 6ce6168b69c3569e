// Running another program for its output, within bounds.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

namespace lookout::rest::detail {

struct ChildRequest {
  std::vector<std::string> command;  // the program, on the PATH or with a path, and its arguments
  std::vector<std::string> environment;  // "NAME=value"
  bool share_stdin = false;              // otherwise it reads /dev/null
  std::size_t max_output = 1u << 20;
  std::chrono::milliseconds timeout{0};
  std::stop_token stop;
};

/// In place of an errno: the program is where $PATH points relative to the current directory.
inline constexpr int kRelativeToHere = -1;

struct ChildResult {
  enum class End {
    kExited,      // status is what it exited with
    kSignalled,   // status is the signal
    kNotStarted,  // status is errno, or kRelativeToHere
    kTimedOut,
    kTooMuchOutput,
    kStopped
  };
  End end = End::kExited;
  int status = 0;
  std::string output;  // what it wrote to standard output
};

/// Runs a program and waits for it. Standard error is that of this process. The program is killed
/// when it takes too long, writes too much or is to stop; it is waited for in any case. Blocks;
/// safe to call from several threads.
///
/// Without a terminal, the programs that it starts itself are killed with it. With one, they are in
/// this process's group, so that they may use the terminal and end with Ctrl-C as this process
/// does.
ChildResult run_child(const ChildRequest& request);

}  // namespace lookout::rest::detail
