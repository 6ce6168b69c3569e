// Counters of the server.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace lookout::apiserver {

class Metrics;

/// Counters that every thread adds to.
struct Counters {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<std::uint64_t> lists{0};
  std::atomic<std::uint64_t> watches_started{0};
  std::atomic<std::int64_t> watches{0};
  std::atomic<std::uint64_t> events_sent{0};
  std::atomic<std::uint64_t> events_encoded{0};
  std::atomic<std::uint64_t> slow_watchers{0};

  explicit Counters(std::shared_ptr<Metrics> of_server) : metrics(std::move(of_server)) {}
  /// The same and more, for Prometheus.
  const std::shared_ptr<Metrics> metrics;
};

}  // namespace lookout::apiserver
