// Ctrl-C and its like.
#pragma once

#include <stop_token>
#include <thread>

namespace lookout::cmd {

/// Turns SIGINT, SIGTERM and SIGHUP (the terminal was closed) into a stop request while it lives; a
/// second signal ends the program at once. To be made before other threads are started, so that they
/// leave the signals to it.
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
