// Creates the initial objects of a cluster.
#pragma once

#include <string>
#include <vector>

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::bootstrap {

/// Creates the roles and bindings of policy.txt. Adds missing rules and subjects to existing ones,
/// unless they have the annotation rbac.authorization.kubernetes.io/autoupdate: "false".
Awaitable<void> reconcile_policy(const controllers::Context& context);

/// The certificates in a file, each in PEM. Ignores other content, such as keys. Throws Error for a file
/// without certificates.
std::vector<std::string> certificates_in(const std::string& file);

/// Publishes the client CA certificates of a PEM file in the ConfigMap
/// kube-system/extension-apiserver-authentication, which controllers and extension API servers use to
/// authenticate clients. Keeps those of other servers. Throws Error for a file without certificates.
Awaitable<void> publish_client_ca(const controllers::Context& context, std::string pem_file);

/// Sets the Ready condition of the ServiceCIDR of the server's range, as kube-apiserver's default
/// ServiceCIDR controller does.
Awaitable<void> settle_service_range(const controllers::Context& context);

/// Creates the Service default/kubernetes at the first cluster IP, and its EndpointSlice with the
/// server's address; also its Endpoints, unless that is a loopback address. `ip` is the cluster IP,
/// `address` the IP address of the server.
Awaitable<void> create_kubernetes_service(const controllers::Context& context, std::string ip,
                                          std::string address, int port, bool tls);

}  // namespace lookout::apiserver::bootstrap
