#include "apiserver/admission/webhook_metrics.h"

#include <algorithm>

#include "apiserver/metric_families.h"

namespace lookout::apiserver::admission {
namespace {

constexpr int kOk = 200;

/// kube-apiserver's names for the two types of webhooks.
const char* type_of(const WebhookCall& call) { return call.mutating ? "admit" : "validating"; }

/// Limits the number of label values: a webhook may return any number as its code.
std::string code_label(int code) {
  constexpr int kMost = 600;
  return std::to_string(std::clamp(code, 0, kMost));
}

const prometheus::Histogram::BucketBoundaries& buckets() {
  static const prometheus::Histogram::BucketBoundaries kBuckets = {0.005, 0.025, 0.1, 0.5,
                                                                   1.0,   2.5,   10,  25};
  return kBuckets;
}

}  // namespace

WebhookMetrics::WebhookMetrics(prometheus::Registry& registry)
    : durations_(histograms(registry, "apiserver_admission_webhook_admission_duration_seconds",
                            "How long calls of admission webhooks took, in seconds, by the name "
                            "of the webhook, its type (admit or validating), the operation, and "
                            "whether the request was rejected.")),
      requests_(counters(registry, "apiserver_admission_webhook_request_total",
                         "Number of calls of admission webhooks, by the name of the webhook, its "
                         "type (admit or validating), the operation, the HTTP status of the "
                         "outcome (600 for all that are larger), and whether the request was "
                         "rejected.")),
      rejections_(counters(registry, "apiserver_admission_webhook_rejection_count",
                           "Number of requests that admission webhooks rejected, by the name of "
                           "the webhook, its type (admit or validating), the operation, the type "
                           "of the error (calling_webhook_error, apiserver_internal_error, or "
                           "no_error if the webhook refused), and the HTTP status (600 for all "
                           "that are larger).")),
      ignored_failures_(counters(
          registry, "apiserver_admission_webhook_fail_open_count",
          "Number of failed admission webhook calls that were ignored because the failurePolicy is "
          "Ignore, by the name of the webhook and its type (admit or validating).")) {}

void WebhookMetrics::allowed(const WebhookCall& call) { count(call, kOk, false); }

void WebhookMetrics::refused(const WebhookCall& call, int code) {
  count_rejection(call, "no_error", code);
  count(call, code, true);
}

void WebhookMetrics::failed(const WebhookCall& call, int code, bool ignored, bool cancelled) {
  if (!ignored && !cancelled) count_rejection(call, "calling_webhook_error", code);
  if (ignored && !cancelled)
    ignored_failures_.Add({{"name", call.name}, {"type", type_of(call)}}).Increment();
  count(call, code, !ignored);
}

void WebhookMetrics::broken(const WebhookCall& call) {
  count_rejection(call, "apiserver_internal_error", 0);
  count(call, 0, true);
}

void WebhookMetrics::count(const WebhookCall& call, int code, bool rejected) {
  prometheus::Labels labels = {{"name", call.name},
                               {"type", type_of(call)},
                               {"operation", call.operation},
                               {"rejected", rejected ? "true" : "false"}};
  durations_.Add(labels, buckets()).Observe(call.taken.count());
  labels["code"] = code_label(code);
  requests_.Add(labels).Increment();
}

void WebhookMetrics::count_rejection(const WebhookCall& call, const char* error_type, int code) {
  rejections_
      .Add({{"name", call.name},
            {"type", type_of(call)},
            {"operation", call.operation},
            {"error_type", error_type},
            {"rejection_code", code_label(code)}})
      .Increment();
}

}  // namespace lookout::apiserver::admission
