#include "cmd/metrics.h"

#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <functional>

#include "lookout/api/error.h"

namespace lookout::cmd {
namespace {

using Informers = std::vector<std::shared_ptr<informer::SharedIndexInformer>>;

/// Reads the informers' own counters when somebody asks.
class InformerMetrics : public prometheus::Collectable {
 public:
  explicit InformerMetrics(Informers informers) : informers_(std::move(informers)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> out;
    const auto add = [&](std::string name, std::string help, prometheus::MetricType type,
                         const std::function<double(const informer::SharedIndexInformer&)>& read) {
      prometheus::MetricFamily family{std::move(name), std::move(help), type, {}};
      for (const auto& informer : informers_) {
        prometheus::ClientMetric metric;
        metric.label.push_back({"name", informer->name()});
        (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) =
            read(*informer);
        family.metric.push_back(std::move(metric));
      }
      out.push_back(std::move(family));
    };
    const auto counter = [&](std::string name, std::string help,
                             std::atomic<std::uint64_t> cache::ReflectorStats::*field) {
      add(std::move(name), std::move(help), prometheus::MetricType::Counter,
          [field](const auto& i) {
            return static_cast<double>((i.stats().*field).load(std::memory_order_relaxed));
          });
    };
    using Stats = cache::ReflectorStats;
    counter("reflector_lists_total", "Lists that were begun", &Stats::lists);
    counter("reflector_watches_total", "Watches that were begun", &Stats::watches);
    counter("reflector_short_watches_total", "Watches that brought nothing", &Stats::short_watches);
    counter("reflector_events_total", "Changes received", &Stats::events);
    counter("reflector_bookmarks_total", "Bookmarks received", &Stats::bookmarks);
    counter("reflector_errors_total", "Failed lists and watches", &Stats::errors);
    counter("reflector_skipped_objects_total", "Objects left out", &Stats::skipped);
    add("informer_store_objects", "Objects in the store", prometheus::MetricType::Gauge,
        [](const auto& i) { return static_cast<double>(i.store().size()); });
    add("informer_synced", "Whether the first list has come in", prometheus::MetricType::Gauge,
        [](const auto& i) { return i.has_synced() ? 1.0 : 0.0; });
    add("informer_last_activity_seconds", "Since the server last gave a sign of life",
        prometheus::MetricType::Gauge, [](const auto& i) {
          return std::chrono::duration<double>(std::chrono::steady_clock::now() - i.last_activity())
              .count();
        });
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
    try {
      exposer_ = std::make_unique<prometheus::Exposer>(address, 1);
    } catch (const std::exception& e) {
      throw Error(fmt::format("cannot serve metrics at {}: {}", address, e.what()));
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
