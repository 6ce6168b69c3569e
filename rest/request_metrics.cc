#include "rest/request_metrics.h"

#include <algorithm>

namespace lookout::rest::detail {
namespace {

/// The method in static storage.
std::string_view known(std::string_view method) {
  static constexpr std::array<std::string_view, 5> kMethods = {"GET", "POST", "PUT", "PATCH",
                                                               "DELETE"};
  const auto* const found = std::find(kMethods.begin(), kMethods.end(), method);
  return found == kMethods.end() ? "OTHER" : *found;
}

/// "10.96.0.1:443" of "https://10.96.0.1:443/prefix".
std::string host_of(const std::string& server) {
  const std::size_t scheme = server.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  return server.substr(begin, server.find('/', begin) - begin);
}

}  // namespace

RequestMetrics::RequestMetrics(const std::string& server) : host_(host_of(server)) {}

void RequestMetrics::count(std::string_view method, int status, std::chrono::nanoseconds took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const std::lock_guard lock(mutex_);
  ++requests_[{known(method), status}];
  seconds_.try_emplace(known(method), kBuckets).first->second.observe(seconds);
}

void RequestMetrics::collect(std::vector<metrics::Sample>& out) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, count] : requests_) {
    const auto& [method, status] = key;
    metrics::Collector collector(
        out, {{"code", status == kNoResponse ? "<error>" : std::to_string(status)},
              {"host", host_},
              {"method", std::string(method)}});
    collector.counter("rest_client_requests_total",
                      "Number of HTTP requests, partitioned by status code, method, and host.",
                      static_cast<double>(count));
  }
  for (const auto& [method, seconds] : seconds_) {
    metrics::Collector collector(out, {{"host", host_}, {"verb", std::string(method)}});
    collector.histogram("rest_client_request_duration_seconds",
                        "Request latency in seconds. Broken down by verb, and host.", seconds);
  }
}

}  // namespace lookout::rest::detail
