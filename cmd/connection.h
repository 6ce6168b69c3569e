// Which server a command talks to, and which resource.
#pragma once

#include <string>

#include "cmd/cli.h"
#include "lookout/api/resource.h"
#include "lookout/rest/client.h"

namespace lookout::cmd {

/// The common flags that say where the server is and how to talk to it.
struct ConnectionFlags {
  std::string kubeconfig;
  std::string context;
  std::string server;
  rest::ContentType content_type = rest::ContentType::kAuto;

  void add_to(CLI::App& app);

  /// Whether a kubeconfig says how to talk to the server.
  bool uses_kubeconfig() const;
  /// --server, --kubeconfig and --context as kubectl has them; without any of them $KUBECONFIG,
  /// then the pod that this runs in, then the embedded server at its usual address.
  rest::Config config() const;

 private:
  rest::Config load() const;
};

/// The flags that say which objects.
struct SelectionFlags {
  std::string resource;
  std::string name;
  std::string ns;
  bool all_namespaces = false;
  std::string label_selector;
  std::string field_selector;

  void add_to(CLI::App& app);
  /// Throws CLI::ValidationError for what the command line itself has wrong.
  void check() const;
};

/// Where `lookout serve` listens unless told otherwise.
inline constexpr const char* kEmbeddedServer = "http://127.0.0.1:8001";

/// The resource that the user named, as the server has it. Throws Error that says what there is.
api::Resource resolve_resource(const rest::Client& client, const std::string& name);

/// Advice for the user, to be added to an error message; may be empty. Throws what
/// ConnectionFlags::config() throws.
std::string advice(const std::exception& error, const ConnectionFlags& connection);

}  // namespace lookout::cmd
