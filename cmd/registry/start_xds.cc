#include "cmd/registry/start_xds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lookout/base/error.h"

namespace lookout::cmd::registry_cmd {
namespace {

/// Where it is built, or where it is installed.
std::filesystem::path find_program() {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto installed = here / LOOKOUT_LIBEXEC / "lookout-xds";
  return access(installed.c_str(), X_OK) == 0 ? installed : here / "lookout-xds";
}

}  // namespace

int start_xds(std::vector<std::string> arguments) {
  const std::string program = find_program().string();
  arguments.insert(arguments.begin(), "lookout");
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  if (errno == ENOENT) {
    throw Error(
        "xDS is not installed: install libgrpc++-dev, libprotobuf-dev and protobuf-compiler-grpc, "
        "and build Lookout again with -DLOOKOUT_XDS=ON");
  }
  throw Error(fmt::format("{} cannot be run: {}", program, std::strerror(errno)));
}

}  // namespace lookout::cmd::registry_cmd
