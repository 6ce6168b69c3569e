// Controller: the untyped controller that the builder makes.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lookout/api/resource.h"
#include "lookout/api/typed_object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/empty_function.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/controller/context.h"
#include "lookout/controller/predicate.h"
#include "lookout/controller/priority_queue.h"
#include "lookout/controller/request.h"
#include "lookout/controller/result.h"
#include "lookout/controller/source.h"
#include "lookout/tools/workqueue/rate_limiter.h"

namespace lookout::controller {

struct ControllerOptions {
  /// Unique within the manager; the `controller` label of its metrics.
  LOOKOUT_OPTION std::string name = {};
  /// How many requests are reconciled at the same time. A blocking reconciler uses one thread for
  /// each; for a coroutine, a large number such as 10,000 is fine. Empty: the manager's default.
  std::optional<unsigned> concurrency = {};
  /// Null: 5 ms per request, doubling up to 1000 s. If the limiter throws, the error is logged and
  /// the request is retried after 5 s.
  LOOKOUT_OPTION std::shared_ptr<workqueue::RateLimiter<Request>> rate_limiter = {};
  /// Waits until a request has had no event for this long, so that a burst of events is one
  /// reconcile. Events that never pause delay a request for ten times as long, but no longer.
  /// Retries and requeue_after() are not delayed. 0: reconciles at once.
  std::chrono::milliseconds debounce{0};
  /// The time limit of one reconcile, after which Context::stop() is requested; 0: none.
  std::chrono::milliseconds reconcile_timeout{0};
  /// If a reconcile runs longer than this, /healthz fails, and /healthz/controller/NAME names the
  /// request: for programs that should be restarted when a reconciler hangs. 0: never.
  std::chrono::milliseconds stuck_after{0};
  /// The time limit for sources to become ready; after it, the manager fails. 0: the default.
  std::chrono::milliseconds sync_timeout = std::chrono::minutes(2);
  /// True if only the leader runs the controller.
  bool needs_leader_election = true;
  /// Starts the sources before this process leads, so that a new leader can work immediately.
  bool warm_up = false;
  /// See Context.
  bool read_your_writes = true;
  /// The longest time that a request waits for the caches to see its writes. Longer waits are
  /// logged and counted (controller_write_wait_timeouts_total), and the request runs on a stale
  /// state. The default is that of kube-controller-manager (ExpectationsTimeout).
  std::chrono::milliseconds write_timeout = std::chrono::minutes(5);
  /// A request that is reconciled this often within a second, while its object's generation does
  /// not change over the second half of them, is a hot loop: it is logged once and counted. 0:
  /// never.
  unsigned hot_loop = 20;
};

/// A reconciler is a function, which runs on a thread of the controller, or a coroutine, which runs
/// on the event loop and must not block.
using ReconcileFunction = std::function<Result(const Request&, Context&)>;
using AsyncReconcileFunction = std::function<Awaitable<Result>(Request, Context&)>;
using Reconciler = std::variant<ReconcileFunction, AsyncReconcileFunction>;

/// A kind that a controller watches.
struct Watch {
  api::Resource resource;
  bool metadata_only = false;
  MapFunction map;
  Predicate predicate = {};
  /// Null: the manager's own cluster. Another one must have been added to the manager.
  std::shared_ptr<Cluster> cluster = {};
};

/// Options of a watch.
struct WatchOptions {
  /// In the builder, combined with Builder::when().
  LOOKOUT_OPTION Predicate predicate = {};
  /// Caches only metadata; the map function sees only metadata.
  bool only_metadata = false;
  /// Builder::owns() only: enqueues every owner, not only the controlling one. New objects then get
  /// no controller reference: see set_owner_reference().
  bool match_any_owner = false;
  /// Watches a kind of another cluster, which was added to the manager: see Cluster. Not for the
  /// Builder's T and for owns(): these kinds must be of the manager's own cluster.
  LOOKOUT_OPTION std::shared_ptr<Cluster> cluster = {};
};

/// The parts of a controller.
struct ControllerSpec {
  ControllerOptions options;
  api::Resource primary = {};        ///< the kind whose objects are reconciled, if there is one
  std::vector<api::Resource> owned;  ///< kinds whose new objects get the controller reference
  /// The owned kinds that are written even if another object controls them (match_any_owner), and
  /// whose new objects get no reference.
  std::vector<api::Resource> shared = {};
  std::vector<Watch> watches;
  std::vector<std::shared_ptr<Source>> sources;
  Reconciler reconcile;
};

/// Map functions for common watches.
MapFunction enqueue_object();
/// Enqueues the owners of a kind: the controlling one, or all of them.
MapFunction enqueue_owner(api::Resource owner, bool match_any_owner = false);

namespace detail {
/// map(object, enqueue), or map(object), which returns requests.
template <class Map, class U>
concept MapsToRequests =
    std::invocable<const Map&, const U&, Enqueue&> || requires(const Map& map, const U& object) {
      { *std::begin(map(object)) } -> std::convertible_to<Request>;
    };
}  // namespace detail

/// A watch of a kind known at compile time: see Builder::watches().
template <api::ResourceObject U, detail::MapsToRequests<U> Map>
Watch watch_of(Map map, WatchOptions options = {}) {
  MapFunction untyped;
  // Empty if `map` is: the controller refuses it.
  if (!base::is_empty_function(map)) {
    untyped = [map = std::move(map)](const api::Object& object, Enqueue& enqueue) {
      if constexpr (std::invocable<const Map&, const U&, Enqueue&>) {
        map(U(object), enqueue);
      } else {
        for (const Request& request : map(U(object))) enqueue(request);
      }
    };
  }
  return {api::Resource(U::kResource), options.only_metadata, std::move(untyped),
          std::move(options.predicate), std::move(options.cluster)};
}

namespace detail {
class Attachment;
class ControllerCore;
}  // namespace detail

/// Owns a watch that was added to a controller: its destructor calls remove(). It may outlive the
/// controller and the manager; the watch ends with them. Several threads may call has_synced() at the
/// same time. All other calls need exclusive access.
class [[nodiscard]] WatchHandle {
 public:
  /// No watch, for later assignment.
  WatchHandle() = default;
  /// For the library.
  explicit WatchHandle(std::shared_ptr<detail::Attachment> watch);
  /// Calls remove(), unless the watch was released. On the event loop, where it must not wait, a
  /// running call may outlast the destructor.
  ~WatchHandle();
  WatchHandle(WatchHandle&& other) noexcept;
  /// Removes the previous watch.
  WatchHandle& operator=(WatchHandle&& other) noexcept;

