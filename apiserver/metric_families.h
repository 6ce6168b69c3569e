// Families of metrics, as kube-apiserver has them.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace lookout::apiserver {

/// The relevant buckets of kube-apiserver's histograms, in seconds.
inline const prometheus::Histogram::BucketBoundaries& duration_buckets() {
  static const prometheus::Histogram::BucketBoundaries kBuckets = {
      0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2,
      3,     4,     5,    6,   8,   10,  15,  20,  30,  45,   60};
  return kBuckets;
}

inline prometheus::Family<prometheus::Counter>& counters(prometheus::Registry& registry,
                                                         const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
inline prometheus::Family<prometheus::Gauge>& gauges(prometheus::Registry& registry,
                                                     const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
inline prometheus::Family<prometheus::Histogram>& histograms(prometheus::Registry& registry,
                                                             const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace lookout::apiserver
