// A Deployment for the current release of an app only.
#pragma once

#include <lookout/controller/manager.h>

namespace releases {

/// On a ConfigMap: the active Deployment.
inline constexpr char kActive[] = "example.com/active";

/// Each ConfigMap with the key "release" is an app.
void add_controller(lookout::controller::Manager& manager);
/// Bug: leaves the old release behind if it crashes between two writes.
void add_buggy_controller(lookout::controller::Manager& manager);

}  // namespace releases
