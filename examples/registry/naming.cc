// Passes on the list of servers of a service when it changes, for a library with its own load
// balancers, such as brpc.
//
//   naming NAME [SCHEME]
#include "lookout/registry/clients/naming.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <future>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/base/signals.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/rest/client.h"

using namespace lookout;

namespace {

/// With brpc it would be an instance of brpc::NamingService that calls ResetServers() of the
/// NamingServiceActions that brpc gave it, with a ServerNode{address, tag} for each.
void reset_servers(const std::vector<registry::NamedServer>& servers) {
  fmt::print("{} servers\n", servers.size());
  for (const auto& server : servers) fmt::print("  {} {}\n", server.address, server.tag);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: naming NAME [SCHEME]\n");
    return 2;
  }
  const std::stop_token stop = stop_on_signals();
  registry::kratos::Registry registry{rest::Client{rest::Config::load()}};
  const registry::NamingService naming(registry, argv[1], reset_servers,
                                       {.scheme = argc > 2 ? argv[2] : ""});
  std::promise<void> ended;
  const std::stop_callback on_stop(stop, [&] { ended.set_value(); });
  ended.get_future().wait();
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
