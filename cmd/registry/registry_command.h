// `lookout registry`.
#pragma once

#include "cmd/cli.h"
#include "cmd/program.h"

namespace lookout::cmd {

/// Adds the command; when it is chosen, `action` is set.
void add_registry(CLI::App& app, const CommonFlags& flags, Action& action);

}  // namespace lookout::cmd
