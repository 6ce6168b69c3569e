// Services of instances: styles kratos and services.
#pragma once

#include "cmd/connection.h"
#include "cmd/registry/flags.h"

namespace lookout::cmd::registry_cmd {

/// Each returns the exit status.
int register_instance(const ConnectionFlags& connection, const Flags& flags);
int deregister_instance(const ConnectionFlags& connection, const Flags& flags);
int get_service(const ConnectionFlags& connection, const Flags& flags);
int list_services(const ConnectionFlags& connection, const Flags& flags);
int watch_service(const ConnectionFlags& connection, const Flags& flags);

}  // namespace lookout::cmd::registry_cmd
