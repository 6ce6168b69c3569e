// Registry: plain Kubernetes Services, through their EndpointSlices.
#pragma once

#include <string>
#include <string_view>

#include "lookout/registry/informer_discovery.h"
#include "lookout/registry/options.h"
#include "lookout/rest/client.h"

namespace lookout::registry::services {

/// The label that names the service of a slice.
inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

/// Finds the endpoints of Services, through the same interface as services that announce
/// themselves.
///
/// Each endpoint is an instance. `id` is the name of its pod (or its address, if there is no pod),
/// `version` is empty, `metadata` has "node" and "hostname" if known, and `zone` is the endpoint's.
/// The protocol of an endpoint is the port's appProtocol, or else its name up to the first dash, or
/// else TCP or UDP. A pod that is in several slices (IPv4 and IPv6, or a pod that moves from one
/// slice to another) is one instance. An entry without a pod belongs to the pod that has its address
/// in another slice.
///
/// If slices disagree about an address and port, the slice that was written last counts: whether it
/// is ready, and whose it is.
///
/// An instance is ready if one of its endpoints is; it then has only those. An endpoint without that
/// condition is ready, and a terminating one is not. While a service has no ready endpoint, those
/// that terminate but still serve are ready, as for kube-proxy: a service of one pod stays reachable
/// until the pod has ended.
///
/// With exactly one namespace, services have their plain names. Otherwise they are named
/// "namespace/name", and a plain name refers to the client's default namespace.
class Registry : public InformerDiscovery {
 public:
  explicit Registry(rest::Client client, Options options = {});
  /// Closes it first, so that running callbacks may still use it.
  ~Registry() override;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

 private:
  std::string full_name(const std::string& name) const override;

  const std::string only_ns_;  // empty if there are several
  const std::string default_ns_;
};

}  // namespace lookout::registry::services
