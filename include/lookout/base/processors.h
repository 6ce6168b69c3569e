// How many threads are worth having.
#pragma once

#include <string>

namespace lookout {

/// The processors that this process may use: those of its affinity mask, or fewer where a container
/// has a quota of CPU time (cgroups v1 and v2; part of a processor counts as one, as for Go's
/// GOMAXPROCS). At least 1. `root` is where /proc and the cgroup file systems are found.
unsigned usable_processors(const std::string& root = {});

}  // namespace lookout
