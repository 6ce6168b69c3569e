// Serves webhooks: admission of objects, and conversion between their versions.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "lookout/api/typed_object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/webhook_admission.h"
#include "lookout/controller/webhook_conversion.h"

namespace lookout::controller {

/// The defaults are those of controller-runtime's webhook.Options, where it has them.
struct WebhookOptions {
  /// The address to listen on, such as "127.0.0.1"; empty: all of them.
  LOOKOUT_OPTION std::string host = {};
  /// 0: any that is free, see WebhookServer::port().
  std::uint16_t port = 9443;
  /// The folder of the certificate and its key, PEM, where a Secret is mounted. Empty:
  /// "k8s-webhook-server/serving-certs" in the system's folder for temporary files.
  LOOKOUT_OPTION std::string cert_dir = {};
  /// The files are looked at once a second. A new pair serves new connections; one that is
  /// incomplete or does not fit leaves the old one in place until it does.
  LOOKOUT_OPTION std::string cert_name = "tls.crt";
  LOOKOUT_OPTION std::string key_name = "tls.key";
  /// A file in cert_dir with certificates of authorities: clients must then have a certificate that
  /// one of them has signed. Empty: everybody may ask.
  LOOKOUT_OPTION std::string client_ca_name = {};
  /// Serves plain HTTP, without certificates: for tests. API servers only call HTTPS.
  bool plain_http = false;
  /// Larger bodies are answered with 413. (Two objects of 3 MiB, and the rest.)
  std::size_t max_admission_bytes = 7u << 20;
  /// The same for conversions, which come with all objects of a list.
  std::size_t max_conversion_bytes = 64u << 20;
  /// How many functions that block may run at a time; coroutines do not count. Further requests
  /// wait.
  unsigned max_threads = 64;
  /// How long the server goes on as before when it is told to stop: until API servers have learned
  /// that its endpoint is gone. In a cluster some seconds are right; they count as part of
  /// ManagerOptions::graceful_shutdown_timeout.
  std::chrono::milliseconds drain_delay{0};
  /// How long requests may take to finish after that. Then AdmissionRequest::stop is requested.
  std::chrono::milliseconds finish_timeout = std::chrono::minutes(1);
};

/// An HTTPS server for webhooks that a Kubernetes API server calls: controller-runtime's
/// webhook.Server, with its paths, answers and metrics.
///
///     controller::WebhookServer webhooks(manager, {.cert_dir = "/certs", .drain_delay = 5s});
///     webhooks.validate<Website>([](const controller::Admission<Website>& request) {
///       if (request.object.replicas() > 10) return controller::denied("at most 10 replicas");
///       return controller::allowed();
///     });
///     webhooks.mutate<Website>([](const controller::Admission<Website>&, auto& draft) {
///       draft.metadata().labels().set("app", "website");
///     });
///     webhooks.convert<v1::Website, v1beta1::Website>(to_v1, to_v1beta1);
///
/// The server is a runnable of its manager: it runs from before the first list, which may need its
/// conversion, until after the last reconcile, on every replica.
///
/// **Handlers** run on threads of the server and may block; those that return an Awaitable run on
/// the event loop and must not. Several run at a time. They belong to the server, which keeps them
/// until it and its manager are destroyed; what they refer to must live until run() of the manager
/// has returned, after which no handler runs.
///
/// **Answers.** What a handler throws as api::StatusError refuses the request with that status. Any
/// other exception does with 500 and a message that says nothing of it; the log has its text. A
/// request that is no AdmissionReview of v1 is answered with an HTTP error and a Status, whose
/// message API servers show to their clients (controller-runtime answers 200 and a review). An
/// object of another kind than T is refused with 400.
///
/// All functions may be called from any thread, and while the server runs.
class WebhookServer {
 public:
  /// Reads the certificate and listens, but serves only while the manager runs. Throws Error if the
  /// files cannot be used or the address cannot be had.
  explicit WebhookServer(Manager& manager, WebhookOptions options = {});
  /// Without a manager: see run().
  explicit WebhookServer(std::shared_ptr<EventLoop> loop, WebhookOptions options = {});
  /// Neither run() nor its manager may be running.
  ~WebhookServer();
  WebhookServer(const WebhookServer&) = delete;
  WebhookServer& operator=(const WebhookServer&) = delete;

