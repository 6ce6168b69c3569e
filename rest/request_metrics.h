// RequestMetrics: counts the requests of a client.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/base/metrics.h"

namespace lookout::rest::detail {

/// client-go's metrics of requests, with the names, labels and buckets of component-base. Retries
/// are requests of their own. Thread-safe.
class RequestMetrics : public metrics::Source {
 public:
  /// `server`: the URL of the API server.
  explicit RequestMetrics(const std::string& server);

  /// For the status: there was no response.
  static constexpr int kNoResponse = 0;
  /// Counts a request once its response has begun, or has failed to.
  void count(std::string_view method, int status, std::chrono::nanoseconds took);

  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  static constexpr std::array<double, 12> kBuckets = {0.005, 0.025, 0.1, 0.25, 0.5, 1,
                                                      2,     4,     8,   15,   30,  60};

  const std::string host_;
  mutable std::mutex mutex_;
  // Both are guarded by mutex_, and have an entry for each method and status in use.
  std::map<std::pair<std::string_view, int>, std::uint64_t> requests_;
  std::map<std::string_view, metrics::Histogram> seconds_;
};

}  // namespace lookout::rest::detail
