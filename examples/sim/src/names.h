// A DNS name for each pod: a headless Service.
#pragma once

#include <lookout/controller/manager.h>

namespace names {

/// On a pod and on its Service: the name.
inline constexpr char kPodLabel[] = "example.com/pod";

/// Gives each pod with the label a name until the pod terminates.
void add_controller(lookout::controller::Manager& manager);
/// Bug: relies on observing each pod's termination.
void add_buggy_controller(lookout::controller::Manager& manager);

}  // namespace names