  /// Serves a validating webhook. `handler` takes (const Admission<T>& request) and returns
  /// AdmissionResponse or Awaitable<AdmissionResponse>; a Validator<T> is one. `request` lives
  /// until the handler has ended. With T = api::Object the webhook takes objects of any kind.
  /// Throws InvalidArgument if `path` is taken or no path.
  template <class T, class Handler>
    requires std::invocable<const Handler&, const Admission<T>&>
  void validate(std::string path, Handler handler) {
    add(std::move(path), detail::validating_hook<T>(std::move(handler)));
  }
  /// At validate_path(T::kResource).
  template <api::ResourceObject T, class Handler>
    requires std::invocable<const Handler&, const Admission<T>&>
  void validate(Handler handler) {
    validate<T>(validate_path(api::Resource(T::kResource)), std::move(handler));
  }

  /// Serves a mutating webhook. `handler` takes (const Admission<T>& request, Draft& draft) and
  /// edits the draft, which is made from `request.object` by T's edit(): an api::ObjectDraft if T
  /// has none. It returns nothing, AdmissionResponse, or an Awaitable of it. The answer is a JSON
  /// patch of what differs and nothing else. Requests without an object (deletions) are allowed
  /// without a call. admission.Defaulter.
  template <class T, class Handler>
    requires std::invocable<const Handler&, const Admission<T>&, detail::DraftOf<T>&>
  void mutate(std::string path, Handler handler) {
    add(std::move(path), detail::mutating_hook<T>(std::move(handler)));
  }
  /// At mutate_path(T::kResource).
  template <api::ResourceObject T, class Handler>
    requires std::invocable<const Handler&, const Admission<T>&, detail::DraftOf<T>&>
  void mutate(Handler handler) {
    mutate<T>(mutate_path(api::Resource(T::kResource)), std::move(handler));
  }

  /// Converts between two versions of one kind, at /convert. All versions of a kind but one are
  /// spokes; objects go from spoke to spoke by way of the hub. `to_hub` takes (const Spoke& from,
  /// Draft& to) with a draft of Hub, `from_hub` the other way round. The draft has the right
  /// apiVersion and the metadata of `from`, of which only labels and annotations may be changed.
  /// An exception fails the conversion; the message of a lookout::Error is passed on, so it must
  /// not hold content of the object. Throws InvalidArgument if the two are not versions of one
  /// kind, the spoke is there already, or the kind has another hub.
  /// conversion.NewHubSpokeConverter.
  template <api::ResourceObject Hub, api::ResourceObject Spoke, class ToHub, class FromHub>
    requires std::invocable<const ToHub&, const Spoke&, detail::DraftOf<Hub>&> &&
             std::invocable<const FromHub&, const Hub&, detail::DraftOf<Spoke>&>
  void convert(ToHub to_hub, FromHub from_hub) {
    add(detail::Spoke{api::Resource(Hub::kResource), api::Resource(Spoke::kResource),
                      detail::convert_function<Spoke, Hub>(std::move(to_hub)),
                      detail::convert_function<Hub, Spoke>(std::move(from_hub))});
  }

  /// "/validate-example-com-v1-website", "/mutate-example-com-v1-website": the paths that
  /// kubebuilder's markers write into webhook configurations.
  static std::string validate_path(const api::Resource& resource);
  static std::string mutate_path(const api::Resource& resource);

  /// The port that was bound.
  std::uint16_t port() const;

  /// A check for Manager::add_ready_check(): the server has been started, and takes connections.
  HealthCheck started_checker() const;

  /// Serves until `stop` is requested and the requests that came in have been answered; then no
  /// handler runs. Once; only for a server without a manager.
  void run(std::stop_token stop);
  Awaitable<void> async_run(std::stop_token stop);

  /// controller_runtime_webhook_*, controller_runtime_conversion_webhook_* and certwatcher_*; the
  /// manager's /metrics has them.
  void collect(std::vector<metrics::Sample>& out) const;

 private:
  class Impl;

  void add(std::string path, detail::AdmissionHook hook);
  void add(detail::Spoke spoke);

  std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::controller
