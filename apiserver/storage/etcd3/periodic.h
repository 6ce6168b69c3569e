// Periodic tasks.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include "lookout/base/event_loop.h"

namespace lookout::apiserver::storage::etcd3 {

struct Periodic {
  std::chrono::milliseconds interval;
  /// True: the first run is immediate. False: it is after an interval.
  bool at_once = false;
  /// For the log line of a failure: "the compaction".
  const char* name = "";
};

/// Runs `task` every interval, until it is stopped. Failures are logged and do not affect later runs.
Awaitable<void> run_periodically(Periodic periodic, std::function<Awaitable<void>()> task,
                                 std::stop_token stop);

}  // namespace lookout::apiserver::storage::etcd3
