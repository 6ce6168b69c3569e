// SIGTERM and SIGINT.
#pragma once

#include <stop_token>

namespace lookout::controller {

/// A stop that is requested by the first SIGTERM or SIGINT; the second one ends the process with
/// status 1 at once. controller-runtime's SetupSignalHandler.
///
/// Installs handlers for both signals on the first call, from whichever thread; every call returns
/// the same token. Call it in main(), once the program wants no other handling of these signals.
std::stop_token stop_on_signals();

}  // namespace lookout::controller
