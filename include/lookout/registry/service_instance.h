// ServiceInstance: one running instance of a service.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/registry/endpoint.h"

namespace lookout::registry {

/// The announcement of an instance (kratos' registry.ServiceInstance), and what discovery adds. A
/// plain value.
struct ServiceInstance {
  // --- Announced.

  /// Unique among the instances of a service only if the program ensures it: pods of one template
  /// share the template's id.
  LOOKOUT_OPTION std::string id = {};
  LOOKOUT_OPTION std::string name = {};
  LOOKOUT_OPTION std::string version = {};
  LOOKOUT_OPTION std::map<std::string, std::string> metadata = {};
  /// "http://10.1.2.3:8000", "grpc://[fd00::1]:9000". For registration, the host is ignored
  /// ("http://0.0.0.0:8000"): the address is the pod's.
  LOOKOUT_OPTION std::vector<Endpoint> endpoints = {};

  // --- Set by discovery; ignored by registration.

  /// The object of the instance: "namespace/name" of the pod.
  LOOKOUT_OPTION std::string origin = {};
  /// The zone: metadata "zone", or the cluster's (topology.kubernetes.io/zone).
  LOOKOUT_OPTION std::string zone = {};
  /// False only if instances that are not ready were requested.
  bool ready = true;

  /// Identifies the instance within its service: the origin, or else the id.
  const std::string& key() const { return origin.empty() ? id : origin; }

  /// The first endpoint that is valid, is announced and has the scheme (case-insensitive); without
  /// a scheme, the first such endpoint. Null if there is none.
  const Endpoint* endpoint(std::string_view scheme = {}) const LOOKOUT_LIFETIME_BOUND;

  /// Equal announcements: id, name, version, metadata, and the same endpoints in any order (kratos'
  /// Equal).
  friend bool operator==(const ServiceInstance& a, const ServiceInstance& b);
};

using InstancePtr = std::shared_ptr<const ServiceInstance>;

/// Equal in every field, including those of discovery: decides whether a set has changed.
bool identical(const ServiceInstance& a, const ServiceInstance& b);

}  // namespace lookout::registry
