// The commands of `lookout` that are separate programs.
#pragma once

#include <string>
#include <vector>

#include "cmd/cli.h"
#include "cmd/program.h"

namespace lookout::cmd {

/// A command of `lookout` that another executable implements. `lookout` runs without it.
struct ProgramCommand {
  const char* command;
  const char* program;
  const char* description;
  /// How to get the executable; part of the error if it is missing.
  const char* advice;
};

inline constexpr const char* kBuildAll =
    "build all of Lookout (cmake --build build/release), or install it";
inline constexpr ProgramCommand kBench{"bench", "lookout-bench", "Measure speed and size",
                                       kBuildAll};
inline constexpr ProgramCommand kRegistry{"registry", "lookout-registry",
                                          "Announce, find and show services", kBuildAll};
inline constexpr ProgramCommand kXds{
    "registry xds", "lookout-xds", "Serve all services to gRPC clients and Envoy (xDS)",
    "install libgrpc++-dev, libprotobuf-dev and protobuf-compiler-grpc, and build Lookout again "
    "with -DLOOKOUT_XDS=ON"};

/// The path of "lookout", "lookout-bench" or another executable of Lookout: the installed path if it
/// exists, else the path in the folder of this executable (as in a build), which may not exist.
std::string program_path(const std::string& name);

/// Replaces this process by the command's executable, with these arguments. Returns only by an
/// exception: Error if the executable is missing or cannot be run.
[[noreturn]] void start(const ProgramCommand& command, std::vector<std::string> arguments);

/// Adds a command whose program parses all further arguments.
void add_program(CLI::App& app, const ProgramCommand& command, const CommonFlags& flags,
                 Action& action);

/// Adds the command of this program, to which it adds commands of its own.
CLI::App* add_group(CLI::App& app, const ProgramCommand& command);

}  // namespace lookout::cmd
