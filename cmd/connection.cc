#include "cmd/connection.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/closest.h"
#include "cmd/object_checks.h"
#include "lookout/api/labels.h"
#include "lookout/rest/discovery.h"

namespace lookout::cmd {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
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
  app.add_option("--server", server, "Use the server at this URL")->type_name("URL");
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

void SelectionFlags::add_to(CLI::App& app) {
  app.add_option("resource", resource, "pods, deploy, crontabs.stable.example.com ...")
      ->required()
      ->type_name("RESOURCE[.GROUP]");
  app.add_option("name", name, "The name of a single object; pods/web is the same as pods web")
      ->check(check_object_name)
      ->type_name("NAME");
  app.add_option("-n,--namespace", ns,
                 "Use this namespace (default: that of the context, or default)")
      ->check(check_namespace)
      ->type_name("NS");
  app.add_flag("-A,--all-namespaces", all_namespaces, "Use all namespaces");
  app.add_option("-l,--selector", label_selector,
                 "Only objects with these labels: app=web,tier!=db")
      ->type_name("SELECTOR");
  app.add_option("--field-selector", field_selector,
                 "Only objects with these fields: status.phase=Running")
      ->type_name("SELECTOR");
}

void split_type_and_name(std::string& resource, std::string& name) {
  const auto slash = resource.find('/');
  if (slash == std::string::npos) return;
  if (!name.empty())
    throw CLI::ValidationError(resource, "this names an object already: leave out " + name);
  name = resource.substr(slash + 1);
  resource.resize(slash);
  const std::string problem = check_object_name(name);
  if (!problem.empty()) throw CLI::ValidationError("NAME", problem);
}

void SelectionFlags::check() {
  split_type_and_name(resource, name);
  if (all_namespaces && !ns.empty()) {
    throw CLI::ValidationError("-n and -A", "choose one of them");
  }
  if (all_namespaces && !name.empty()) {
    throw CLI::ValidationError("NAME and -A", "a name selects an object in a single namespace");
  }
  // The server would reject it, too, but with a less helpful message.
  try {
    api::labels::parse(label_selector);
  } catch (const api::SelectorError& e) {
    throw CLI::ValidationError("-l", e.what());
  }
}

api::Resource resolve_resource(const rest::Client& client, const std::string& name) {
  // The core group is the same on every server; other resources and versions need discovery.
  const api::ResourceInfo* builtin = api::find_builtin_by_name(name);
  if (builtin != nullptr && builtin->group.empty()) return api::Resource(builtin->type());
  const auto resources = rest::discover(client);
  if (const auto* found = rest::find_resource(resources, name)) return found->resource;
  std::vector<std::string> known;
  for (const auto& resource : resources) {
    known.push_back(resource.resource.plural);
    known.push_back(resource.resource.qualified_name());
    known.push_back(resource.singular);
    known.insert(known.end(), resource.short_names.begin(), resource.short_names.end());
  }
  if (name.find(',') != std::string::npos)
    throw Error(fmt::format("\"{}\": name one resource", name));
  const std::string meant = closest(name, known);
  throw Error(fmt::format("the server has no resource \"{}\"{}", name,
                          meant.empty() ? "" : fmt::format(": did you mean \"{}\"?", meant)));
}

std::string advice(const std::exception& error, const ConnectionFlags& connection) {
  const rest::Config config = connection.config();
  if (rest::is_connection_refused(error) && config.server == kEmbeddedServer) {
    return "start the embedded server with `lookout serve`, or choose another one with --server, "
           "--kubeconfig or --context";
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
