// The number of processors that the process may use.
#pragma once

#include <string>

namespace lookout {

/// The number of processors that this process may use: those of its affinity mask, or fewer if its
/// container has a CPU quota (cgroups v1 and v2; fractions are rounded up, as Go does for
/// GOMAXPROCS). At least 1. `root` is the parent of /proc and the cgroup file systems.
unsigned usable_processors(const std::string& root = {});

}  // namespace lookout
