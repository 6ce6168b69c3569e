// Helpers for the endpoints of Services in the simulated cluster. The rules are those of
// k8s.io/endpointslice and k8s.io/kubernetes/pkg/controller/endpoint.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/draft.h"
#include "lookout/controller/context.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/source.h"
#include "lookout/k8s/core/v1.h"

namespace lookout::cmd::cluster {

/// The label of the endpoints of Services without a cluster IP.
inline constexpr const char* kHeadless = "service.kubernetes.io/headless";

/// True if the cluster keeps the endpoints of this service: it has a selector and is no ExternalName.
bool has_managed_endpoints(const k8s::core::v1::Service& service);

/// True if the service has no cluster IP.
bool is_headless(const k8s::core::v1::Service& service);

/// The selected pods that have an address and have not ended, by name; includes those that are being
/// deleted.
std::vector<k8s::core::v1::Pod> backends_of(const k8s::core::v1::Service& service,
                                            controller::Context& context);

/// The first address of a pod in a family, "IPv4" or "IPv6"; empty if it has none.
std::string_view address_in(const k8s::core::v1::Pod& pod, std::string_view family);

/// The families of a service's endpoints.
std::vector<std::string> families_of(const k8s::core::v1::Service& service);

/// A port of an endpoint.
struct BackendPort {
  std::string name;
  std::int32_t port = 0;
  std::string protocol;
  std::string app_protocol;

  friend auto operator<=>(const BackendPort&, const BackendPort&) = default;
};
using BackendPorts = std::vector<BackendPort>;

/// The ports of the service in a pod, without those whose name no container of the pod has.
BackendPorts ports_in(const k8s::core::v1::Pod& pod, const k8s::core::v1::Service& service);

/// Replaces `list` with the ports. `names_unnamed`: unnamed ports have the name "".
void set_ports(const api::DraftPart& list, const BackendPorts& ports, bool names_unnamed);

/// Sets nodeName, targetRef and, if the service is the pod's subdomain, hostname.
void describe_backend(const api::DraftPart& out, const k8s::core::v1::Pod& pod,
                      const k8s::core::v1::Service& service);

/// Enqueues the services that select the pod.
void enqueue_services(controller::Manager& manager, const k8s::core::v1::Pod& pod,
                      controller::Enqueue& enqueue);

}  // namespace lookout::cmd::cluster
