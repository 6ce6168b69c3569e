#include "apiserver/storage/etcd3/metrics.h"

#include <prometheus/text_serializer.h>

#include "apiserver/metric_families.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

prometheus::Labels labels_of(std::string_view group_resource) {
  const std::size_t dot = group_resource.find('.');
  return {{"group", std::string(dot == std::string_view::npos ? std::string_view()
                                                              : group_resource.substr(dot + 1))},
          {"resource", std::string(group_resource.substr(0, dot))}};
}

}  // namespace

Metrics::Metrics()
    : requests(counters(registry, "etcd_requests_total",
                        "Etcd request counts for each operation and object type.")),
      request_errors(counters(registry, "etcd_request_errors_total",
                              "Etcd failed request counts for each operation and object type.")),
      request_durations(
          histograms(registry, "etcd_request_duration_seconds",
                     "Etcd request latency in seconds for each operation and object type.")),
      bookmarks(counters(registry, "etcd_bookmark_counts",
                         "Number of etcd bookmarks (progress notify events) split by kind.")),
      events(counters(registry, "apiserver_storage_events_received_total",
                      "Number of etcd events received split by kind.")),
      decode_errors(counters(registry, "apiserver_storage_decode_errors_total",
                             "Number of stored object decode errors split by object type")),
      lists(counters(registry, "apiserver_storage_list_total",
                     "Number of LIST requests served from storage")),
      list_fetched(
          counters(registry, "apiserver_storage_list_fetched_objects_total",
                   "Number of objects read from storage in the course of serving a LIST request")),
      list_evaluated(counters(
          registry, "apiserver_storage_list_evaluated_objects_total",
          "Number of objects tested in the course of serving a LIST request from storage")),
      list_returned(counters(registry, "apiserver_storage_list_returned_objects_total",
                             "Number of objects returned for a LIST request from storage")),
      cache_events(counters(registry, "apiserver_watch_cache_events_received_total",
                            "Counter of events received in watch cache broken by resource type.")),
      cache_initializations(
          counters(registry, "apiserver_watch_cache_initializations_total",
                   "Counter of watch cache initializations broken by resource type.")),
      cache_revision(gauges(registry, "apiserver_watch_cache_resource_version",
                            "Current resource version of watch cache broken by resource type.")),
      cache_capacity(gauges(registry, "apiserver_watch_cache_capacity",
                            "Total capacity of watch cache broken by resource type.")),
      cache_lists(counters(registry, "apiserver_cache_list_total",
                           "Number of LIST requests served from watch cache")) {}

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

ResourceMetrics::ResourceMetrics(Metrics& metrics, std::string_view group_resource)
    : all_(metrics),
      labels_(labels_of(group_resource)),
      bookmarks_(metrics.bookmarks.Add(labels_)),
      events_(metrics.events.Add(labels_)),
      decode_errors_(metrics.decode_errors.Add(labels_)),
      cache_revision_(metrics.cache_revision.Add(labels_)) {}

void ResourceMetrics::request(const char* operation, std::chrono::steady_clock::duration taken,
                              bool failed) {
  const Operation counts = counts_of(operation);
  counts.requests->Increment();
  if (failed) {
    prometheus::Labels labels = labels_;
    labels["operation"] = operation;
    all_.request_errors.Add(labels).Increment();
  }
  counts.durations->Observe(std::chrono::duration<double>(taken).count());
}

ResourceMetrics::Operation ResourceMetrics::counts_of(std::string_view operation) {
  const std::lock_guard lock(mutex_);
  const auto known = operations_.find(operation);
  if (known != operations_.end()) return known->second;
  prometheus::Labels labels = labels_;
  labels["operation"] = operation;
  const Operation counts{&all_.requests.Add(labels),
                         &all_.request_durations.Add(labels, duration_buckets())};
  operations_.emplace(operation, counts);
  return counts;
}

void ResourceMetrics::list(std::size_t fetched, std::size_t evaluated, std::size_t returned) {
  all_.lists.Add(labels_).Increment();
  all_.list_fetched.Add(labels_).Increment(static_cast<double>(fetched));
  all_.list_evaluated.Add(labels_).Increment(static_cast<double>(evaluated));
  all_.list_returned.Add(labels_).Increment(static_cast<double>(returned));
}

void ResourceMetrics::cache_filled(Revision revision, std::size_t capacity) {
  all_.cache_initializations.Add(labels_).Increment();
  all_.cache_capacity.Add(labels_).Set(static_cast<double>(capacity));
  cache_at(revision);
}

void ResourceMetrics::cache_event(Revision revision) {
  all_.cache_events.Add(labels_).Increment();
  cache_at(revision);
}

void ResourceMetrics::cache_at(Revision revision) {
  cache_revision_.Set(static_cast<double>(revision));
}

void ResourceMetrics::cache_list() { all_.cache_lists.Add(labels_).Increment(); }

}  // namespace lookout::apiserver::storage::etcd3
