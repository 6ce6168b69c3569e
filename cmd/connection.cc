#include "cmd/connection.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <string_view>

#include "lookout/api/status.h"
#include "lookout/rest/error.h"

namespace lookout::cmd {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

/// True if the user has the kubeconfig that kubectl reads without options.
bool has_default_kubeconfig() {
  const char* const home = std::getenv("HOME");
  return home != nullptr && access((std::string(home) + "/.kube/config").c_str(), R_OK) == 0;
}

std::string tls_advice(std::string_view error, const rest::Config& config, bool uses_kubeconfig) {
  const std::string& server = config.server;
  constexpr std::string_view kScheme = "https://";
  // OpenSSL's message for a response that is not a TLS record.
  if (error.find("wrong version number") != std::string_view::npos && server.starts_with(kScheme)) {
    return fmt::format("the server does not speak TLS: use http://{}",
                       server.substr(kScheme.size()));
  }
  if (uses_kubeconfig)
    return "check certificate-authority, client-certificate and tls-server-name in the kubeconfig";
  // In a pod, the service account provides the CA.
  if (!config.ca_file.empty()) return "";
  return "without a kubeconfig, only certificates of this machine's authorities are trusted";
}

}  // namespace

void ConnectionFlags::add_to(CLI::App& app) {
  app.add_option("--kubeconfig", kubeconfig, "Use this kubeconfig")->type_name("FILE");
  app.add_option("--context", context, "Use this context of the kubeconfig")->type_name("NAME");
  app.add_option("-s,--server", server, "Use the server at this URL")->type_name("URL");
  app.add_option_function<std::string>(
         "--content-type",
         [this](const std::string& text) { content_type = *rest::parse_content_type(text); },
         "The encoding of objects in responses: auto (protobuf unless that loses fields), json or "
         "protobuf")
      ->check(CLI::IsMember({"auto", "json", "protobuf"}))
      ->type_name("TYPE");
}

rest::Config ConnectionFlags::config() const {
  rest::Config config = load();
  config.content_type = content_type;
  return config;
}

bool ConnectionFlags::uses_kubeconfig() const {
  return !kubeconfig.empty() || !context.empty() || is_set("KUBECONFIG");
}

rest::Config ConnectionFlags::load() const {
  rest::LoadOptions options;
  options.file = kubeconfig;
  options.context = context;
  options.server = server;
  if (uses_kubeconfig()) return rest::Config::load(options);
  if (server.empty() && is_set("KUBERNETES_SERVICE_HOST")) return rest::Config::in_cluster();
  rest::Config config;
  config.server = server.empty() ? kEmbeddedServer : server;
  return config.normalized();
}

std::string advice(const std::exception& error, const ConnectionFlags& connection) {
  const rest::Config config = connection.config();
  if (rest::is_connection_refused(error) && config.server == kEmbeddedServer) {
    return fmt::format(
        "start the embedded server with `lookout serve`, or choose another one with --server, "
        "--kubeconfig{} or --context",
        has_default_kubeconfig() ? " ~/.kube/config" : "");
  }
  if (rest::is_connection_refused(error)) return "is the server running?";
  if (api::is_unauthorized(error)) {
    return connection.uses_kubeconfig()
               ? "the server does not accept these credentials: check the user of the context"
               : "the server does not accept these credentials: a kubeconfig can name others";
  }
  const auto* transport = dynamic_cast<const rest::TransportError*>(&error);
  if (transport != nullptr && transport->kind() == rest::TransportError::Kind::kTls)
    return tls_advice(error.what(), config, connection.uses_kubeconfig());
  return "";
}

}  // namespace lookout::cmd
