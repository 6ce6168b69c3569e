#include "cmd/registry/discovery.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "lookout/registry/dubbo/providers.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/registry/services/registry.h"

namespace lookout::cmd::registry_cmd {

std::string namespace_of(const rest::Client& client, const Flags& flags) {
  if (flags.all_namespaces) return "";
  return flags.ns.empty() ? client.config().default_namespace : flags.ns;
}

registry::PodIdentity find_pod(const rest::Client& client, const Flags& flags) {
  try {
    return registry::PodIdentity::find({flags.ns, flags.pod}, client.config().default_namespace);
  } catch (const Error& e) {
    throw Error(fmt::format("{} (--pod NAME -n NAMESPACE)", e.what()));
  }
}

void probe(const rest::Client& client, const Flags& flags) {
  rest::ListOptions one;
  one.limit = 1;
  one.label_selector = flags.label_selector;
  const char* plural = flags.style == "services" ? "endpointslices" : "pods";
  client
      .resource(api::Resource(api::find_builtin_by_name(plural)->type()),
                namespace_of(client, flags))
      .list(one);
}

std::unique_ptr<registry::Discovery> make_discovery(const rest::Client& client, const Flags& flags,
                                                    bool include_unready) {
  registry::Options options;
  options.ns = namespace_of(client, flags);
  options.label_selector = flags.label_selector;
  options.include_unready = include_unready;
  options.on_malformed = [](const registry::Malformed& malformed) {
    fmt::print(stderr, "lookout: left out {}/{}: {}\n", malformed.ns, malformed.name,
               malformed.reason);
  };
  if (flags.style == "services") {
    return std::make_unique<registry::services::Registry>(client, std::move(options));
  }
  if (flags.style == "dubbo") {
    return std::make_unique<registry::dubbo::Providers>(client, options);
  }
  return std::make_unique<registry::kratos::Registry>(client, std::move(options));
}

}  // namespace lookout::cmd::registry_cmd
