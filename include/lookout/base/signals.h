// stop_on_signals(): SIGTERM and SIGINT.
#pragma once

#include <stop_token>

namespace lookout {

/// Returns a stop token: the first SIGTERM or SIGINT requests a stop; the second one ends the
/// process immediately with status 1. controller-runtime's SetupSignalHandler.
///
/// The first call, on any thread, installs handlers for both signals; every call returns the same
/// token. Call it in main(), after any other setup of handlers for these signals.
std::stop_token stop_on_signals();

}  // namespace lookout
