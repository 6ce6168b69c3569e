// Options of controllers whose objects change in bursts.
#pragma once

#include "lookout/controller/controller.h"

namespace lookout::cmd::cluster {

/// Pods start within milliseconds here, and each change of one reconciles its owner: dozens of times
/// within a second is no hot loop.
inline void expect_bursts(controller::ControllerOptions& options) { options.hot_loop = 0; }

}  // namespace lookout::cmd::cluster
