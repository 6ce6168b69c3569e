// Options of controllers whose objects change in bursts.
#pragma once

#include "lookout/controller/controller.h"

namespace lookout::cmd::cluster {

/// Disables the detection of hot loops: pods start within milliseconds, and each change of a pod
/// reconciles its owner, dozens of times within a second.
inline void expect_bursts(controller::ControllerOptions& options) { options.hot_loop = 0; }

}  // namespace lookout::cmd::cluster
