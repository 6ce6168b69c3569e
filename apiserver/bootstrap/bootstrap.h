// Creates what every cluster has.
#pragma once

#include <string>

#include "apiserver/controllers/controllers.h"

namespace lookout::apiserver::bootstrap {

/// Creates the roles and bindings of policy.txt. Those that exist get the rules and subjects that
/// they lack, unless they have the annotation rbac.authorization.kubernetes.io/autoupdate: "false".
Awaitable<void> reconcile_policy(const controllers::Context& context);

/// Creates the Service default/kubernetes at the first cluster IP, with the server's address as its
/// endpoint, unless it exists. `ip` is the cluster IP, `address` the IP address of the server.
Awaitable<void> create_kubernetes_service(const controllers::Context& context, std::string ip,
                                          std::string address, int port, bool tls);

}  // namespace lookout::apiserver::bootstrap
