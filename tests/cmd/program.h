// The lookout program, as users run it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"

namespace lookout::test {

/// How a run ended and what it said.
struct ProgramResult {
  int status = 0;
  std::string output;
  std::string errors;
};

/// Runs programs with a home folder of their own and none of this process's settings for
/// Kubernetes.
class ProgramEnvironment {
 public:
  using Arguments = std::vector<std::string>;

  const TempDir& home() const { return home_; }
  /// For the programs that are run from now on.
  void set(const std::string& variable, const std::string& value) { variables_[variable] = value; }

  /// Runs `program` to its end.
  ProgramResult run(const std::string& program, const Arguments& arguments) const;
  /// Starts it; what it prints goes to `log`, its errors too.
  Process start(const std::string& program, const Arguments& arguments,
                const std::filesystem::path& log) const;

 private:
  Arguments environment() const;

  TempDir home_;
  std::map<std::string, std::string> variables_;
};

/// The place of the lookout that was built.
std::string lookout_program();

/// A running `lookout serve`.
class ServeProcess {
 public:
  /// Returns when it serves; throws what it said if it does not.
  explicit ServeProcess(const ProgramEnvironment& environment,
                        ProgramEnvironment::Arguments arguments = {},
                        const std::string& listen = "127.0.0.1:0");

  /// Where it says it serves.
  const std::string& url() const { return url_; }
  /// All that it has printed.
  std::string output() const { return read_file(log_); }
  void signal(int number) { process_->signal(number); }
  pid_t pid() const { return process_->pid(); }
  /// Asks it to end; its exit status.
  int terminate();
  /// SIGKILL: as if the machine had gone.
  void kill();

 private:
  TempDir dir_;
  std::filesystem::path log_;
  std::optional<Process> process_;
  std::string url_;
};

}  // namespace lookout::test
