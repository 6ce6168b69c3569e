// What the main functions of the benchmarks share.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

namespace lookout::bench {

/// What f() returns, as the program's exit status; 1 and a message if it throws.
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
