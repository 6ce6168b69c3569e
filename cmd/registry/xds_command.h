// xDS: `lookout registry xds`.
#pragma once

#include "cmd/connection.h"
#include "cmd/registry/flags.h"

namespace lookout::cmd::registry_cmd {

/// Returns the exit status when a signal has ended it. Throws Error if the program was built
/// without xDS.
int serve_xds(const ConnectionFlags& connection, const Flags& flags);

}  // namespace lookout::cmd::registry_cmd
