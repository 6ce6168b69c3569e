// WebhookServer: serves admission and conversion webhooks.
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

/// The options of a webhook server. The defaults are those of controller-runtime's webhook.Options.
struct WebhookOptions {
  /// The address to listen on, such as "127.0.0.1", or a host name; empty: all addresses, IPv4 and
  /// IPv6.
  LOOKOUT_OPTION std::string host = {};
  /// 0: any free port; see WebhookServer::port().
  std::uint16_t port = 9443;
  /// The directory with the certificate and its key (PEM), where a Secret is mounted. Empty:
  /// "k8s-webhook-server/serving-certs" in the system's temporary directory.
  LOOKOUT_OPTION std::string cert_dir = {};
  /// The files are checked once a second. New connections use a new pair; an incomplete pair, or
  /// one that does not match, leaves the old pair in use until it is valid.
  LOOKOUT_OPTION std::string cert_name = "tls.crt";
  LOOKOUT_OPTION std::string key_name = "tls.key";
  /// A file in cert_dir with CA certificates: clients must then have a certificate from one of
  /// these authorities. Empty: any client may connect.
  LOOKOUT_OPTION std::string client_ca_name = {};
  /// Serves plain HTTP without certificates, for tests. API servers only call HTTPS.
  bool plain_http = false;
  /// Larger bodies are answered with 413. (The default fits two objects of 3 MiB.)
  std::size_t max_admission_bytes = 7u << 20;
  /// The same limit for conversions, whose requests contain all objects of a list.
  std::size_t max_conversion_bytes = 64u << 20;
  /// The maximum number of blocking functions that run at a time, not counting coroutines. Further
  /// requests wait.
  unsigned max_threads = 64;
  /// How long the server keeps serving after a stop is requested, until API servers have noticed
  /// that its endpoint is gone. Use a few seconds in a cluster.
  std::chrono::milliseconds drain_delay{0};
  /// How long running requests may take after that. Then AdmissionRequest::stop is requested.
  /// Connections without a complete request end after 5 s. With a manager, both times are part of
  /// ManagerOptions::graceful_shutdown_timeout, and end earlier if less of it is left.
  std::chrono::milliseconds finish_timeout = std::chrono::seconds(20);
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
/// The server is a runnable of its manager: on every replica, it runs from before the first list,
/// which may need its conversion, until after the last reconcile.
///
/// **Handlers** run on threads of the server and may block; those that return an Awaitable run on
/// the event loop and must not block. Several run at a time. The server keeps them until it and its
/// manager are destroyed. Objects that they refer to must live until the manager's run() has
/// returned; afterwards no handler runs.
///
/// **Errors.** An api::StatusError from a handler rejects the request with that status. Any other
/// exception rejects it with 500 and a generic message; its text is logged. A request that is not
/// an AdmissionReview of v1 is answered with an HTTP error and a Status, whose message API servers
/// show to their clients (controller-runtime answers with 200 and a review). An object of another
/// kind than T is rejected with 400.
///
/// All functions may be called from any thread, and while the server runs.
class WebhookServer {
 public:
  /// Reads the certificate and listens, but serves only while the manager runs. Throws Error if the
  /// files cannot be used or the address cannot be bound.
  explicit WebhookServer(Manager& manager, WebhookOptions options = {});
  /// Without a manager: see run().
  explicit WebhookServer(std::shared_ptr<EventLoop> loop, WebhookOptions options = {});
  /// Ends a run() on another thread and waits for it. The manager or async_run() must have ended.
  ~WebhookServer();
  WebhookServer(const WebhookServer&) = delete;
  WebhookServer& operator=(const WebhookServer&) = delete;

  /// Serves a validating webhook. `handler` takes (const Admission<T>& request) and returns
  /// AdmissionResponse or Awaitable<AdmissionResponse>; a Validator<T> is a handler. `request`
  /// lives until the handler has ended. With T = api::Object, the webhook accepts objects of any
  /// kind; otherwise, a CONNECT is allowed without a call, since its object is not a T but the
  /// options of the request, such as PodExecOptions. Throws InvalidArgument if `path` is invalid or
  /// taken, if it is /convert, which is for conversions, or if `handler` is empty.
  template <class T, class Handler>
    requires std::invocable<const Handler&, const Admission<T>&>
  void validate(std::string path, Handler handler) {
    add(std::move(path), detail::validating_hook<T>(std::move(handler)));
  }
  /// Serves it at validate_path(T::kResource).
  template <api::ResourceObject T, class Handler>
    requires std::invocable<const Handler&, const Admission<T>&>
  void validate(Handler handler) {
    validate<T>(validate_path(api::Resource(T::kResource)), std::move(handler));
  }

  /// Serves a mutating webhook (admission.Defaulter). `handler` takes (const Admission<T>& request,
  /// Draft& draft) and edits the draft of `request.object`: the result of T's edit(), or an
  /// api::ObjectDraft if T has none. It returns nothing, AdmissionResponse, or an Awaitable of one.
  /// The response contains the draft's changes as a JSON patch. Requests without an object
  /// (deletions) are allowed without a call.
  template <class T, class Handler>
    requires std::invocable<const Handler&, const Admission<T>&, detail::DraftOf<T>&>
  void mutate(std::string path, Handler handler) {
    add(std::move(path), detail::mutating_hook<T>(std::move(handler)));
  }
  /// Serves it at mutate_path(T::kResource).
  template <api::ResourceObject T, class Handler>
    requires std::invocable<const Handler&, const Admission<T>&, detail::DraftOf<T>&>
  void mutate(Handler handler) {
    mutate<T>(mutate_path(api::Resource(T::kResource)), std::move(handler));
  }

  /// Converts between two versions of a kind, at /convert (conversion.NewHubSpokeConverter). One
  /// version of a kind is the hub, all others are spokes; objects are converted from spoke to spoke
  /// through the hub. `to_hub` takes (const Spoke& from, Draft& to) with a draft of Hub, `from_hub`
  /// the reverse. The draft already has the right apiVersion and the metadata of `from`; of the
  /// metadata, only labels and annotations may change. An exception fails the conversion. The
  /// message of a lookout::Error is passed on, so it must not contain content of the object. Throws
  /// InvalidArgument if the two are not versions of one kind, if the spoke exists already, if the kind
  /// has another hub, or if a function is empty.
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

  /// The port that the server listens on.
  std::uint16_t port() const;

  /// A check for Manager::add_ready_check(): the server has been started and accepts connections.
  HealthCheck started_checker() const;

  /// Serves until `stop` is requested and all received requests have been answered; afterwards no
  /// handler runs. May be called once, only for a server without a manager.
  void run(std::stop_token stop);
  /// Like run(), on the event loop. Asio's cancellation of the awaiting coroutine counts as a
  /// request to stop: here, too, the call ends only when everything has ended.
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
