// Waiting for a future or a latch, with a bound.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <latch>
#include <source_location>
#include <thread>

namespace lookout::test {

/// Longer than any wait of a test, even with sanitizers or on a busy machine.
inline constexpr std::chrono::seconds kLongestWait{60};

/// Aborts the process and names the line that waited.
[[noreturn]] inline void nothing_came(std::source_location where) {
  std::fprintf(stderr, "%s:%u: nothing came within %lld s\n", where.file_name(), where.line(),
               static_cast<long long>(kLongestWait.count()));
  std::abort();
}

/// Waits for `future`. After kLongestWait, aborts the process and names the line that waited: stack
/// unwinding would hang in the destructor of the thread that does not end.
template <class Future>
void wait_for(const Future& future, std::source_location where = std::source_location::current()) {
  if (future.wait_for(kLongestWait) != std::future_status::ready) nothing_came(where);
}

/// The same for a latch.
inline void wait_for(const std::latch& latch,
                     std::source_location where = std::source_location::current()) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  while (!latch.try_wait()) {
    if (std::chrono::steady_clock::now() > deadline) nothing_came(where);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Continues when all threads have arrived.
inline void arrive_and_wait(std::latch& latch,
                            std::source_location where = std::source_location::current()) {
  latch.count_down();
  wait_for(latch, where);
}

/// The value of `future`, or its exception. Waits as wait_for() does.
template <class Future>
auto get(Future&& future, std::source_location where = std::source_location::current()) {
  wait_for(future, where);
  return future.get();
}

}  // namespace lookout::test
