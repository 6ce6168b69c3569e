#include "lookout/registry/kratos/registry.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/k8s/core/v1.h"
#include "registry/hub.h"
#include "registry/kratos/pod_reader.h"
#include "registry/pod_state.h"
#include "registry/user_calls.h"

namespace lookout::registry::kratos {
namespace {

detail::HubSource source(const Options& options) {
  return {
      .resource = k8s::core::v1::Pod::kResource,
      // A deregistered pod keeps the label with an empty value.
      .label_selector = fmt::format("{0},{0}!=", kServiceNameLabel),
      .projection = pod_projection(),
      .reader = std::make_shared<const PodReader>(options.include_unready),
  };
}

}  // namespace

/// The results of earlier registrations.
class Registry::Known {
 public:
  std::string uid_of(const PodIdentity& pod) const {
    const std::lock_guard lock(mutex_);
    return pod.ns == pod_.ns && pod.name == pod_.name ? pod_.uid : std::string();
  }
  void set_uid(PodIdentity pod, std::string uid) {
    const std::lock_guard lock(mutex_);
    pod_ = std::move(pod);
    pod_.uid = std::move(uid);
  }
  bool is_news(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    return said_.insert(reason).second;
  }

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  PodIdentity pod_;
  std::set<std::string> said_;
};

Registry::Registry(rest::Client client, Options options)
    : InformerDiscovery(std::make_shared<detail::Hub>(client, source(options), options)),
      client_(std::move(client)),
      options_(std::move(options)),
      known_(std::make_shared<Known>()) {}

Registry::~Registry() { InformerDiscovery::close(); }

PodIdentity Registry::pod() const {
  PodIdentity here =
      PodIdentity::find(options_.pod, client_.config().default_namespace, options_.pod_sources);
  if (here.uid.empty()) here.uid = known_->uid_of(here);
  return here;
}

void Registry::register_instance(const ServiceInstance& instance, rest::CallOptions call) {
  PodIdentity here = pod();
  std::string patch = registration_patch(instance, here.uid);
  // on_warning may block, so it must not run on the event loop.
  warn_of(instance,
          client_.loop().run(patch_pod(std::move(here), std::move(patch), std::move(call))));
}

Awaitable<void> Registry::async_register_instance(ServiceInstance instance,
                                                  rest::CallOptions call) {
  PodIdentity here = pod();
  std::string patch = registration_patch(instance, here.uid);
  return announce(std::move(instance), std::move(here), std::move(patch), std::move(call));
}

Awaitable<void> Registry::announce(ServiceInstance instance, PodIdentity here, std::string patch,
                                   rest::CallOptions call) {
  const api::Object written =
      co_await patch_pod(std::move(here), std::move(patch), std::move(call));
  warn_of(instance, written);
}

void Registry::deregister_instance(const ServiceInstance&, rest::CallOptions call) {
  client_.loop().run(async_deregister_instance(std::move(call)));
}

Awaitable<void> Registry::async_deregister_instance(rest::CallOptions call) {
  PodIdentity here = pod();
  std::string patch = deregistration_patch(here.uid);
  co_await patch_pod(std::move(here), std::move(patch), std::move(call));
}

void Registry::withdraw_earlier(const ServiceInstance& instance, rest::CallOptions call) {
  const api::Object now = client_.loop().run(patch_pod(pod(), "{}", call));
  if (now.labels()[kServiceNameLabel].as_string() != instance.name) return;
  deregister_instance(instance, std::move(call));
}

Awaitable<api::Object> Registry::patch_pod(PodIdentity here, std::string patch,
                                           rest::CallOptions call) {
  const auto pods = client_.resource(k8s::core::v1::Pod::kResource, here.ns);
  api::Object written;
  try {
    written = co_await pods.async_patch(here.name, rest::PatchType::kStrategicMerge,
                                        std::move(patch), {}, {}, std::move(call));
  } catch (const api::StatusError& e) {
    if (!detail::pod_was_replaced(e)) throw;
    throw api::StatusError(e.status(),
                           fmt::format(": pod {}/{} has been replaced by another one of "
                                       "the same name",
                                       here.ns, here.name));
  }
  known_->set_uid(std::move(here), std::string(written.uid()));
  co_return written;
}

void Registry::warn_of(const ServiceInstance& instance, const api::Object& pod) const {
  for (const auto& reason : undeclared_ports(instance, pod)) {
    if (!known_->is_news(reason)) continue;
    if (!options_.on_warning) {
      log::warn("registry: {}", reason);
      continue;
    }
    detail::call_user("on_warning", [&] { options_.on_warning(reason); });
  }
}

}  // namespace lookout::registry::kratos
