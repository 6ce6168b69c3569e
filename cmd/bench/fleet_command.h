// lookout bench fleet
#pragma once

#include "cmd/cli.h"
#include "cmd/program.h"

namespace lookout::cmd::bench {

/// Adds the command to `lookout bench`.
void add_fleet(CLI::App& group, Action& action);

}  // namespace lookout::cmd::bench
