#include "lookout/registry/informer_discovery.h"

#include <utility>

#include "registry/hub.h"

namespace lookout::registry {

InformerDiscovery::InformerDiscovery(std::shared_ptr<detail::Hub> hub) : hub_(std::move(hub)) {}
InformerDiscovery::~InformerDiscovery() { InformerDiscovery::close(); }

InstanceSetPtr InformerDiscovery::get_service(const std::string& name, WaitOptions wait) {
  return hub_->get(full_name(name), wait);
}
InstanceSetPtr InformerDiscovery::latest(const std::string& name) {
  return hub_->latest(full_name(name));
}
Watcher InformerDiscovery::watch(const std::string& name) { return hub_->watch(full_name(name)); }
Subscription InformerDiscovery::subscribe(const std::string& name, SetCallback callback) {
  return hub_->subscribe(full_name(name), std::move(callback));
}
Subscription InformerDiscovery::follow(const std::string& name, SetCallback callback) {
  return hub_->follow(full_name(name), std::move(callback));
}
std::vector<std::string> InformerDiscovery::services(WaitOptions wait) {
  return hub_->services(wait);
}
Freshness InformerDiscovery::freshness() const { return hub_->freshness(); }
void InformerDiscovery::close() { hub_->close(); }
std::vector<WatchFailure> InformerDiscovery::failures() const { return hub_->failures(); }
std::vector<Malformed> InformerDiscovery::malformed() const { return hub_->malformed(); }
DiscoveryStats InformerDiscovery::stats() const { return hub_->stats(); }

}  // namespace lookout::registry
