// Manager: runs controllers and everything they need.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/controller/cache.h"
#include "lookout/controller/controller.h"
#include "lookout/controller/event_sink.h"
#include "lookout/rest/client.h"
#include "lookout/tools/leaderelection/leadership.h"

namespace lookout::controller {

/// Leader election on a Lease; leaderelection::Options documents the times.
struct LeaderElection {
  LOOKOUT_OPTION std::string name;
  /// Empty: the namespace of the pod's service account.
  LOOKOUT_OPTION std::string ns = {};
  /// Empty: host name and a random number.
  LOOKOUT_OPTION std::string identity = {};
  std::chrono::milliseconds lease_duration{15'000};
  std::chrono::milliseconds renew_deadline{10'000};
  std::chrono::milliseconds retry_period{2'000};
  /// Releases the lease after an orderly stop.
  bool release = true;
  /// Labels for the Lease; other labels stay.
  LOOKOUT_OPTION std::map<std::string, std::string> labels = {};
};

/// Serves /metrics over TLS, and only to authorized clients: controller-runtime's SecureServing with
/// its filter WithAuthenticationAndAuthorization.
struct SecureMetrics {
  /// As in WebhookOptions. An empty directory: a self-signed certificate, which clients cannot
  /// verify, as in controller-runtime.
  LOOKOUT_OPTION std::string cert_dir = {};
  LOOKOUT_OPTION std::string cert_name = "tls.crt";
  LOOKOUT_OPTION std::string key_name = "tls.key";
  LOOKOUT_OPTION std::string client_ca_name = {};
  /// Clients need a bearer token that the API server accepts (TokenReview), and the right to "get"
  /// the non-resource URL /metrics (SubjectAccessReview). The program's service account needs the
  /// ClusterRole system:auth-delegator. False: any client may read the metrics.
  bool authorize = true;
};

struct ManagerOptions {
  /// Empty: no leader election; this process is the only one.
  LOOKOUT_OPTION std::optional<LeaderElection> leader_election = {};
  /// A new leader starts its controllers when its caches show the previous leader's writes, or after
  /// this time; 0: immediately. It lists the metadata of the cached kinds once, which takes
  /// milliseconds for a few thousand objects.
  std::chrono::milliseconds catch_up_timeout = std::chrono::minutes(5);
  /// The address for /healthz and /readyz, such as ":8081" (all addresses, IPv4 and IPv6) or
  /// "localhost:8081"; "" or "0": not served. Port 0 is any free port; see Manager::health_port().
  LOOKOUT_OPTION std::string health_listen = {};
  /// The address for /metrics, in Prometheus' text format.
  LOOKOUT_OPTION std::string metrics_listen = {};
  /// Empty: plain HTTP, for any client.
  LOOKOUT_OPTION std::optional<SecureMetrics> secure_metrics = {};
  /// Makes /readyz fail while caches are incomplete or have had no sign of life from the server for
  /// max_cache_staleness; /readyz/caches names them and the reason. Set it to false for programs
  /// whose caches depend on their own conversion webhook: the pod would wait for the caches, and the
  /// caches for the pod.
  bool ready_when_caches_are_live = true;
  /// A server sends at least a bookmark about once a minute.
  std::chrono::milliseconds max_cache_staleness = std::chrono::minutes(2);
  LOOKOUT_OPTION CacheOptions cache = {};
  /// The concurrency of controllers that set none.
  unsigned concurrency = 1;
  /// The defaults of all controllers: their builders begin with these options. `name` and
  /// `rate_limiter`, which no two controllers may share, must not be set.
  LOOKOUT_OPTION ControllerOptions controllers = {};
  /// The time limit of an orderly stop; negative: none. With 0, a stop that must wait for anything,
  /// such as a controller's workers, counts as late.
  std::chrono::milliseconds graceful_shutdown_timeout = std::chrono::seconds(30);
  /// Called when a stop exceeds its time limit, or when leadership was lost and work is still
  /// running. run() cannot return while user code runs; a program that must exit calls std::_Exit
  /// here. (Programs with controller-runtime exit in this case.)
  LOOKOUT_OPTION std::function<void()> on_shutdown_overrun = {};
  /// Receives the Events of Context::event() and, about the Lease, those of leader election ("became
  /// leader", "stopped leading"; `controller` is the identity); null: they are dropped.
  LOOKOUT_OPTION std::shared_ptr<EventSink> events = {};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// When a runnable starts and ends.
enum class RunnableGroup {
  kServers,   ///< started first, stopped last
  kWebhooks,  ///< before the caches, whose first lists may need conversion
  kOthers,    ///< with the caches, on every replica
  kLeader,    ///< only while this process leads; always, without leader election
};

/// The result of a health or readiness check: the reason for a failure; std::nullopt if healthy. (An
/// empty text is a failure, too.)
using HealthCheck = std::function<std::optional<std::string>()>;

/// run() ended because leadership was lost. The process must exit and start again.
class LeaderElectionLostError : public Error {
 public:
  using Error::Error;
};
/// run() ended late: something did not stop within ManagerOptions::graceful_shutdown_timeout.
class ShutdownOverrunError : public Error {
 public:
  using Error::Error;
};

/// Starts and stops the parts of a controller program: HTTP servers, caches, controllers, leader
/// election, and custom runnables. controller-runtime's manager.
///
///     controller::Manager manager{client, {.health_listen = ":8081"}};
///     controller::Builder<Website>(manager).reconcile(...);
///     manager.run(controller::stop_on_signals());
///
/// The start order is: servers, webhooks, caches (waiting for their first lists), others, sources
/// that warm up; then the manager campaigns for leadership, waits until the caches show the
/// previous leader's writes, and starts the parts that need leadership. The stop order is: others,
/// parts that need leadership, caches, webhooks, servers; the lease is released last. When
/// leadership is lost, all parts are stopped at once, and Context refuses to write.
///
/// An error from a runnable or from a controller's start ends run() with that error. After run()
/// has returned, no user code runs. Objects that reconcilers capture must live until then.
///
/// All functions may be called from any thread. Parts that are added while the manager runs start
/// immediately; while it stops, adding throws InvalidArgument.
class Manager {
 public:
  /// Opens the listeners, but serves only while it runs. Throws lookout::Error if an address cannot
  /// be bound, and InvalidArgument for invalid options.
  explicit Manager(rest::Client client, ManagerOptions options = {});
  /// Ends a run() on another thread and waits for it, so the thread may be declared before the manager.
  /// A function that the manager itself calls must not destroy it; async_run() must have ended.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  const rest::Client& client() const;
  Cache& cache() const;
  /// ManagerOptions::controllers.
  const ControllerOptions& controller_defaults() const;

  using Run = std::function<void(std::stop_token stop)>;
  using AsyncRun = std::function<Awaitable<void>(std::stop_token stop)>;
  /// Runs `run` on its own thread, from the start of its group until it returns. It must return
  /// soon after `stop` is requested. Returning early is fine; an exception ends the manager.
  void add(std::string name, Run run, RunnableGroup group = RunnableGroup::kLeader);
  /// Like add(), for a coroutine on a strand of the event loop.
  void add_async(std::string name, AsyncRun run, RunnableGroup group = RunnableGroup::kLeader);
  /// Runs the caches of another cluster: they start before everything that needs this manager's own
  /// caches, and end with them. Adds /readyz/caches/NAME, and the cluster's metrics with the label
  /// "cluster". Add a cluster before the controllers that watch it. Throws InvalidArgument if the
  /// name is taken, if the cluster has a manager already, or if its client has another event loop.
  void add(const std::shared_ptr<Cluster>& cluster);
  /// For the builder; Builder::reconcile() documents the exceptions.
  Controller add(ControllerSpec spec);

  /// Adds /healthz/NAME and /readyz/NAME. Checks run on a thread of the server, possibly at the
  /// same time, and must not block for long; an exception counts as a failure. Without checks,
  /// there is one named "ping". A name may be a path, such as "controller/website" (see
  /// ControllerOptions::stuck_after).
  void add_health_check(std::string name, HealthCheck check);
  void add_ready_check(std::string name, HealthCheck check);
  /// Adds metrics to /metrics, besides those of caches, controllers, leader election and the
  /// client's requests.
  void add_metrics(std::shared_ptr<const metrics::Source> source);

  /// Runs until `stop` is requested or something fails; rethrows that failure. Call it once.
  void run(std::stop_token stop);
  /// Like run(), on the event loop. Asio's cancellation of the awaiting coroutine counts as a
  /// request to stop: here, too, the call ends only when everything has ended.
  Awaitable<void> async_run(std::stop_token stop);
  /// How much of graceful_shutdown_timeout is left, for runnables that end in several steps. Empty
  /// before the stop begins, and if there is no limit.
  std::optional<Clock::Duration> stop_time_left() const;

  /// True if this process leads at this moment; without leader election, true while it runs.
  bool is_leader() const;
  /// The current term, for its fencing token; empty if there is none.
  std::optional<leaderelection::Leadership> leadership() const;

  /// The ports that were bound; 0 if there is no listener.
  std::uint16_t health_port() const;
  std::uint16_t metrics_port() const;

  /// Appends everything that /metrics shows.
  void collect(std::vector<metrics::Sample>& out) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::controller
