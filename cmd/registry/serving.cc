#include "cmd/registry/serving.h"

#include <unistd.h>

#include <cstdio>

#include "cmd/registry/discovery.h"

namespace lookout::cmd::registry_cmd {
namespace {

std::string source_of(const rest::Client& client, const Flags& flags) {
  const std::string ns = namespace_of(client, flags);
  return fmt::format("{}, {}, {}", flags.style, ns.empty() ? "all namespaces" : "namespace " + ns,
                     client.config().server);
}

}  // namespace

Serving::Serving(const ConnectionFlags& connection, const Flags& flags)
    : client_(connection.config()), source_(source_of(client_, flags)) {
  probe(client_, flags);
}

void Serving::announce_and_wait(const std::string& announcement) const {
  fmt::print("{}\n", announcement);
  if (isatty(STDOUT_FILENO) != 0) fmt::print("Ctrl-C ends it.\n");
  std::fflush(stdout);
  signals_.wait();
}

}  // namespace lookout::cmd::registry_cmd
