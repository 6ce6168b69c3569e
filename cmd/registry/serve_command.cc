#include "cmd/registry/serve_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "cmd/registry/discovery.h"
#include "cmd/registry/page/page_server.h"
#include "cmd/stop_signals.h"

namespace lookout::cmd::registry_cmd {

int serve_page(const ConnectionFlags& connection, const Flags& flags) {
  StopSignals signals;
  const rest::Client client(connection.config());
  probe(client, flags);
  const std::string ns = namespace_of(client, flags);

  PageOptions options;
  options.listen = parse_listen_address(flags.listen);
  options.allowed_hosts = flags.allowed_hosts;
  options.source =
      fmt::format("{}, {}, {}", flags.style, ns.empty() ? "all namespaces" : "namespace " + ns,
                  client.config().server);
  std::optional<PageServer> server;
  try {
    server.emplace(make_discovery(client, flags, true), options);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: choose another address with --listen (port 0 takes a free one)",
                            e.what()));
  }
  server->start();
  if (!options.listen.is_loopback()) {
    fmt::print(stderr, "lookout: whoever can reach this address can read what services announce\n");
  }
  fmt::print("Serving services ({}) at {}\n", options.source, server->url());
  if (isatty(STDOUT_FILENO) != 0) fmt::print("Ctrl-C ends it.\n");
  std::fflush(stdout);
  signals.wait();
  server->stop();
  return 0;
}

}  // namespace lookout::cmd::registry_cmd
