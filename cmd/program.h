// The common code of `lookout` and the programs that it starts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cmd/cli.h"
#include "cmd/connection.h"

namespace lookout::cmd {

/// The chosen command: runs it and returns the exit status.
using Action = std::function<int()>;

/// Makes `run` the chosen command's action; it may read the flags.
void on_chosen(CLI::App& command, Action& action, Action run);

/// The flags that may come before or after any command.
struct CommonFlags {
  ConnectionFlags connection;
  std::string metrics_listen;
  /// The whole command line, without the program's name.
  std::vector<std::string> arguments;
};

/// Adds the commands of a program. The chosen command sets `action` and may then read the flags.
using AddCommands = void (*)(CLI::App& app, const CommonFlags& flags, Action& action);

/// Parses the command line, sets up logging, and runs the chosen command. Returns the exit status:
/// the command's, 1 if it threw (the message is on standard error), 2 for wrong usage.
int run_program(int argc, char** argv, AddCommands add_commands);

}  // namespace lookout::cmd
