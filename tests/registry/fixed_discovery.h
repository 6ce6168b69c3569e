// A discovery that the test controls.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lookout/registry/registry.h"

namespace lookout::registry::test {

/// Calls callbacks at once, with the published instances.
class FixedDiscovery : public Discovery {
 public:
  using Discovery::get_service;
  using Discovery::services;
  InstanceSetPtr get_service(const std::string&, WaitOptions) override { return set_; }
  InstanceSetPtr latest(const std::string&) override { return set_; }
  Watcher watch(const std::string&) override { throw InvalidArgument("nobody watches here"); }
  Subscription subscribe(const std::string&, SetCallback callback) override {
    callbacks_.push_back(std::make_shared<SetCallback>(std::move(callback)));
    (*callbacks_.back())(set_);
    return Subscription(std::make_unique<Callback>(callbacks_.back()));
  }
  std::vector<std::string> services(WaitOptions) override { return {}; }
  Freshness freshness() const override { return {true, {}}; }
  void close() override {}

  /// Instances without an endpoint get one.
  void publish(std::vector<ServiceInstance> instances) {
    for (auto& instance : instances) {
      if (instance.endpoints.empty()) instance.endpoints = {"http://10.0.0.1:80"};
    }
    publish_as_they_are(std::move(instances));
  }
  void publish_as_they_are(std::vector<ServiceInstance> instances) {
    std::vector<InstancePtr> shared;
    for (auto& instance : instances) {
      shared.push_back(std::make_shared<const ServiceInstance>(std::move(instance)));
    }
    set_ = InstanceSet::make("web", ++version_, std::move(shared));
    for (const auto& callback : callbacks_) {
      if (*callback) (*callback)(set_);
    }
  }

 private:
  struct Callback : Subscription::Backend {
    explicit Callback(std::shared_ptr<SetCallback> which) : callback(std::move(which)) {}
    void cancel() override { *callback = nullptr; }
    const std::shared_ptr<SetCallback> callback;
  };
  std::vector<std::shared_ptr<SetCallback>> callbacks_;
  InstanceSetPtr set_ = InstanceSet::make("web", 0, {});
  std::uint64_t version_ = 0;
};

/// "1", "2", ... with an endpoint each: http://host-1:80.
inline std::vector<ServiceInstance> numbered(int count) {
  std::vector<ServiceInstance> out;
  for (int i = 1; i <= count; ++i) {
    const std::string id = std::to_string(i);
    out.push_back({.id = id, .endpoints = {"http://host-" + id + ":80"}});
  }
  return out;
}

}  // namespace lookout::registry::test
