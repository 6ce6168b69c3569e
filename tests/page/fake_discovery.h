// A registry with a test's instances.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lookout/registry/registry.h"

namespace lookout::registry::test {

/// Services by name, with the pod and the version of each instance.
using Instances = std::map<std::string, std::string>;

class FakeDiscovery : public Discovery {
 public:
  using Discovery::services;

  void set(const std::string& service, const Instances& instances) {
    std::vector<ServiceInstance> out;
    for (const auto& [pod, version] : instances) {
      out.push_back({.name = service, .version = version, .origin = pod});
    }
    set_instances(service, std::move(out));
  }
  void set_instances(const std::string& service, std::vector<ServiceInstance> instances) {
    std::vector<InstancePtr> out;
    for (auto& instance : instances) {
      out.push_back(std::make_shared<const ServiceInstance>(std::move(instance)));
    }
    const std::lock_guard lock(mutex_);
    sets_[service] = InstanceSet::make(service, ++version_, std::move(out));
  }
  void remove(const std::string& service) {
    const std::lock_guard lock(mutex_);
    sets_.erase(service);
  }
  void set_freshness(Freshness freshness) {
    const std::lock_guard lock(mutex_);
    freshness_ = freshness;
  }
  void set_synced(bool synced) {
    const std::lock_guard lock(mutex_);
    synced_ = synced;
  }

  InstanceSetPtr get_service(const std::string& name, WaitOptions) override { return latest(name); }
  InstanceSetPtr latest(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    const auto found = sets_.find(name);
    return found == sets_.end() ? InstanceSet::make(name, 0, {}) : found->second;
  }
  Watcher watch(const std::string& name) override {
    return Watcher(std::make_unique<FakeWatcher>(*this, name));
  }
  Subscription subscribe(const std::string&, SetCallback) override { return {}; }
  std::vector<std::string> services(WaitOptions) override {
    const std::lock_guard lock(mutex_);
    if (!synced_) throw NotSynced("no data yet");
    std::vector<std::string> out;
    for (const auto& [name, set] : sets_) out.push_back(name);
    return out;
  }
  Freshness freshness() const override {
    const std::lock_guard lock(mutex_);
    return freshness_;
  }
  void close() override {}

 private:
  /// A watcher that is only read, never waited for.
  class FakeWatcher : public WatcherBackend {
   public:
    FakeWatcher(FakeDiscovery& discovery, std::string service)
        : discovery_(discovery), service_(std::move(service)) {}
    NextResult next(std::stop_token, Deadline) override {
      return NextResult(NextOutcome::kStopped);
    }
    Awaitable<NextResult> async_next(std::stop_token, Deadline) override {
      co_return NextResult(NextOutcome::kStopped);
    }
    InstanceSetPtr latest() const override { return discovery_.latest(service_); }
    void stop() override {}

   private:
    FakeDiscovery& discovery_;
    const std::string service_;
  };

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, InstanceSetPtr> sets_;
  std::uint64_t version_ = 0;
  Freshness freshness_ = {true, std::chrono::system_clock::time_point(std::chrono::seconds(1000))};
  bool synced_ = true;
};

}  // namespace lookout::registry::test
