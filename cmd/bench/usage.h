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

/// A line of /proc/self/status: bytes for what it gives in kB, else the number. Zero if there is
/// none. Of another process, by its id, or of this one.
std::int64_t process_status(const char* name, pid_t process = 0);

/// Adds rss_anon, vm_hwm and threads as they are now, rss_anon_before as given, and
/// rss_anon_settled after what is free has been given back.
void report_memory(std::int64_t before, Result& result);

}  // namespace lookout::cmd::bench
