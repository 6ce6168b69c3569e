#include "cmd/registry/serve_command.h"

#include <fmt/format.h>

#include <memory>

#include "cmd/registry/discovery.h"
#include "cmd/registry/page/cluster_notes.h"
#include "cmd/registry/page/page_server.h"
#include "cmd/registry/serving.h"
#include "cmd/say.h"

namespace lookout::cmd::registry_cmd {

int serve_page(const ConnectionFlags& connection, const Flags& flags) {
  const Serving serving(connection, flags);
  PageOptions options;
  options.listen = parse_listen_address(flags.listen);
  options.allowed_hosts = flags.allowed_hosts;
  options.source = serving.source();
  const auto notes = std::make_shared<ClusterNotes>(serving.client(), flags);
  const std::shared_ptr<registry::InformerDiscovery> discovery =
      make_discovery(serving.client(), flags, true);
  options.notes = notes->sources(discovery);
  const auto server = make_server([&] { return std::make_unique<PageServer>(discovery, options); });
  server->start();
  if (!options.listen.is_loopback()) {
    say("lookout: anybody who can reach this address can read what services announce\n");
  }
  serving.announce_and_wait(
      fmt::format("Serving services ({}) at {}", options.source, server->url()));
  server->stop();
  return 0;
}

}  // namespace lookout::cmd::registry_cmd
