// Runs the lookout program like users.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/process.h"

namespace lookout::test {

/// The exit status and the output of a run.
struct ProgramResult {
  int status = 0;
  std::string output;
  std::string errors;
};

/// Runs programs with their own home folder, without this process's Kubernetes settings.
class ProgramEnvironment {
 public:
  using Arguments = std::vector<std::string>;

  const TempDir& home() const { return home_; }
  /// Applies to programs that are started later.
  void set(const std::string& variable, const std::string& value) { variables_[variable] = value; }

  /// Runs `program` to its end.
  ProgramResult run(const std::string& program, const Arguments& arguments) const;
  /// Runs lookout with these arguments: the first ones, then the others.
  ProgramResult lookout(Arguments first, const Arguments& arguments) const;
  /// Starts the program; its output and errors go to `log`.
  Process start(const std::string& program, const Arguments& arguments,
                const std::filesystem::path& log) const;

 private:
  Arguments environment() const;

  TempDir home_;
  std::map<std::string, std::string> variables_;
};

/// The path of the built lookout program.
std::string lookout_program();

/// A running `lookout serve`.
class ServeProcess {
 public:
  /// Returns when it serves; otherwise throws its output.
  explicit ServeProcess(const ProgramEnvironment& environment,
                        ProgramEnvironment::Arguments arguments = {},
                        const std::string& listen = "127.0.0.1:0");

  /// The printed URL.
  const std::string& url() const { return url_; }
  /// Its output so far.
  std::string output() const { return read_file(log_); }
  void signal(int number) { process_->signal(number); }
  pid_t pid() const { return process_->pid(); }
  /// Stops it, and returns its exit status.
  int terminate();
  /// SIGKILL, like a machine failure.
  void kill();

 private:
  TempDir dir_;
  std::filesystem::path log_;
  std::optional<Process> process_;
  std::string url_;
};

}  // namespace lookout::test
