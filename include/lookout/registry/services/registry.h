// Plain Kubernetes services, through their EndpointSlices.
#pragma once

#include <string>
#include <string_view>

#include "lookout/registry/informer_discovery.h"
#include "lookout/registry/options.h"
#include "lookout/rest/client.h"

namespace lookout::registry::services {

/// The label by which a slice belongs to a service.
inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

/// Finds the endpoints of Services behind the same interface as services that announce themselves.
///
/// Each endpoint is an instance. `id` is the name of its pod (or its address, if there is no pod),
/// `version` is empty, `metadata` has "node" and "hostname" where they are known, `zone` is the
/// endpoint's. The protocol of an endpoint is the port's appProtocol, else its name up to the first
/// dash, else TCP or UDP. A pod that several slices name (IPv4 and IPv6, or a pod that moves from
/// one slice to another) is one instance.
///
/// Instances are ready if their endpoint is; an endpoint that does not say so is, and one that is
/// terminating is not.
///
/// When exactly one namespace is looked at, services have their plain names. Otherwise they are
/// called "namespace/name", and a plain name means the client's default namespace.
class Registry : public InformerDiscovery {
 public:
  explicit Registry(rest::Client client, Options options = {});

 private:
  std::string full_name(const std::string& name) const override;

  const std::string only_ns_;  // empty if there are several
  const std::string default_ns_;
};

}  // namespace lookout::registry::services
