// The server of a command.
#pragma once

#include <string>

#include "cmd/cli.h"
#include "lookout/rest/client.h"

namespace lookout::cmd {

/// The common flags that select the server and the credentials.
struct ConnectionFlags {
  std::string kubeconfig;
  std::string context;
  std::string server;
  rest::ContentType content_type = rest::ContentType::kAuto;

  void add_to(CLI::App& app);

  /// True if a kubeconfig selects the server.
  bool uses_kubeconfig() const;
  /// --server, --kubeconfig and --context as in kubectl; without them, $KUBECONFIG, then the in-cluster
  /// configuration, then the embedded server at its default address.
  rest::Config config() const;

 private:
  rest::Config load() const;
};

/// The default address of `lookout serve`.
inline constexpr const char* kEmbeddedServer = "http://127.0.0.1:8001";

/// Advice for the user, to append to an error message; may be empty. Throws what
/// ConnectionFlags::config() throws.
std::string advice(const std::exception& error, const ConnectionFlags& connection);

}  // namespace lookout::cmd
