// Short options with their value behind an equals sign.
#pragma once

#include <string>
#include <vector>

#include "cmd/cli.h"

namespace lookout::cmd {

/// Replaces "-n=shop" by "--namespace=shop", which it means to kubectl (pflag); to CLI11 it means the
/// namespace "=shop". Knows the options of the command that the arguments choose, and leaves the
/// value of an option alone.
std::vector<std::string> with_long_options(const CLI::App& app, std::vector<std::string> arguments);

}  // namespace lookout::cmd
