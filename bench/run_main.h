// The common part of the benchmarks' main functions.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

namespace lookout::bench {

/// Returns f() as the exit status; on an exception, prints a message and returns 1.
template <class F>
int run_main(const char* program, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", program, e.what());
    return 1;
  }
}

}  // namespace lookout::bench
