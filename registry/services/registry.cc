#include "lookout/registry/services/registry.h"

#include <utility>

#include "lookout/api/discovery/v1.h"
#include "registry/hub.h"
#include "registry/services/slice_reader.h"

namespace lookout::registry::services {
namespace {

/// The namespace, if it is one.
std::string only_namespace(const Options& options) {
  const auto all = options.all_namespaces();
  return all.size() == 1 ? all.front() : "";
}

detail::HubSource source(const Options& options) {
  return {
      .resource = discovery::v1::EndpointSlice::kResource,
      .label_selector = std::string(kServiceNameLabel),
      .projection = SliceReader::projection(),
      .reader = std::make_shared<const SliceReader>(only_namespace(options).empty(),
                                                    options.include_unready),
  };
}

}  // namespace

Registry::Registry(rest::Client client, Options options)
    : only_ns_(only_namespace(options)),
      default_ns_(client.config().default_namespace),
      hub_(std::make_shared<detail::Hub>(std::move(client), source(options), options)) {}

Registry::~Registry() { Registry::close(); }

std::string Registry::indexed(const std::string& name) const {
  const bool plain = name.find('/') == std::string::npos;
  if (only_ns_.empty()) return plain ? default_ns_ + "/" + name : name;
  const std::string prefix = only_ns_ + "/";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

InstanceSetPtr Registry::get_service(const std::string& name, WaitOptions wait) {
  return hub_->get(indexed(name), wait);
}
InstanceSetPtr Registry::latest(const std::string& name) { return hub_->latest(indexed(name)); }
Watcher Registry::watch(const std::string& name) { return hub_->watch(indexed(name)); }
Subscription Registry::subscribe(const std::string& name, SetCallback callback) {
  return hub_->subscribe(indexed(name), std::move(callback));
}
std::vector<std::string> Registry::services(WaitOptions wait) { return hub_->services(wait); }
Freshness Registry::freshness() const { return hub_->freshness(); }
void Registry::close() { hub_->close(); }
DiscoveryStats Registry::stats() const { return hub_->stats(); }

}  // namespace lookout::registry::services
