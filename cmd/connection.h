// The server and the resource of a command.
#pragma once

#include <string>

#include "cmd/cli.h"
#include "lookout/api/resource.h"
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

/// The flags that select objects.
struct SelectionFlags {
  std::string resource;
  std::string name;
  std::string ns;
  bool all_namespaces = false;
  std::string label_selector;
  std::string field_selector;

  void add_to(CLI::App& app);
  /// Splits TYPE/NAME. Throws CLI::ValidationError for invalid flags.
  void check();
};

/// Splits "pods/web", as in kubectl, if `resource` has this form. Throws CLI::ValidationError for an
/// invalid name, and if there is a name already.
void split_type_and_name(std::string& resource, std::string& name);

/// The default address of `lookout serve`.
inline constexpr const char* kEmbeddedServer = "http://127.0.0.1:8001";

/// Finds the resource that the user named. Throws Error, with a suggestion, if the server has none.
api::Resource resolve_resource(const rest::Client& client, const std::string& name);

/// Advice for the user, to append to an error message; may be empty. Throws what
/// ConnectionFlags::config() throws.
std::string advice(const std::exception& error, const ConnectionFlags& connection);

}  // namespace lookout::cmd
