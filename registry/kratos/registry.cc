#include "lookout/registry/kratos/registry.h"

#include <fmt/format.h>

#include <utility>

#include "lookout/k8s/core/v1.h"
#include "registry/hub.h"
#include "registry/kratos/pod_reader.h"

namespace lookout::registry::kratos {
namespace {

detail::HubSource source(const Options& options) {
  return {
      .resource = k8s::core::v1::Pod::kResource,
      // A pod that was deregistered keeps the label, without a value.
      .label_selector = fmt::format("{0},{0}!=", kServiceNameLabel),
      .projection = pod_projection(),
      .reader = std::make_shared<const PodReader>(options.include_unready),
  };
}

}  // namespace

Registry::Registry(rest::Client client, Options options)
    : InformerDiscovery(std::make_shared<detail::Hub>(client, source(options), options)),
      client_(std::move(client)),
      options_(std::move(options)) {}

PodIdentity Registry::pod() const {
  return PodIdentity::find(options_.pod, client_.config().default_namespace, options_.pod_sources);
}

void Registry::register_instance(const ServiceInstance& instance, rest::CallOptions call) {
  client_.loop().run(async_register_instance(instance, std::move(call)));
}

Awaitable<void> Registry::async_register_instance(ServiceInstance instance,
                                                  rest::CallOptions call) {
  return patch_pod(registration_patch(instance), std::move(call));
}

void Registry::deregister_instance(const ServiceInstance&, rest::CallOptions call) {
  client_.loop().run(async_deregister_instance(std::move(call)));
}

Awaitable<void> Registry::async_deregister_instance(rest::CallOptions call) {
  return patch_pod(deregistration_patch(), std::move(call));
}

Awaitable<void> Registry::patch_pod(std::string patch, rest::CallOptions call) {
  const PodIdentity here = pod();
  const auto pods = client_.resource(k8s::core::v1::Pod::kResource, here.ns);
  co_await pods.async_patch(here.name, rest::PatchType::kStrategicMerge, std::move(patch), {}, {},
                            std::move(call));
}

}  // namespace lookout::registry::kratos
