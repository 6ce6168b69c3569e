// lookout-xds: the program that `lookout registry xds` starts, with the same command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/listen_address.h"
#include "cmd/program.h"
#include "cmd/programs.h"
#include "cmd/registry/discovery.h"
#include "cmd/registry/serving.h"
#include "cmd/registry/xds/server.h"
#include "cmd/registry/xds_flags.h"
#include "cmd/say.h"

namespace lookout::cmd::registry_cmd {
namespace {

int serve(const ConnectionFlags& connection, const Flags& flags) {
  const Serving serving(connection, flags);
  xds::ServerOptions options;
  options.listen = parse_listen_address(flags.xds_listen);
  options.schemes = flags.schemes;
  const auto server = make_server([&] {
    return std::make_unique<xds::Server>(make_discovery(serving.client(), flags, true), options);
  });
  if (!options.listen.is_loopback()) {
    say("lookout: anybody who can reach this address can read the services; there is no "
        "TLS\n");
  }
  serving.announce_and_wait(
      fmt::format("Serving services ({}) over xDS at {}", serving.source(), server->address()));
  server->stop();
  return 0;
}

void add_command(CLI::App& app, const CommonFlags& common, Action& action) {
  CLI::App* group = app.add_subcommand(kRegistry.command, kRegistry.description);
  group->require_subcommand(1);
  group->fallthrough();
  const auto flags = std::make_shared<Flags>();
  add_xds(*group, flags, [&common, &action, flags] {
    action = [&common, flags] { return serve(common.connection, *flags); };
  });
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd

int main(int argc, char** argv) {
  return lookout::cmd::run_program(argc, argv, &lookout::cmd::registry_cmd::add_command);
}
