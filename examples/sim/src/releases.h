// A Deployment for the current release of an app, and none for those before it.
#pragma once

#include <lookout/controller/manager.h>

namespace releases {

/// On a ConfigMap: the Deployment that runs.
inline constexpr char kActive[] = "example.com/active";

/// Each ConfigMap with the key "release" is an app.
void add_controller(lookout::controller::Manager& manager);
/// Forgets the old release when it crashes between two writes.
void add_buggy_controller(lookout::controller::Manager& manager);

}  // namespace releases
