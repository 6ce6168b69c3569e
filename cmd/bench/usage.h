// Usage: this process's resource usage, as reported by the kernel.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

#include "cmd/bench/result.h"

namespace lookout::cmd::bench {

/// Processor time of all threads so far, and the time of day.
struct Usage {
  std::chrono::duration<double> user{};
  std::chrono::duration<double> system{};
  std::chrono::steady_clock::time_point wall;

  static Usage now();
  /// Adds wall_s, cpu_user_s and cpu_system_s since `before`.
  void report_since(const Usage& before, Result& result) const;
  double cpu_seconds_since(const Usage& before) const;
};

/// A value in /proc/PID/status of this or another process: kB values in bytes, others as they are. 0 if
/// there is no such line.
std::int64_t process_status(const char* name, pid_t process = 0);

/// Adds the current rss_anon, vm_hwm and threads, the given rss_anon_before, and rss_anon_settled after
/// free memory has been returned to the system.
void report_memory(std::int64_t before, Result& result);

}  // namespace lookout::cmd::bench
