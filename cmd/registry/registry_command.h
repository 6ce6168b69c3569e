// `lookout registry`.
#pragma once

#include "cmd/cli.h"
#include "cmd/program.h"

namespace lookout::cmd {

/// Adds the command; parsing it sets `action`.
void add_registry(CLI::App& app, const CommonFlags& flags, Action& action);

}  // namespace lookout::cmd
