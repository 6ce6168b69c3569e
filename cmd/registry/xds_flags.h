// The command line of `lookout registry xds`.
#pragma once

#include <functional>
#include <memory>

#include "cmd/cli.h"
#include "cmd/registry/flags.h"

namespace lookout::cmd::registry_cmd {

/// Adds `xds` to `lookout registry`. After parsing its command line, `flags` is filled in and
/// `chosen` is called.
void add_xds(CLI::App& group, const std::shared_ptr<Flags>& flags, std::function<void()> chosen);

}  // namespace lookout::cmd::registry_cmd
