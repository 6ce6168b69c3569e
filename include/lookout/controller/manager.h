// Runs controllers.
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

/// Leader election on a Lease; the times are those of leaderelection::Options.
struct LeaderElection {
  LOOKOUT_OPTION std::string name;
  /// Empty: the namespace of the pod's service account.
  LOOKOUT_OPTION std::string ns = {};
  /// Empty: host name and a random number.
  LOOKOUT_OPTION std::string identity = {};
  std::chrono::milliseconds lease_duration{15'000};
  std::chrono::milliseconds renew_deadline{10'000};
  std::chrono::milliseconds retry_period{2'000};
  /// Whether to give the lease up after an orderly stop.
  bool release = true;
  /// Labels for the Lease; others' labels stay.
  LOOKOUT_OPTION std::map<std::string, std::string> labels = {};
};

struct ManagerOptions {
  /// Nothing: this process is the only one.
  LOOKOUT_OPTION std::optional<LeaderElection> leader_election = {};
  /// Where /healthz and /readyz are served, such as ":8081"; "" or "0": nowhere. Port 0 is any free
  /// one, see Manager::health_port().
  LOOKOUT_OPTION std::string health_listen = {};
  /// Where /metrics is served, in Prometheus' text format.
  LOOKOUT_OPTION std::string metrics_listen = {};
  /// Whether /readyz fails while caches are incomplete or have heard nothing from the server for
  /// max_cache_staleness; /readyz/caches says which, and why. Not for programs whose caches need their own conversion webhook: they are not
  /// ready before the caches, and the caches not before them.
  bool ready_when_caches_are_live = true;
  /// A server sends bookmarks about once a minute, if nothing else.
  std::chrono::milliseconds max_cache_staleness = std::chrono::minutes(2);
  LOOKOUT_OPTION CacheOptions cache = {};
  /// The concurrency of controllers that set none.
  unsigned concurrency = 1;
  /// How long an orderly stop may take; less than 0: as long as it takes.
  std::chrono::milliseconds graceful_shutdown_timeout = std::chrono::seconds(30);
  /// Called when a stop takes longer, or when leadership was lost and work is still running.
  /// run() cannot return while code of the program runs; a program that has to end calls
  /// std::_Exit here, as controller-runtime's programs exit then.
  LOOKOUT_OPTION std::function<void()> on_shutdown_overrun = {};
  /// Takes the Events of Context::event(); null: nobody does.
  LOOKOUT_OPTION std::shared_ptr<EventSink> events = {};
  /// Null: the machine's.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// When a runnable starts and ends.
enum class RunnableGroup {
  kServers,   ///< first up, last down
  kWebhooks,  ///< before the caches, whose first lists may need conversion
  kOthers,    ///< with the caches, on every replica
  kLeader,    ///< only while this process leads; always, without leader election
};

/// The result of a health or readiness check: the reason for a failure, or nothing.
using HealthCheck = std::function<std::optional<std::string>()>;

/// run() ended because leadership was lost. The process must end and begin anew.
class LeaderElectionLostError : public Error {
 public:
  using Error::Error;
};
/// run() ended late: something did not stop within ManagerOptions::graceful_shutdown_timeout.
class ShutdownOverrunError : public Error {
 public:
  using Error::Error;
};

/// Starts and stops all that a controller program consists of: HTTP servers, caches, controllers,
/// leader election, runnables of one's own. controller-runtime's manager.
///
///     controller::Manager manager{client, {.health_listen = ":8081"}};
///     controller::Builder<Website>(manager).reconcile(...);
///     manager.run(controller::stop_on_signals());
///
/// It starts servers, webhooks, caches (and waits for their first lists), others, sources that warm
/// up, then campaigns and starts what needs leadership. It stops others, then what needs
/// leadership, then caches, webhooks and servers, and releases the lease last. When leadership is
/// lost, everything is told to stop at once, and Context refuses to write.
///
/// An error of a runnable or a controller's start ends run() with that error. After run() has
/// returned, no code of the program runs. What reconcilers capture must live that long.
///
/// All functions may be called from any thread. What is added while the manager runs starts at
/// once; while it stops, adding throws InvalidArgument.
class Manager {
 public:
  /// Opens the listeners, but serves only while it runs. Throws lookout::Error if an address cannot
  /// be had, InvalidArgument for options that cannot work.
  explicit Manager(rest::Client client, ManagerOptions options = {});
  /// run() must have returned.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  const rest::Client& client() const;
  Cache& cache() const;

  using Run = std::function<void(std::stop_token stop)>;
  using AsyncRun = std::function<Awaitable<void>(std::stop_token stop)>;
  /// Runs `run` on a thread of its own, from its group's start until it returns. It must return
  /// soon after `stop`. To return early is fine; to throw ends the manager.
  void add(std::string name, Run run, RunnableGroup group = RunnableGroup::kLeader);
  /// The same for a coroutine, on a strand of the event loop.
  void add_async(std::string name, AsyncRun run, RunnableGroup group = RunnableGroup::kLeader);
  /// For the builder, whose reconcile() says what it throws.
  Controller add(ControllerSpec spec);

  /// /healthz/NAME and /readyz/NAME. Checks run on a thread of the server, several at a time, and
  /// must not block for long; an exception counts as a failure. Without any check, "ping" is there.
  /// A name may be a path, such as "controller/website" (see ControllerOptions::stuck_after).
  void add_health_check(std::string name, HealthCheck check);
  void add_ready_check(std::string name, HealthCheck check);
  /// More metrics for /metrics; those of caches, controllers and leader election are there.
  void add_metrics(std::shared_ptr<const metrics::Source> source);

  /// Runs until `stop` is requested or something fails; throws that failure. Once.
  void run(std::stop_token stop);
  /// The same on the event loop.
  Awaitable<void> async_run(std::stop_token stop);

  /// Whether this process leads at this moment; true without leader election while it runs.
  bool is_leader() const;
  /// The present term, for its fencing token; nothing without one.
  std::optional<leaderelection::Leadership> leadership() const;

  /// The ports that were bound; 0 if there is no listener.
  std::uint16_t health_port() const;
  std::uint16_t metrics_port() const;

  /// Everything that /metrics shows.
  void collect(std::vector<metrics::Sample>& out) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::controller
