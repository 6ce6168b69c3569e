// A name in DNS for each pod: a headless Service.
#pragma once

#include <lookout/controller/manager.h>

namespace names {

/// On a pod: its name. On the Service, too.
inline constexpr char kPodLabel[] = "example.com/pod";

/// Each pod with the label has a name until it terminates.
void add_controller(lookout::controller::Manager& manager);
/// Counts on seeing each pod terminate.
void add_buggy_controller(lookout::controller::Manager& manager);

}  // namespace names
