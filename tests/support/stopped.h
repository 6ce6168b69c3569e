// Waits that a stop ends.
#pragma once

#include <future>
#include <source_location>
#include <stop_token>

#include "tests/support/bounded_wait.h"

namespace lookout::test {

/// The result of `wait(stop)`, which runs on another thread, after a stop.
template <class Wait>
auto stopped(const Wait& wait, std::source_location where = std::source_location::current()) {
  std::stop_source stop;
  auto result = std::async(std::launch::async, [&] { return wait(stop.get_token()); });
  stop.request_stop();
  return get(result, where);
}

}  // namespace lookout::test
