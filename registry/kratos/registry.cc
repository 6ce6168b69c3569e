#include "lookout/registry/kratos/registry.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
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

/// Registers the pod. Its coroutines keep it.
class Registry::Announcer : public Registrar, public std::enable_shared_from_this<Announcer> {
 public:
  Announcer(rest::Client client, Options options)
      : client_(std::move(client)), options_(std::move(options)) {}

  void register_instance(const ServiceInstance& instance, rest::CallOptions call) override {
    PodIdentity here = pod();
    std::string patch = registration_patch(instance, here.uid);
    // on_warning may block, so it must not run on the event loop.
    warn_of(instance, client_.loop().run(patch_pod(shared_from_this(), std::move(here),
                                                   std::move(patch), std::move(call))));
  }

  Awaitable<void> async_register_instance(ServiceInstance instance, rest::CallOptions call) {
    PodIdentity here = pod();
    std::string patch = registration_patch(instance, here.uid);
    return announce(shared_from_this(), std::move(instance), std::move(here), std::move(patch),
                    std::move(call));
  }

  void deregister_instance(const ServiceInstance&, rest::CallOptions call) override {
    client_.loop().run(withdraw(shared_from_this(), std::move(call)));
  }

  Awaitable<void> async_deregister_instance(rest::CallOptions call) {
    return withdraw(shared_from_this(), std::move(call));
  }

  void withdraw_earlier(const ServiceInstance& instance, rest::CallOptions call) override {
    const api::Object now = client_.loop().run(patch_pod(shared_from_this(), pod(), "{}", call));
    if (now.labels()[kServiceNameLabel].as_string() != instance.name) return;
    deregister_instance(instance, std::move(call));
  }

  /// The registry has gone, and perhaps what its on_warning refers to: warnings are logged.
  void leave_alone() { left_alone_ = true; }

 private:
  PodIdentity pod() const {
    PodIdentity here =
        PodIdentity::find(options_.pod, client_.config().default_namespace, options_.pod_sources);
    if (here.uid.empty()) here.uid = uid_of(here);
    return here;
  }

  static Awaitable<void> announce(std::shared_ptr<Announcer> self, ServiceInstance instance,
                                  PodIdentity here, std::string patch, rest::CallOptions call) {
    const api::Object written =
        co_await patch_pod(self, std::move(here), std::move(patch), std::move(call));
    self->warn_of(instance, written);
  }

  static Awaitable<void> withdraw(std::shared_ptr<Announcer> self, rest::CallOptions call) {
    PodIdentity here = self->pod();
    std::string patch = deregistration_patch(here.uid);
    co_await patch_pod(self, std::move(here), std::move(patch), std::move(call));
  }

  static Awaitable<api::Object> patch_pod(std::shared_ptr<Announcer> self, PodIdentity here,
                                          std::string patch, rest::CallOptions call) {
    const auto pods = self->client_.resource(k8s::core::v1::Pod::kResource, here.ns);
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
    self->set_uid(std::move(here), std::string(written.uid()));
    co_return written;
  }

  void warn_of(const ServiceInstance& instance, const api::Object& pod) {
    for (const auto& reason : undeclared_ports(instance, pod)) {
      if (!is_news(reason)) continue;
      if (!options_.on_warning || left_alone_) {
        log::warn("registry: {}", reason);
        continue;
      }
      detail::call_user("on_warning", [&] { options_.on_warning(reason); });
    }
  }

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

  const rest::Client client_;
  const Options options_;
  std::atomic<bool> left_alone_{false};
  mutable std::mutex mutex_;
  // Guarded by mutex_: the results of earlier registrations.
  PodIdentity pod_;
  std::set<std::string> said_;
};

Registry::Registry(rest::Client client, Options options)
    : InformerDiscovery(std::make_shared<detail::Hub>(client, source(options), options)),
      announcer_(std::make_shared<Announcer>(std::move(client), std::move(options))) {}

Registry::~Registry() {
  InformerDiscovery::close();
  announcer_->leave_alone();
}

void Registry::register_instance(const ServiceInstance& instance, rest::CallOptions call) {
  announcer_->register_instance(instance, std::move(call));
}

Awaitable<void> Registry::async_register_instance(ServiceInstance instance,
                                                  rest::CallOptions call) {
  return announcer_->async_register_instance(std::move(instance), std::move(call));
}

void Registry::deregister_instance(const ServiceInstance& instance, rest::CallOptions call) {
  announcer_->deregister_instance(instance, std::move(call));
}

Awaitable<void> Registry::async_deregister_instance(rest::CallOptions call) {
  return announcer_->async_deregister_instance(std::move(call));
}

void Registry::withdraw_earlier(const ServiceInstance& instance, rest::CallOptions call) {
  announcer_->withdraw_earlier(instance, std::move(call));
}

std::shared_ptr<Registrar> Registry::shared() { return announcer_; }

}  // namespace lookout::registry::kratos
