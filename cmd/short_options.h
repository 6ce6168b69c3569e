// Options as kubectl's users write them.
#pragma once

#include <string>
#include <vector>

#include "cmd/cli.h"

namespace lookout::cmd {

/// Replaces "-n=shop" by "--namespace=shop". kubectl (pflag) accepts both; CLI11 would read the
/// first as the namespace "=shop". Knows the options of the command in the arguments, and does not
/// change the values of options.
std::vector<std::string> with_long_options(const CLI::App& app, std::vector<std::string> arguments);

/// Changes "-n shop get pods" to "get -n shop pods". In kubectl, the namespace is an option of all
/// commands.
std::vector<std::string> with_namespace_behind_command(const CLI::App& app,
                                                       std::vector<std::string> arguments);

}  // namespace lookout::cmd
