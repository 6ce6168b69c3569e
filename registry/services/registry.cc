#include "lookout/registry/services/registry.h"

#include "lookout/k8s/discovery/v1.h"
#include "registry/hub.h"
#include "registry/services/slice_reader.h"

namespace lookout::registry::services {
namespace {

/// The namespace, if it is one.
std::string only_namespace(const rest::Client& client, const Options& options) {
  const auto all = options.namespaces_or(client.config().default_namespace);
  return all.size() == 1 ? all.front() : "";
}

detail::HubSource source(const rest::Client& client, const Options& options) {
  return {
      .resource = k8s::discovery::v1::EndpointSlice::kResource,
      .label_selector = std::string(kServiceNameLabel),
      .projection = SliceReader::projection(),
      .reader = std::make_shared<const SliceReader>(only_namespace(client, options).empty(),
                                                    options.include_unready),
  };
}

}  // namespace

Registry::Registry(rest::Client client, Options options)
    : InformerDiscovery(std::make_shared<detail::Hub>(client, source(client, options), options)),
      only_ns_(only_namespace(client, options)),
      default_ns_(client.config().default_namespace) {}

Registry::~Registry() { InformerDiscovery::close(); }

std::string Registry::full_name(const std::string& name) const {
  const bool plain = name.find('/') == std::string::npos;
  if (only_ns_.empty()) return plain ? default_ns_ + "/" + name : name;
  const std::string prefix = only_ns_ + "/";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace lookout::registry::services
