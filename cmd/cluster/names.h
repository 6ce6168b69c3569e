// Aliases for the controllers of the simulated cluster.
#pragma once

#include "lookout/controller/context.h"
#include "lookout/controller/request.h"
#include "lookout/controller/result.h"
#include "lookout/controller/source.h"

namespace lookout::cmd::cluster {

using controller::Context;
using controller::Enqueue;
using controller::Request;
using controller::Result;

}  // namespace lookout::cmd::cluster
