// One running instance of a service.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lookout::registry {

/// The announcement of an instance (kratos' registry.ServiceInstance), with the facts that
/// discovery adds. A plain value.
struct ServiceInstance {
  // --- Announced.

  /// Unique among the instances of a service, if the program makes it so: pods of one template
  /// share the id that the template has.
  std::string id = {};
  std::string name = {};
  std::string version = {};
  std::map<std::string, std::string> metadata = {};
  /// "http://10.1.2.3:8000", "grpc://[fd00::1]:9000". An instance that registers may have
  /// any host ("http://0.0.0.0:8000"): only protocol and port count, the address is the pod's.
  std::vector<std::string> endpoints = {};

  // --- Set by discovery; ignored by registration.

  /// The object it was found in: "namespace/name" of the pod.
  std::string origin = {};
  /// Where it runs: metadata "zone", or what the cluster knows (topology.kubernetes.io/zone).
  std::string zone = {};
  /// False only if one has asked for instances that are not ready.
  bool ready = true;

  /// Identifies the instance within its service: the origin, or, without one, the id.
  const std::string& key() const { return origin.empty() ? id : origin; }

  /// The same announcement: id, name, version, metadata, and the same endpoints in any order
  /// (kratos' Equal).
  friend bool operator==(const ServiceInstance& a, const ServiceInstance& b);
};

using InstancePtr = std::shared_ptr<const ServiceInstance>;

/// Equal in everything, what discovery found out included: what decides whether a set has changed.
bool identical(const ServiceInstance& a, const ServiceInstance& b);

}  // namespace lookout::registry
