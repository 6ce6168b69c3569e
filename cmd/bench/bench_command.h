// `lookout bench`.
#pragma once

#include "cmd/cli.h"
#include "cmd/connection.h"
#include "cmd/program.h"

namespace lookout::cmd {

/// Adds the command; when it is chosen, `action` is set.
void add_bench(CLI::App& app, const ConnectionFlags& connection, Action& action);

}  // namespace lookout::cmd
