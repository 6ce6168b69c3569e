// The programs that `lookout` consists of.
#pragma once

#include <string>
#include <vector>

#include "cmd/cli.h"
#include "cmd/program.h"

namespace lookout::cmd {

/// A command that is a program of its own: whoever does not use it need neither build nor load it.
struct ProgramCommand {
  const char* command;
  const char* program;
  const char* description;
  /// What to do if the program is not there.
  const char* advice;
};

inline constexpr const char* kBuildAll =
    "build all of Lookout (cmake --build build/release), or install it";
inline constexpr ProgramCommand kBench{"bench", "lookout-bench", "Measure speed and size",
                                       kBuildAll};
inline constexpr ProgramCommand kRegistry{"registry", "lookout-registry",
                                          "Announce services, find them and show them", kBuildAll};
inline constexpr ProgramCommand kXds{
    "registry xds", "lookout-xds", "Serve all services to gRPC clients and Envoy (xDS)",
    "install libgrpc++-dev, libprotobuf-dev and protobuf-compiler-grpc, and build Lookout again "
    "with -DLOOKOUT_XDS=ON"};

/// Where "lookout", "lookout-bench" or another one is: beside this program, where it is built, or
/// where it is installed. If it is nowhere, a name beside this program.
std::string program_path(const std::string& name);

/// Replaces this process by a command's program, with the same arguments. Throws Error if it cannot.
int start(const ProgramCommand& command, std::vector<std::string> arguments);

/// Adds a command whose program parses all that follows it.
void add_program(CLI::App& app, const ProgramCommand& command, const CommonFlags& flags,
                 Action& action);

}  // namespace lookout::cmd
