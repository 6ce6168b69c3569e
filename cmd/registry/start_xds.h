// Starting the program that serves xDS.
#pragma once

#include <string>
#include <vector>

namespace lookout::cmd::registry_cmd {

/// Replaces this process by `lookout-xds`, with the same arguments. xDS needs gRPC, whose libraries
/// take 8 MB of memory in each process that links them, so `lookout` does not. Throws Error if the
/// program is not installed.
int start_xds(std::vector<std::string> arguments);

}  // namespace lookout::cmd::registry_cmd
