// Programs that tests run.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace lookout::test {

/// A child process; killed and reaped at the end of the scope, and killed when the thread that
/// created it ends.
class Process {
 public:
  /// Starts `command` (found on the PATH); its output goes to `log`.
  Process(const std::vector<std::string>& command, const std::filesystem::path& log);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  bool running();
  /// Sends a signal; after SIGKILL and SIGTERM, waits for the end.
  void signal(int number);
  /// Waits for the end and returns the exit status, or -1 if a signal ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

/// Runs a command to its end; returns its standard output (and error, if requested).
struct CommandResult {
  int status = 0;
  std::string output;
};
CommandResult run_command(const std::vector<std::string>& command, bool with_errors = false);

/// The path of the program, or empty if it is not on the PATH.
std::string find_program(const std::string& name);

/// A free TCP port of 127.0.0.1 for a program that needs one as an argument. Neither this function
/// nor the kernel assigns it again while this process lives.
int free_port();

}  // namespace lookout::test
