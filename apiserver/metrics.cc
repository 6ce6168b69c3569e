#include "apiserver/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>

#include "apiserver/metric_families.h"

namespace lookout::apiserver {
namespace {

std::string verb_label(const endpoints::RequestInfo& info) {
  if (info.verb == "create") return "POST";
  if (info.verb == "update") return "PUT";
  std::string out(info.verb);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return out;
}

bool is_changing(std::string_view method) { return method != "GET" && method != "HEAD"; }

std::string scope_label(const endpoints::RequestInfo& info) {
  if (!info.name.empty()) return "resource";
  return info.ns.empty() ? "cluster" : "namespace";
}

}  // namespace

Metrics::Metrics()
    : requests_(counters(registry_, "apiserver_request_total",
                         "Counter of apiserver requests broken out for each verb, dry run value, "
                         "group, version, resource, scope, component, and HTTP response code.")),
      durations_(histograms(registry_, "apiserver_request_duration_seconds",
                            "Response latency distribution in seconds for each verb, dry run "
                            "value, group, version, resource, subresource, scope and component.")),
      in_flight_(gauges(registry_, "apiserver_current_inflight_requests",
                        "Number of requests in progress, by kind.")),
      watchers_(gauges(registry_, "apiserver_registered_watchers",
                       "Number of currently registered watchers for a given resource.")),
      watch_events_(counters(registry_, "apiserver_watch_events_total",
                             "Number of events sent in watch clients.")),
      objects_(gauges(registry_, "apiserver_storage_objects",
                      "Number of stored objects, split by kind.")),
      resource_objects_(gauges(registry_, "apiserver_resource_objects",
                               "Number of stored objects at the time of last check split by "
                               "kind.")),
      reading_(in_flight_.Add({{"request_kind", "readOnly"}})),
      changing_(in_flight_.Add({{"request_kind", "mutating"}})) {}

Metrics::Request::Request(Metrics& metrics, const http::Request& request)
    : metrics_(metrics),
      in_flight_(is_changing(request.method) ? metrics.changing_ : metrics.reading_),
      dry_run_(request.parameter("dryRun") == "All") {
  in_flight_.Increment();
}

Metrics::Request::~Request() { in_flight_.Decrement(); }

void Metrics::Request::finish(const endpoints::RequestInfo& info,
                              const resources::ServedResource* resource, int code) {
  // Clients must not be able to create arbitrary labels.
  Series labels;
  labels.dry_run = dry_run_;
  labels.is_watch = info.verb == "watch";
  labels.code = code;
  if (resource != nullptr) {
    labels.verb = verb_label(info);
    labels.group = resource->type.group;
    labels.version = resource->type.version;
    labels.resource = resource->type.plural;
    if (resource->find_subresource(info.subresource) != nullptr)
      labels.subresource = info.subresource;
    labels.scope = scope_label(info);
  }
  const Counts counts = metrics_.counts_of(labels);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin_;
  if (counts.durations != nullptr) counts.durations->Observe(taken.count());
  counts.requests->Increment();
}

Metrics::Counts Metrics::counts_of(const Series& series) {
  const std::lock_guard lock(mutex_);
  Counts& known = counts_[series];
  if (known.requests != nullptr) return known;
  prometheus::Labels labels = {{"component", "apiserver"},
                               {"verb", series.verb},
                               {"dry_run", series.dry_run ? "All" : ""},
                               {"group", series.group},
                               {"version", series.version},
                               {"resource", series.resource},
                               {"subresource", series.subresource},
                               {"scope", series.scope}};
  // The duration of a watch is not measured: the watch is counted when it starts.
  if (!series.is_watch) known.durations = &durations_.Add(labels, duration_buckets());
  labels["code"] = std::to_string(series.code);
  known.requests = &requests_.Add(labels);
  return known;
}

std::shared_ptr<WatcherMetrics> Metrics::watcher(const resources::ServedResource& resource) {
  const prometheus::Labels labels = {{"group", resource.type.group},
                                     {"version", resource.type.version},
                                     {"kind", resource.type.kind}};
  return std::make_shared<WatcherMetrics>(watchers_.Add(labels), watch_events_.Add(labels));
}

void Metrics::set_objects(const std::string& group, const std::string& plural, std::size_t count) {
  const std::string name = group.empty() ? plural : plural + "." + group;
  objects_.Add({{"resource", name}}).Set(static_cast<double>(count));
  resource_objects_.Add({{"group", group}, {"resource", plural}}).Set(static_cast<double>(count));
}

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace lookout::apiserver