  /// Ends the watch and waits until its map function and its predicates are no longer running; they
  /// are not called afterwards. Does not wait if called within a map function or predicate of any
  /// watch.
  ///
  /// Requests that the watch has enqueued stay in the queue: other watches may have enqueued them,
  /// too, and the reconciler may need to react to the end of the watch. A kind that no controller
  /// watches and that was not declared leaves the cache; the call waits until its informer has
  /// ended. Reading the kind is then an error, and watching it again lists it again.
  ///
  /// Throws InvalidArgument on the event loop; there, use async_remove().
  void remove();
  Awaitable<void> async_remove();
  /// Leaves the watch to the controller, for the controller's lifetime.
  void release() { watch_ = nullptr; }

  /// True if the controller has received all initial objects.
  bool has_synced() const;
  explicit operator bool() const { return watch_ != nullptr; }

 private:
  std::shared_ptr<detail::Attachment> watch_;
};

/// A controller of a manager. A small value: copies refer to the same controller. It owns nothing,
/// so a reconciler may capture it by reference or by value. Safe to use from any thread.
///
/// Watches can be added while it runs, such as one for each kind that a custom resource names:
///
///     controller::Controller sync = controller::Builder<Sync>(manager).reconcile(...);
///     handles[kind] = sync.watch({.resource = resource_of(kind), .map = ...});
///     ...
///     handles.erase(kind);
///
/// A watch starts immediately if the controller's other sources have started, otherwise together
/// with them. The builder's predicates do not apply to it. If its kind cannot be listed, for
/// example because the CRD is not installed, the cache keeps trying, and readiness names the
/// incomplete cache.
class Controller {
 public:
  /// Empty, for later assignment. Calls throw InvalidArgument until then.
  Controller() = default;
  /// For the library.
  explicit Controller(const std::shared_ptr<detail::ControllerCore>& core);

  /// These functions throw InvalidArgument if the controller has ended, or if the map function is
  /// empty.
  WatchHandle watch(Watch watch) const;
  /// A raw source: timer(), a Channel or a custom one.
  WatchHandle watch(std::shared_ptr<Source> source) const;
  /// Events of U enqueue requests: see Builder::watches().
  template <api::ResourceObject U, detail::MapsToRequests<U> Map>
  WatchHandle watch(Map map, WatchOptions options = {}) const {
    return watch(watch_of<U>(std::move(map), std::move(options)));
  }

  const std::string& name() const { return name_; }

 private:
  std::shared_ptr<detail::ControllerCore> core() const;

  std::string name_;
  std::weak_ptr<detail::ControllerCore> core_;
};

}  // namespace lookout::controller
