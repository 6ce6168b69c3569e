#include "cmd/registry/discovery.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "cmd/say.h"
#include "lookout/registry/dubbo/providers.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/registry/services/registry.h"

namespace lookout::cmd::registry_cmd {
namespace {

/// The wait for reports; two reports about one object may be combined, so it must be limited.
constexpr std::chrono::milliseconds kTellingTime{200};

}  // namespace

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

std::string pod_selector(const Flags& flags) {
  std::string out;
  if (flags.style == "dubbo") {
    const registry::dubbo::ProviderNames names;
    out = fmt::format("{} in ({},{},{})", names.label, names.common_label_value,
                      names.consumer_label_value, names.provider_label_value);
  } else {
    out = fmt::format("{0},{0}!=", registry::kratos::kServiceNameLabel);
  }
  if (!flags.label_selector.empty()) out += "," + flags.label_selector;
  return out;
}

std::unique_ptr<registry::InformerDiscovery> make_discovery(const rest::Client& client,
                                                            const Flags& flags,
                                                            bool include_unready,
                                                            const Told& told) {
  registry::Options options;
  options.ns = flags.all_namespaces ? registry::kAllNamespaces : namespace_of(client, flags);
  options.label_selector = flags.label_selector;
  options.include_unready = include_unready;
  options.on_malformed = [told](const registry::Malformed& malformed) {
    say("lookout: left out {}/{}: {}\n", malformed.ns, malformed.name, malformed.reason);
    ++*told;
  };
  if (flags.style == "services") {
    return std::make_unique<registry::services::Registry>(client, std::move(options));
  }
  if (flags.style == "dubbo") {
    return std::make_unique<registry::dubbo::Providers>(client, options);
  }
  return std::make_unique<registry::kratos::Registry>(client, std::move(options));
}

void finish_telling(registry::InformerDiscovery& registry, const Told& told) {
  registry.services();  // waits until all objects have been processed
  const auto deadline = std::chrono::steady_clock::now() + kTellingTime;
  while (*told < registry.stats().malformed && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace lookout::cmd::registry_cmd
