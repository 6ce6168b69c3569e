// Metrics of the server's calls to admission webhooks, under kube-apiserver's names.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <string>

namespace lookout::apiserver::admission {

/// A call of a webhook that has ended. Calls of one webhook with the same operation count together.
struct WebhookCall {
  std::string name;
  bool mutating = false;
  /// "CREATE", "UPDATE", "DELETE".
  std::string operation;
  std::chrono::duration<double> taken{0};
};

/// Labels and values are those of k8s.io/apiserver's admission/metrics. Safe to use from many
/// threads.
class WebhookMetrics {
 public:
  /// `registry` must outlive it.
  explicit WebhookMetrics(prometheus::Registry& registry);

  /// The webhook allowed the request.
  void allowed(const WebhookCall& call);
  /// The webhook rejected the request, with the HTTP status `code`.
  void refused(const WebhookCall& call, int code);
  /// The webhook gave no response, or an invalid one; `code` is the status of the error. With
  /// `ignored`, the request continues. With `cancelled`, the client has disconnected, and the call
  /// counts neither as a rejection nor as an ignored failure.
  void failed(const WebhookCall& call, int code, bool ignored, bool cancelled);
  /// The server itself failed, for example because a patch could not be applied.
  void broken(const WebhookCall& call);

 private:
  void count(const WebhookCall& call, int code, bool rejected);
  void count_rejection(const WebhookCall& call, const char* error_type, int code);

  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& rejections_;
  prometheus::Family<prometheus::Counter>& ignored_failures_;
};

}  // namespace lookout::apiserver::admission
