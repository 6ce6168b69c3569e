// The page: `lookout registry serve`.
#pragma once

#include "cmd/connection.h"
#include "cmd/registry/flags.h"

namespace lookout::cmd::registry_cmd {

/// Returns the exit status when a signal has ended it.
int serve_page(const ConnectionFlags& connection, const Flags& flags);

}  // namespace lookout::cmd::registry_cmd
