// Stops the program on Ctrl-C and similar signals.
#pragma once

#include <stop_token>
#include <thread>

namespace lookout::cmd {

/// Turns SIGINT, SIGTERM and SIGHUP (the terminal was closed) into a stop request while it exists. A
/// second signal ends the program immediately. Create it before other threads, which inherit its
/// signal mask.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();

  std::stop_token token() const { return stop_.get_token(); }
  void request_stop() { stop_.request_stop(); }
  /// Returns when a stop has been requested.
  void wait() const;

 private:
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace lookout::cmd
