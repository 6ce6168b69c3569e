// Creates what every cluster has.
#pragma once

#include <string>

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::bootstrap {

/// Creates the roles and bindings of policy.txt. Those that exist get the rules and subjects that
/// they lack, unless they have the annotation rbac.authorization.kubernetes.io/autoupdate: "false".
Awaitable<void> reconcile_policy(const controllers::Context& context);

/// Publishes the certificates of a PEM file, by which this server knows its clients, in the ConfigMap
/// kube-system/extension-apiserver-authentication: controllers and extension API servers know their
/// clients by them, too. Those of other servers stay. Throws Error for a file without certificates.
Awaitable<void> publish_client_ca(const controllers::Context& context, std::string pem_file);

/// Says in the status of the ServiceCIDR of the server's own range that it is ready: what the
/// default ServiceCIDR controller of kube-apiserver does.
Awaitable<void> settle_service_range(const controllers::Context& context);

/// Creates the Service default/kubernetes at the first cluster IP, and its EndpointSlice with the
/// server's address; also its Endpoints, unless that is a loopback address. `ip` is the cluster IP, `address` the IP address of the server.
Awaitable<void> create_kubernetes_service(const controllers::Context& context, std::string ip,
                                          std::string address, int port, bool tls);

}  // namespace lookout::apiserver::bootstrap
