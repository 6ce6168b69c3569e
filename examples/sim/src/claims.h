// A volume claim for each StatefulSet, which is deleted with the set.
#pragma once

#include <lookout/controller/manager.h>

namespace claims {

/// On a claim: the name of its StatefulSet.
inline constexpr char kSetLabel[] = "example.com/set";

void add_controller(lookout::controller::Manager& manager);
/// Bug: relies on its cache for the absence of a set.
void add_buggy_controller(lookout::controller::Manager& manager);

}  // namespace claims
