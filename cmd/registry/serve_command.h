// The page: `lookout registry serve`.
#pragma once

#include "cmd/connection.h"
#include "cmd/registry/flags.h"

namespace lookout::cmd::registry_cmd {

/// Runs until a signal arrives. Returns the exit status.
int serve_page(const ConnectionFlags& connection, const Flags& flags);

}  // namespace lookout::cmd::registry_cmd
