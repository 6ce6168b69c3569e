// The server's metrics, with kube-apiserver's names.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "apiserver/admission/webhook_metrics.h"
#include "apiserver/endpoints/request_info.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver {

/// The metrics of an open watch, which counts as open while this exists.
class WatcherMetrics {
 public:
  WatcherMetrics(prometheus::Gauge& open, prometheus::Counter& events)
      : open_(open), events_(events) {
    open_.Increment();
  }
  ~WatcherMetrics() { open_.Decrement(); }
  WatcherMetrics(const WatcherMetrics&) = delete;
  WatcherMetrics& operator=(const WatcherMetrics&) = delete;

  void event_sent() { events_.Increment(); }

 private:
  prometheus::Gauge& open_;
  prometheus::Counter& events_;
};

/// Safe to use from many threads.
class Metrics {
 public:
  Metrics();

  /// A request that is being answered; counted when finish() is called.
  class Request {
   public:
    Request(Metrics& metrics, const http::Request& request);
    ~Request();
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    /// `resource` is null for requests without a served resource.
    void finish(const endpoints::RequestInfo& info, const resources::ServedResource* resource,
                int code);

   private:
    Metrics& metrics_;
    prometheus::Gauge& in_flight_;
    const bool dry_run_;
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  std::shared_ptr<WatcherMetrics> watcher(const resources::ServedResource& resource);
  void set_objects(const std::string& group, const std::string& plural, std::size_t count);
  admission::WebhookMetrics& webhooks() { return webhooks_; }

  /// Everything in the text format of Prometheus.
  std::string text() const;

 private:
  /// The labels of a request.
  struct Series {
    bool dry_run = false;
    bool is_watch = false;
    int code = 0;
    std::string verb = "other";
    std::string group = {};
    std::string version = {};
    std::string resource = {};
    std::string subresource = {};
    std::string scope = {};

    auto operator<=>(const Series&) const = default;
  };
  struct Counts {
    prometheus::Counter* requests = nullptr;
    prometheus::Histogram* durations = nullptr;  // null: durations are not measured
  };
  Counts counts_of(const Series& series);

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Family<prometheus::Gauge>& in_flight_;
  prometheus::Family<prometheus::Gauge>& watchers_;
  prometheus::Family<prometheus::Counter>& watch_events_;
  prometheus::Family<prometheus::Gauge>& objects_;
  prometheus::Family<prometheus::Gauge>& resource_objects_;
  prometheus::Gauge& reading_;
  prometheus::Gauge& changing_;
  admission::WebhookMetrics webhooks_{registry_};
  std::mutex mutex_;
  /// A cache: finding labels in a family takes much longer.
  std::map<Series, Counts> counts_;  // guarded by mutex_
};

}  // namespace lookout::apiserver
