// One running instance of a service.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/registry/endpoint.h"

namespace lookout::registry {

/// The announcement of an instance (kratos' registry.ServiceInstance), with the facts that
/// discovery adds. A plain value.
struct ServiceInstance {
  // --- Announced.

  /// Unique among the instances of a service, if the program makes it so: pods of one template
  /// share the id that the template has.
  LOOKOUT_OPTION std::string id = {};
  LOOKOUT_OPTION std::string name = {};
  LOOKOUT_OPTION std::string version = {};
  LOOKOUT_OPTION std::map<std::string, std::string> metadata = {};
  /// "http://10.1.2.3:8000", "grpc://[fd00::1]:9000". An instance that registers may have
  /// any host ("http://0.0.0.0:8000"): only protocol and port count, the address is the pod's.
  LOOKOUT_OPTION std::vector<Endpoint> endpoints = {};

  // --- Set by discovery; ignored by registration.

  /// The object it was found in: "namespace/name" of the pod.
  LOOKOUT_OPTION std::string origin = {};
  /// Where it runs: metadata "zone", or what the cluster knows (topology.kubernetes.io/zone).
  LOOKOUT_OPTION std::string zone = {};
  /// False only if one has asked for instances that are not ready.
  bool ready = true;

  /// Identifies the instance within its service: the origin, or, without one, the id.
  const std::string& key() const { return origin.empty() ? id : origin; }

  /// The first endpoint that is valid, is announced and has the scheme, whose case does not matter;
  /// without a scheme, the first of any. Null if there is none.
  const Endpoint* endpoint(std::string_view scheme = {}) const LOOKOUT_LIFETIME_BOUND;

  /// The same announcement: id, name, version, metadata, and the same endpoints in any order
  /// (kratos' Equal).
  friend bool operator==(const ServiceInstance& a, const ServiceInstance& b);
};

using InstancePtr = std::shared_ptr<const ServiceInstance>;

/// Equal in everything, what discovery found out included: what decides whether a set has changed.
bool identical(const ServiceInstance& a, const ServiceInstance& b);

}  // namespace lookout::registry
