// A program's own metrics: client_golang's CounterVec, GaugeVec and HistogramVec.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/base/metrics.h"

namespace lookout::metrics {

/// A number that only grows. Safe to use from any thread, as is everything in this header.
class Counter {
 public:
  /// Throws InvalidArgument if `by` is negative.
  void add(double by = 1);
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// A number that goes up and down.
class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  void subtract(double by = 1) { value_.fetch_sub(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// Counts observations in buckets of any number, unlike metrics::Histogram; client_golang's
/// Observer.
class Observer {
 public:
  /// For HistogramVec: the upper bounds of the buckets, ascending.
  explicit Observer(std::shared_ptr<const std::vector<double>> bounds);

  void observe(double value);
  std::uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  /// For each bound, the number of observations up to it.
  std::vector<std::pair<double, std::uint64_t>> cumulative() const;

 private:
  const std::shared_ptr<const std::vector<double>> bounds_;
  std::vector<std::atomic<std::uint64_t>> buckets_;  // one more than bounds
  std::atomic<double> sum_{0};
};

/// client_golang's DefBuckets, for durations in seconds: 5 ms to 10 s.
std::vector<double> default_buckets();
/// `count` bounds: `start`, and each further one `factor` times the one before it. Throws
/// InvalidArgument unless start > 0, factor > 1 and count > 0.
std::vector<double> exponential_buckets(double start, double factor, std::size_t count);
/// `count` bounds: `start`, and each further one larger by `width`. Throws InvalidArgument unless
/// width > 0 and count > 0.
std::vector<double> linear_buckets(double start, double width, std::size_t count);

/// The metrics of one name, one for each list of label values.
///
///     const auto requests = metrics::CounterVec::create(
///         "website_requests_total", "Requests to the directory.", {"method", "result"});
///     manager.add_metrics(requests);
///     requests->with({"create", "ok"})->add();
///
/// Every list of values that was ever used takes memory here and in Prometheus until remove():
/// label values must be few. Names of objects are usually not.
template <class Metric>
class MetricVec : public Source {
 public:
  MetricVec(const MetricVec&) = delete;
  MetricVec& operator=(const MetricVec&) = delete;

  /// The metric with these label values, in the order of the label names; for a vector without
  /// labels, with(). The first call makes the metric; values that are not UTF-8 are repaired. Keep
  /// the result to save the lookup. Throws InvalidArgument if the number of values is wrong.
  std::shared_ptr<Metric> with(std::span<const std::string_view> values);
  std::shared_ptr<Metric> with(std::initializer_list<std::string_view> values = {}) {
    return with(std::span(values.begin(), values.size()));
  }

  /// Returns false if there is no such metric. A kept result stays usable, but is not collected.
  bool remove(std::span<const std::string_view> values);
  bool remove(std::initializer_list<std::string_view> values) {
    return remove(std::span(values.begin(), values.size()));
  }
  /// Removes all metrics.
  void clear();

  /// In the order of the label values.
  void collect(std::vector<Sample>& out) const override;

 protected:
  /// Throws InvalidArgument if Prometheus would not accept the name or a label.
  MetricVec(std::string name, std::string help, std::vector<std::string> labels);

  virtual std::shared_ptr<Metric> make_metric() const = 0;

 private:
  using Values = std::vector<std::string>;

  Values valid(std::span<const std::string_view> values) const;

  const std::string name_;
  const std::string help_;
  const std::vector<std::string> labels_;
  mutable std::mutex mutex_;
  std::map<Values, std::shared_ptr<Metric>> metrics_;  // guarded by mutex_
};

extern template class MetricVec<Counter>;
extern template class MetricVec<Gauge>;
extern template class MetricVec<Observer>;

/// A vector of metrics that have no options.
template <class Metric>
class NumberVec : public MetricVec<Metric> {
 public:
  NumberVec(std::string name, std::string help, std::vector<std::string> labels = {})
      : MetricVec<Metric>(std::move(name), std::move(help), std::move(labels)) {}
  static std::shared_ptr<NumberVec> create(std::string name, std::string help,
                                           std::vector<std::string> labels = {}) {
    return std::make_shared<NumberVec>(std::move(name), std::move(help), std::move(labels));
  }

 private:
  std::shared_ptr<Metric> make_metric() const override { return std::make_shared<Metric>(); }
};

using CounterVec = NumberVec<Counter>;
using GaugeVec = NumberVec<Gauge>;

extern template class NumberVec<Counter>;
extern template class NumberVec<Gauge>;

class HistogramVec : public MetricVec<Observer> {
 public:
  /// Throws InvalidArgument if the buckets do not ascend. A bucket without a bound is always there.
  HistogramVec(std::string name, std::string help, std::vector<std::string> labels = {},
               std::vector<double> buckets = default_buckets());
  static std::shared_ptr<HistogramVec> create(std::string name, std::string help,
                                              std::vector<std::string> labels = {},
                                              std::vector<double> buckets = default_buckets());

 private:
  std::shared_ptr<Observer> make_metric() const override {
    return std::make_shared<Observer>(bounds_);
  }

  const std::shared_ptr<const std::vector<double>> bounds_;
};

}  // namespace lookout::metrics
