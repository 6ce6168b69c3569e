// A volume claim for each StatefulSet, which is deleted with the set.
#pragma once

#include <lookout/controller/manager.h>

namespace claims {

/// On a claim: the name of its StatefulSet.
inline constexpr char kSetLabel[] = "example.com/set";

void add_controller(lookout::controller::Manager& manager);
/// Believes its cache when that says that a set is gone.
void add_buggy_controller(lookout::controller::Manager& manager);

}  // namespace claims
