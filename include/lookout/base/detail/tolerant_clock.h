// tolerant(): a clock of the program that may throw, made safe.
#pragma once

#include <memory>

#include "lookout/base/clock.h"

namespace lookout::detail {

/// The same clock, but one that does not throw: while it would, its time stands still, and its sleeps
/// are those of the machine's clock. Exceptions are logged. Otherwise they would end the threads and
/// the coroutines that ask for the time. Null: the machine's clock.
std::shared_ptr<Clock> tolerant(std::shared_ptr<Clock> clock);

}  // namespace lookout::detail
