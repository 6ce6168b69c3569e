#include "cmd/registry/xds_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cmd/registry/discovery.h"
#include "cmd/registry/serving.h"
#include "cmd/registry/xds/server.h"

namespace lookout::cmd::registry_cmd {

int serve_xds(const ConnectionFlags& connection, const Flags& flags) {
  const Serving serving(connection, flags);
  xds::ServerOptions options;
  options.listen = parse_listen_address(flags.xds_listen);
  options.schemes = flags.schemes;
  const auto server = make_server([&] {
    return std::make_unique<xds::Server>(make_discovery(serving.client(), flags, true), options);
  });
  if (!options.listen.is_loopback()) {
    fmt::print(stderr,
               "lookout: anybody who can reach this address can read the services; there is no "
               "TLS\n");
  }
  serving.announce_and_wait(
      fmt::format("Serving services ({}) over xDS at {}", serving.source(), server->address()));
  server->stop();
  return 0;
}

}  // namespace lookout::cmd::registry_cmd
