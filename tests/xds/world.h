// Services for tests of the xDS server, and their resources.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cmd/registry/xds/snapshot.h"

namespace lookout::cmd::registry_cmd::xds::test {

/// An instance with the endpoint "grpc://10.0.0.N:9000".
inline registry::ServiceInstance instance(int n) {
  const std::string number = std::to_string(n);
  return {.id = number,
          .endpoints = {"grpc://10.0.0." + number + ":9000"},
          .origin = "default/pod-" + number};
}

inline registry::InstanceSetPtr make_set(const std::string& service,
                                         std::vector<registry::ServiceInstance> instances) {
  std::vector<registry::InstancePtr> shared;
  for (auto& instance : instances) {
    shared.push_back(std::make_shared<const registry::ServiceInstance>(std::move(instance)));
  }
  return registry::InstanceSet::make(service, 1, std::move(shared));
}

/// All services, as a test changes them.
class World {
 public:
  void set(const std::string& service, std::vector<registry::ServiceInstance> instances) {
    sets_[service] = make_set(service, std::move(instances));
  }
  void remove(const std::string& service) { sets_.erase(service); }

  const Snapshot& now() {
    std::vector<registry::InstanceSetPtr> sets;
    for (const auto& [name, set] : sets_) sets.push_back(set);
    builder_.update(sets);
    return *builder_.latest();
  }

 private:
  std::map<std::string, registry::InstanceSetPtr> sets_;
  SnapshotBuilder builder_{{"grpc", "http"}};
};

}  // namespace lookout::cmd::registry_cmd::xds::test
