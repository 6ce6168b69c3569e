#include "cmd/metrics.h"

#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "cmd/listen_address.h"
#include "lookout/api/error.h"

namespace lookout::cmd {
namespace {

using Informers = std::vector<std::shared_ptr<informer::SharedIndexInformer>>;
using Type = metrics::Sample::Type;

prometheus::MetricType type_of(Type type) {
  switch (type) {
    case Type::kCounter:
      return prometheus::MetricType::Counter;
    case Type::kGauge:
      return prometheus::MetricType::Gauge;
    case Type::kSummary:
      return prometheus::MetricType::Summary;
    case Type::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric value_of(const metrics::Sample& sample) {
  prometheus::ClientMetric out;
  for (const auto& [name, value] : sample.labels) out.label.push_back({name, value});
  switch (sample.type) {
    case Type::kCounter:
      out.counter.value = sample.value;
      break;
    case Type::kGauge:
      out.gauge.value = sample.value;
      break;
    case Type::kSummary:
      out.summary.sample_count = sample.count;
      out.summary.sample_sum = sample.sum;
      break;
    case Type::kHistogram:
      out.histogram.sample_count = sample.count;
      out.histogram.sample_sum = sample.sum;
      for (const auto& [bound, count] : sample.buckets) {
        prometheus::ClientMetric::Bucket bucket;
        bucket.upper_bound = bound;
        bucket.cumulative_count = count;
        out.histogram.bucket.push_back(bucket);
      }
      break;
  }
  return out;
}

/// Reads the informers' own numbers when somebody asks.
class InformerMetrics : public prometheus::Collectable {
 public:
  explicit InformerMetrics(Informers informers) : informers_(std::move(informers)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<metrics::Sample> samples;
    for (const auto& informer : informers_) informer->collect(samples);
    std::map<std::string, prometheus::MetricFamily> families;
    for (const auto& sample : samples) {
      auto& family = families[sample.name];
      family.name = sample.name;
      family.help = sample.help;
      family.type = type_of(sample.type);
      family.metric.push_back(value_of(sample));
    }
    std::vector<prometheus::MetricFamily> out;
    out.reserve(families.size());
    for (auto& [name, family] : families) out.push_back(std::move(family));
    return out;
  }

 private:
  const Informers informers_;
};

}  // namespace

class MetricsServer::Impl {
 public:
  Impl(const std::string& address, Informers informers)
      : metrics_(std::make_shared<InformerMetrics>(std::move(informers))) {
    const std::string where = parse_listen_address(address, "--metrics-listen").text();
    errno = 0;
    try {
      exposer_ = std::make_unique<prometheus::Exposer>(where, 1);
    } catch (const std::exception&) {
      // Its text names no reason.
      throw Error(
          fmt::format("cannot serve metrics at {}: {}", where,
                      errno == 0 ? "not an address of this machine" : std::strerror(errno)));
    }
    exposer_->RegisterCollectable(metrics_);
  }

 private:
  const std::shared_ptr<InformerMetrics> metrics_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

MetricsServer::MetricsServer(const std::string& address, Informers informers)
    : impl_(std::make_unique<Impl>(address, std::move(informers))) {}
MetricsServer::~MetricsServer() = default;

}  // namespace lookout::cmd
