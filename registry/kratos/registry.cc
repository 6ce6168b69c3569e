#include "lookout/registry/kratos/registry.h"

#include <fmt/format.h>

#include <utility>

#include "lookout/api/core/v1.h"
#include "registry/hub.h"
#include "registry/kratos/pod_reader.h"

namespace lookout::registry::kratos {
namespace {

detail::HubSource source(const Options& options) {
  return {
      .resource = core::v1::Pod::kResource,
      // A pod that was deregistered keeps the label, without a value.
      .label_selector = fmt::format("{0},{0}!=", kServiceNameLabel),
      .projection = PodReader::projection(),
      .reader = std::make_shared<const PodReader>(options.include_unready),
  };
}

}  // namespace

Registry::Registry(rest::Client client, Options options)
    : client_(std::move(client)),
      options_(std::move(options)),
      hub_(std::make_shared<detail::Hub>(client_, source(options_), options_)) {}

Registry::~Registry() { Registry::close(); }

PodIdentity Registry::pod() const {
  return PodIdentity::find(options_.pod, client_.config().default_namespace, options_.pod_sources);
}

void Registry::register_instance(const ServiceInstance& instance, rest::CallOptions call) {
  client_.loop().run(async_register_instance(instance, std::move(call)));
}

rest::Awaitable<void> Registry::async_register_instance(ServiceInstance instance,
                                                        rest::CallOptions call) {
  return patch_pod(registration_patch(instance), std::move(call));
}

void Registry::deregister_instance(const ServiceInstance&, rest::CallOptions call) {
  client_.loop().run(async_deregister_instance(std::move(call)));
}

rest::Awaitable<void> Registry::async_deregister_instance(rest::CallOptions call) {
  return patch_pod(deregistration_patch(), std::move(call));
}

rest::Awaitable<void> Registry::patch_pod(std::string patch, rest::CallOptions call) {
  const PodIdentity here = pod();
  const auto pods = client_.resource(core::v1::Pod::kResource, here.ns);
  // (Named: GCC 12 destroys temporaries of aggregates twice around a co_await.)
  const rest::PatchOptions options;
  const std::string no_subresource;
  co_await pods.async_patch(here.name, rest::PatchType::kStrategicMerge, std::move(patch), options,
                            no_subresource, std::move(call));
}

InstanceSetPtr Registry::get_service(const std::string& name, WaitOptions wait) {
  return hub_->get(name, wait);
}
InstanceSetPtr Registry::latest(const std::string& name) { return hub_->latest(name); }
Watcher Registry::watch(const std::string& name) { return hub_->watch(name); }
Subscription Registry::subscribe(const std::string& name, SetCallback callback) {
  return hub_->subscribe(name, std::move(callback));
}
std::vector<std::string> Registry::services(WaitOptions wait) { return hub_->services(wait); }
Freshness Registry::freshness() const { return hub_->freshness(); }
void Registry::close() { hub_->close(); }
DiscoveryStats Registry::stats() const { return hub_->stats(); }

}  // namespace lookout::registry::kratos
