#include "lookout/base/labelled_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "lookout/base/ascii.h"
#include "lookout/base/error.h"
#include "lookout/base/json_strings.h"

namespace lookout::metrics {
namespace {

bool is_name(std::string_view text, bool colons) {
  const auto fits = [colons](char c) {
    return base::is_alnum(c) || c == '_' || (colons && c == ':');
  };
  return !text.empty() && !base::is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), fits);
}

/// The rules of Prometheus' text format.
void check_names(const std::string& name, const std::vector<std::string>& labels) {
  if (!is_name(name, true))
    throw InvalidArgument(fmt::format("\"{}\" is not a valid name for a metric", name));
  for (auto at = labels.begin(); at != labels.end(); ++at) {
    if (!is_name(*at, false) || at->starts_with("__"))
      throw InvalidArgument(fmt::format("{}: \"{}\" is not a valid name for a label", name, *at));
    if (std::find(labels.begin(), at, *at) != at)
      throw InvalidArgument(fmt::format("{}: it has the label {} twice", name, *at));
  }
}

std::shared_ptr<const std::vector<double>> valid_bounds(const std::string& name,
                                                        const std::vector<std::string>& labels,
                                                        std::vector<double> bounds) {
  if (std::find(labels.begin(), labels.end(), "le") != labels.end())
    throw InvalidArgument(fmt::format("{}: the label le is that of the buckets", name));
  if (!bounds.empty() && bounds.back() == std::numeric_limits<double>::infinity())
    bounds.pop_back();
  const auto finite = [](double bound) { return std::isfinite(bound); };
  if (!std::all_of(bounds.begin(), bounds.end(), finite) ||
      std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal()) != bounds.end()) {
    throw InvalidArgument(fmt::format("{}: its buckets do not ascend", name));
  }
  return std::make_shared<const std::vector<double>>(std::move(bounds));
}

void fill(Sample& sample, const Counter& counter) { sample.value = counter.value(); }
void fill(Sample& sample, const Gauge& gauge) { sample.value = gauge.value(); }
void fill(Sample& sample, const Observer& observer) {
  sample.buckets = observer.cumulative();
  sample.count = observer.count();
  sample.sum = observer.sum();
}

Sample::Type type_of(const Counter*) { return Sample::Type::kCounter; }
Sample::Type type_of(const Gauge*) { return Sample::Type::kGauge; }
Sample::Type type_of(const Observer*) { return Sample::Type::kHistogram; }

}  // namespace

// ---------------------------------------------------------------------------------- values

void Counter::add(double by) {
  if (by < 0) throw InvalidArgument("a counter cannot be decreased");
  value_.fetch_add(by, std::memory_order_relaxed);
}

Observer::Observer(std::shared_ptr<const std::vector<double>> bounds)
    : bounds_(std::move(bounds)), buckets_(bounds_->size() + 1) {}

void Observer::observe(double value) {
  // NaN counts in the last bucket.
  const auto bound = std::find_if(bounds_->begin(), bounds_->end(),
                                  [value](double each) { return value <= each; });
  buckets_[static_cast<std::size_t>(bound - bounds_->begin())].fetch_add(1,
                                                                         std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::uint64_t Observer::count() const {
  std::uint64_t out = 0;
  for (const auto& bucket : buckets_) out += bucket.load(std::memory_order_relaxed);
  return out;
}

std::vector<std::pair<double, std::uint64_t>> Observer::cumulative() const {
  std::vector<std::pair<double, std::uint64_t>> out;
  out.reserve(bounds_->size());
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds_->size(); ++i) {
    below += buckets_[i].load(std::memory_order_relaxed);
    out.emplace_back((*bounds_)[i], below);
  }
  return out;
}

// --------------------------------------------------------------------------------- buckets

std::vector<double> default_buckets() {
  return {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

std::vector<double> exponential_buckets(double start, double factor, std::size_t count) {
  if (!(start > 0) || !(factor > 1) || count == 0)
    throw InvalidArgument("exponential_buckets() needs start > 0, factor > 1 and count > 0");
  std::vector<double> out;
  out.reserve(count);
  for (; out.size() < count; start *= factor) out.push_back(start);
  return out;
}

std::vector<double> linear_buckets(double start, double width, std::size_t count) {
  if (!(width > 0) || count == 0)
    throw InvalidArgument("linear_buckets() needs width > 0 and count > 0");
  std::vector<double> out;
  out.reserve(count);
  for (; out.size() < count; start += width) out.push_back(start);
  return out;
}

// --------------------------------------------------------------------------------- vectors

template <class Metric>
MetricVec<Metric>::MetricVec(std::string name, std::string help, std::vector<std::string> labels)
    : name_(std::move(name)), help_(repair_utf8(std::move(help))), labels_(std::move(labels)) {
  check_names(name_, labels_);
}

template <class Metric>
auto MetricVec<Metric>::valid(std::span<const std::string_view> values) const -> Values {
  if (values.size() != labels_.size()) {
    throw InvalidArgument(fmt::format("{}: it has {} labels, but {} values were given", name_,
                                      labels_.size(), values.size()));
  }
  Values out;
  out.reserve(values.size());
  for (const std::string_view value : values) out.push_back(repair_utf8(std::string(value)));
  return out;
}

template <class Metric>
std::shared_ptr<Metric> MetricVec<Metric>::with(std::span<const std::string_view> values) {
  Values key = valid(values);
  const std::lock_guard lock(mutex_);
  auto& metric = metrics_[std::move(key)];
  if (!metric) metric = make_metric();
  return metric;
}

template <class Metric>
bool MetricVec<Metric>::remove(std::span<const std::string_view> values) {
  const Values key = valid(values);
  const std::lock_guard lock(mutex_);
  return metrics_.erase(key) > 0;
}

template <class Metric>
void MetricVec<Metric>::clear() {
  const std::lock_guard lock(mutex_);
  metrics_.clear();
}

template <class Metric>
void MetricVec<Metric>::collect(std::vector<Sample>& out) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [values, metric] : metrics_) {
    Sample sample{name_, help_, type_of(metric.get())};
    sample.labels.reserve(labels_.size());
    for (std::size_t i = 0; i < labels_.size(); ++i)
      sample.labels.emplace_back(labels_[i], values[i]);
    fill(sample, *metric);
    out.push_back(std::move(sample));
  }
}

template class MetricVec<Counter>;
template class MetricVec<Gauge>;
template class MetricVec<Observer>;
template class NumberVec<Counter>;
template class NumberVec<Gauge>;

HistogramVec::HistogramVec(std::string name, std::string help, std::vector<std::string> labels,
                           std::vector<double> buckets)
    : MetricVec(name, std::move(help), labels),
      bounds_(valid_bounds(name, labels, std::move(buckets))) {}

std::shared_ptr<HistogramVec> HistogramVec::create(std::string name, std::string help,
                                                   std::vector<std::string> labels,
                                                   std::vector<double> buckets) {
  return std::make_shared<HistogramVec>(std::move(name), std::move(help), std::move(labels),
                                        std::move(buckets));
}

}  // namespace lookout::metrics
