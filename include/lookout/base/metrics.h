// Metrics of the library's components, for a program to publish.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lookout::metrics {

/// The number and the sum of observations. Safe to use from any thread.
class Summary {
 public:
  void observe(double value) {
    count_.fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::atomic<double> sum_{0};
};

/// The buckets of client-go's work queues: 10 ns, 100 ns ... 10 s.
inline constexpr std::array<double, 10> kWorkQueueBuckets = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4,
                                                             1e-3, 1e-2, 1e-1, 1e0,  1e1};
/// The buckets of client-go's informers.
inline constexpr std::array<double, 12> kInformerBuckets = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                            0.25,  0.5,   1,    2.5,   5,    10};

/// Durations in seconds, counted in buckets. Safe to use from any thread.
class Histogram {
 public:
  static constexpr std::size_t kMaxBounds = 12;

  /// `bounds`: the upper bounds of the buckets, ascending, in static storage.
  explicit Histogram(std::span<const double> bounds = kWorkQueueBuckets)
      : bounds_(bounds.first(std::min(bounds.size(), kMaxBounds))) {}

  void observe(double value) {
    summary_.observe(value);
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      if (value > bounds_[i]) continue;
      buckets_[i].fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  std::uint64_t count() const { return summary_.count(); }
  double sum() const { return summary_.sum(); }
  /// For each bound, the number of observations up to it.
  std::vector<std::pair<double, std::uint64_t>> cumulative() const {
    std::vector<std::pair<double, std::uint64_t>> out;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
      below += buckets_[i].load(std::memory_order_relaxed);
      out.emplace_back(bounds_[i], below);
    }
    return out;
  }

 private:
  Summary summary_;
  const std::span<const double> bounds_;
  std::array<std::atomic<std::uint64_t>, kMaxBounds> buckets_{};
};

/// A resourceVersion as a number that fits into a double: its 15 least significant digits, as in
/// client-go's metrics. 0 if it is not a number.
inline double version_value(std::string_view resource_version) {
  if (resource_version.size() > 15) resource_version.remove_prefix(resource_version.size() - 15);
  double out = 0;
  for (const char digit : resource_version) {
    if (digit < '0' || digit > '9') return 0;
    out = 10 * out + (digit - '0');
  }
  return out;
}

/// One metric and its current value, with the name that client-go or Prometheus uses.
struct Sample {
  enum class Type { kCounter, kGauge, kSummary, kHistogram };

  std::string name;
  std::string help;
  Type type = Type::kGauge;
  std::vector<std::pair<std::string, std::string>> labels = {};
  double value = 0;         ///< counters and gauges
  std::uint64_t count = 0;  ///< summaries and histograms, like the fields below
  double sum = 0;
  std::vector<std::pair<double, std::uint64_t>> buckets = {};  ///< upper bound, cumulative count
};

/// A component with metrics, such as an informer or a work queue. Metrics are computed on request,
/// so they cost nothing otherwise.
class Source {
 public:
  virtual ~Source() = default;
  /// Appends the current samples. Called from any thread.
  virtual void collect(std::vector<Sample>& out) const = 0;
};

/// Helps a Source to build its samples.
class Collector {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  Collector(std::vector<Sample>& out, Labels labels) : out_(out), labels_(std::move(labels)) {}

  void counter(std::string name, std::string help, double value) {
    add(std::move(name), std::move(help), Sample::Type::kCounter).value = value;
  }
  void counter(std::string name, std::string help, const std::atomic<std::uint64_t>& value) {
    counter(std::move(name), std::move(help),
            static_cast<double>(value.load(std::memory_order_relaxed)));
  }
  void gauge(std::string name, std::string help, double value) {
    add(std::move(name), std::move(help), Sample::Type::kGauge).value = value;
  }
  void summary(std::string name, std::string help, const Summary& value) {
    Sample& sample = add(std::move(name), std::move(help), Sample::Type::kSummary);
    sample.count = value.count();
    sample.sum = value.sum();
  }
  void histogram(std::string name, std::string help, const Histogram& value) {
    Sample& sample = add(std::move(name), std::move(help), Sample::Type::kHistogram);
    sample.buckets = value.cumulative();
    sample.count = value.count();
    sample.sum = value.sum();
  }

 private:
  Sample& add(std::string name, std::string help, Sample::Type type) {
    out_.push_back({std::move(name), std::move(help), type, labels_});
    return out_.back();
  }

  std::vector<Sample>& out_;
  const Labels labels_;
};

}  // namespace lookout::metrics
