// The metrics of etcd and of the caches in front of it, under kube-apiserver's names.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage::etcd3 {

/// The metrics of all resources of a backend. Thread-safe.
class Metrics {
 public:
  using Counters = prometheus::Family<prometheus::Counter>;
  using Gauges = prometheus::Family<prometheus::Gauge>;

  Metrics();

  /// Everything in the text format of Prometheus.
  std::string text() const;

  prometheus::Registry registry;
  Counters& requests;
  Counters& request_errors;
  prometheus::Family<prometheus::Histogram>& request_durations;
  Counters& bookmarks;
  Counters& events;
  Counters& decode_errors;
  Counters& lists;
  Counters& list_fetched;
  Counters& list_evaluated;
  Counters& list_returned;
  Counters& cache_events;
  Counters& cache_initializations;
  Gauges& cache_revision;
  Gauges& cache_capacity;
  Counters& cache_lists;
};

/// The metrics of one resource. Thread-safe.
class ResourceMetrics {
 public:
  /// `metrics` must outlive it. `group_resource` is "pods" or "deployments.apps".
  ResourceMetrics(Metrics& metrics, std::string_view group_resource);

  /// A request to etcd: get, list, listWithCount, create, update, delete.
  void request(const char* operation, std::chrono::steady_clock::duration taken, bool failed);
  void bookmark() { bookmarks_.Increment(); }
  void event() { events_.Increment(); }
  void decode_error() { decode_errors_.Increment(); }
  /// A list from etcd: received, evaluated and selected objects.
  void list(std::size_t fetched, std::size_t evaluated, std::size_t returned);

  void cache_filled(Revision revision, std::size_t capacity);
  void cache_event(Revision revision);
  void cache_at(Revision revision);
  void cache_list();

 private:
  struct Operation {
    prometheus::Counter* requests;
    prometheus::Histogram* durations;
  };
  Operation counts_of(std::string_view operation);

  Metrics& all_;
  const prometheus::Labels labels_;
  prometheus::Counter& bookmarks_;
  prometheus::Counter& events_;
  prometheus::Counter& decode_errors_;
  prometheus::Gauge& cache_revision_;
  std::mutex mutex_;
  std::map<std::string, Operation, std::less<>> operations_;  // guarded by mutex_
};

}  // namespace lookout::apiserver::storage::etcd3
