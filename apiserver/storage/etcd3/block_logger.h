// Logs slow operations.
#pragma once

#include <chrono>
#include <string>

namespace lookout::apiserver::storage::etcd3 {

/// Sums up how long a full queue blocked its producer, and periodically logs the sum if it is large
/// (k8s.io/apiserver's block_logger.go). Not thread-safe.
class BlockLogger {
 public:
  using Clock = std::chrono::steady_clock;
  using Log = void (*)(const std::string& line);

  static constexpr std::chrono::seconds kInterval{5};
  static constexpr std::chrono::milliseconds kThreshold{100};

  /// `message` names the operation, `subject` the place: "/registry/pods".
  BlockLogger(std::string message, std::string subject, Clock::time_point now, Log log);

  void record_wait(Clock::duration waited, Clock::time_point now);

 private:
  const std::string message_;
  const std::string subject_;
  const Log log_;
  Clock::time_point last_;
  std::size_t events_ = 0;
  Clock::duration waited_{0};
};

}  // namespace lookout::apiserver::storage::etcd3
