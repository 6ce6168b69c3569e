// Commands for keys and values of style dubbo.
#pragma once

#include "cmd/connection.h"
#include "cmd/registry/flags.h"

namespace lookout::cmd::registry_cmd {

/// Each returns the exit status.
int dubbo_register(const ConnectionFlags& connection, const Flags& flags);
int dubbo_deregister(const ConnectionFlags& connection, const Flags& flags);
int dubbo_get(const ConnectionFlags& connection, const Flags& flags);
int dubbo_watch(const ConnectionFlags& connection, const Flags& flags);

}  // namespace lookout::cmd::registry_cmd
