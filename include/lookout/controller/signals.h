// stop_on_signals() under the name that controllers use.
#pragma once

#include "lookout/base/signals.h"

namespace lookout::controller {

using lookout::stop_on_signals;

}  // namespace lookout::controller
