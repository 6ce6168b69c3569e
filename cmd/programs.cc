#include "cmd/programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lookout/base/error.h"

namespace lookout::cmd {

std::string program_path(const std::string& name) {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const char* const folder : {LOOKOUT_LIBEXEC, LOOKOUT_BIN}) {
    const auto installed = here / folder / name;
    if (access(installed.c_str(), X_OK) == 0) return installed.string();
  }
  return (here / name).string();
}

void start(const ProgramCommand& command, std::vector<std::string> arguments) {
  const std::string program = program_path(command.program);
  arguments.insert(arguments.begin(), "lookout");
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  if (errno == ENOENT) {
    throw Error(fmt::format("\"lookout {}\" needs the program {}, which is not there: {}",
                            command.command, command.program, command.advice));
  }
  throw Error(fmt::format("{} cannot be run: {}", program, std::strerror(errno)));
}

void add_program(CLI::App& app, const ProgramCommand& command, const CommonFlags& flags,
                 Action& action) {
  CLI::App* const added = app.add_subcommand(command.command, command.description);
  // Pass even --help to the program.
  added->set_help_flag();
  added->fallthrough(false);
  added->prefix_command();
  added->callback([&command, &flags, &action] {
    action = [&command, &flags]() -> int { start(command, flags.arguments); };
  });
}

CLI::App* add_group(CLI::App& app, const ProgramCommand& command) {
  CLI::App* const group = app.add_subcommand(command.command, command.description);
  // run_program() checks for a missing command: CLI11 would report a misspelt one as missing.
  group->require_subcommand(0, 1);
  group->fallthrough();
  return group;
}

}  // namespace lookout::cmd
