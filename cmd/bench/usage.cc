#include "cmd/bench/usage.h"

#include <malloc.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace lookout::cmd::bench {
namespace {

std::chrono::duration<double> seconds(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

}  // namespace

Usage Usage::now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {seconds(usage.ru_utime), seconds(usage.ru_stime), std::chrono::steady_clock::now()};
}

void Usage::report_since(const Usage& before, Result& result) const {
  result.set("wall_s", std::chrono::duration<double>(wall - before.wall).count());
  result.set("cpu_user_s", (user - before.user).count());
  result.set("cpu_system_s", (system - before.system).count());
}

double Usage::cpu_seconds_since(const Usage& before) const {
  return (user - before.user + system - before.system).count();
}

std::int64_t process_status(const char* name, pid_t process) {
  std::ifstream status(process == 0 ? std::string("/proc/self/status")
                                    : "/proc/" + std::to_string(process) + "/status");
  const std::string wanted = std::string(name) + ":";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(wanted)) continue;
    const std::int64_t value = std::atoll(line.c_str() + wanted.size());
    return line.ends_with("kB") ? value * 1024 : value;
  }
  return 0;
}

void report_memory(std::int64_t before, Result& result) {
  result.set("rss_anon_before", before);
  result.set("rss_anon", process_status("RssAnon"));
  result.set("vm_hwm", process_status("VmHWM"));
  result.set("threads", process_status("Threads"));
  malloc_trim(0);
  result.set("rss_anon_settled", process_status("RssAnon"));
}

}  // namespace lookout::cmd::bench
