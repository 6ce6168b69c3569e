// Programs that tests run.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace lookout::test {

/// A child process; killed and reaped when it goes out of scope, and killed when the thread that
/// made it ends.
class Process {
 public:
  /// Starts `command` (found on the PATH); what it prints goes to `log`.
  Process(const std::vector<std::string>& command, const std::filesystem::path& log);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  bool running();
  /// Sends a signal; with SIGKILL and SIGTERM waits for the end.
  void signal(int number);
  /// Waits for the end and returns the exit status, or -1 if a signal ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

/// Runs a command to its end; what it printed on standard output (and error, if asked).
struct CommandResult {
  int status = 0;
  std::string output;
};
CommandResult run_command(const std::vector<std::string>& command, bool with_errors = false);

/// The program's place, or empty if there is none on the PATH.
std::string find_program(const std::string& name);

/// A TCP port of 127.0.0.1 for a program that has to be told one. Nobody uses it now, and nobody
/// else is given it while this process lives: neither by this function nor by the kernel.
int free_port();

}  // namespace lookout::test
