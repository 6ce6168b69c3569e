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
  using Counter = std::atomic<std::uint64_t>;

  Counter requests{0};
  Counter failures{0};
  Counter lists{0};
  Counter watches_started{0};
  std::atomic<std::int64_t> watches{0};
  Counter events_sent{0};
  Counter events_encoded{0};
  Counter slow_watchers{0};

  explicit Counters(std::shared_ptr<Metrics> of_server) : metrics(std::move(of_server)) {}
  /// The same and more, for Prometheus.
  const std::shared_ptr<Metrics> metrics;
};

}  // namespace lookout::apiserver
