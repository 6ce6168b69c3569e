// A manager or a server that runs on another thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <future>
#include <stop_token>
#include <utility>

#include "tests/support/bounded_wait.h"

namespace lookout::controller {

/// Calls `runnable.run(stop)` on another thread, and stops it at the end of the test.
template <class Runnable>
class RunningOf {
 public:
  explicit RunningOf(Runnable& runnable)
      : ended_(std::async(std::launch::async,
                          [&runnable, stop = stop_.get_token()] { runnable.run(stop); })) {}
  ~RunningOf() {
    stop_.request_stop();
    if (!ended_.valid()) return;
    try {
      test::get(ended_);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "run() threw: " << e.what();
    }
  }
  RunningOf(const RunningOf&) = delete;
  RunningOf& operator=(const RunningOf&) = delete;

  /// Stops, and throws what run() throws.
  void stop() {
    stop_.request_stop();
    end();
  }
  /// Requests the stop without waiting.
  void request_stop() { stop_.request_stop(); }
  /// Waits until run() returns, without a stop.
  void end() { test::get(std::exchange(ended_, {})); }
  bool ended() const {
    return ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

 private:
  std::stop_source stop_;
  std::future<void> ended_;
};

}  // namespace lookout::controller
