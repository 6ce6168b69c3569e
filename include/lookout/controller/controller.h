// A controller without types: what the builder makes.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
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
  /// Unique within the manager; the label of its metrics.
  LOOKOUT_OPTION std::string name = {};
  /// How many requests are reconciled at a time. A blocking reconciler has as many threads; for a
  /// coroutine it is a number, ten thousand if one likes. Nothing: the manager's.
  std::optional<unsigned> concurrency = {};
  /// Null: for each request 5 ms, doubling up to 1000 s.
  LOOKOUT_OPTION std::shared_ptr<workqueue::RateLimiter<Request>> rate_limiter = {};
  /// After that long Context::stop() is requested for one reconcile; 0: never.
  std::chrono::milliseconds reconcile_timeout{0};
  /// When a reconcile has run for longer, /healthz fails, and /healthz/controller/NAME says which
  /// request it is: for a program that shall be restarted when its reconciler hangs. 0: never.
  std::chrono::milliseconds stuck_after{0};
  /// How long sources may take to be ready before the manager fails.
  std::chrono::milliseconds sync_timeout = std::chrono::minutes(2);
  /// Whether only the leader runs it.
  bool needs_leader_election = true;
  /// Whether its sources start before this process leads, so that a new leader works at once.
  bool warm_up = false;
  /// See Context.
  bool read_your_writes = true;
  /// How long a request waits at most until the caches have seen its writes. What takes longer is
  /// logged and counted (controller_write_wait_timeouts_total).
  std::chrono::milliseconds write_timeout = std::chrono::seconds(10);
  /// A request that is reconciled this often within a second, while its object's generation stays,
  /// is a hot loop: it is logged once and counted. 0: never.
  unsigned hot_loop = 20;
};

/// The two kinds of reconcilers: functions, which run on threads of the controller, and coroutines,
/// which run on the event loop and must not block.
using ReconcileFunction = std::function<Result(Request, Context&)>;
using AsyncReconcileFunction = std::function<Awaitable<Result>(Request, Context&)>;
using Reconciler = std::variant<ReconcileFunction, AsyncReconcileFunction>;

/// A kind that a controller watches.
struct Watch {
  api::Resource resource;
  bool metadata_only = false;
  MapFunction map;
  Predicate predicate = {};
};

/// Options of a watch.
struct WatchOptions {
  /// In the builder, besides those of Builder::when().
  LOOKOUT_OPTION Predicate predicate = {};
  /// Caches only metadata; the map function sees nothing else.
  bool only_metadata = false;
  /// Builder::owns() only: whether every owner is reconciled, not only the controlling one.
  bool match_any_owner = false;
};

/// Everything that a controller is made of.
struct ControllerSpec {
  ControllerOptions options;
  api::Resource primary = {};        ///< the kind whose objects are reconciled, if it is one
  std::vector<api::Resource> owned;  ///< kinds whose new objects get the controller reference
  std::vector<Watch> watches;
  std::vector<std::shared_ptr<Source>> sources;
  Reconciler reconcile;
};

/// Map functions for the usual watches.
MapFunction enqueue_object();
/// The owners of a kind: the controlling one, or any.
MapFunction enqueue_owner(api::Resource owner, bool match_any_owner = false);

/// A watch of a kind that is known when the program is built: see Builder::watches().
template <api::ResourceObject U, class Map>
  requires std::invocable<const Map&, const U&, Enqueue&>
Watch watch_of(Map map, WatchOptions options = {}) {
  return {api::Resource(U::kResource), options.only_metadata,
          [map = std::move(map)](const api::Object& object, Enqueue& enqueue) {
            map(U(object), enqueue);
          },
          std::move(options.predicate)};
}

namespace detail {
class Attachment;
class ControllerCore;
}  // namespace detail

/// Owns a watch that was added to a controller: when it goes, the watch ends as by remove(). It may
/// outlive the controller and the manager, whose end ends the watch. One thread at a time may use
/// it, except for has_synced().
class [[nodiscard]] WatchHandle {
 public:
  /// No watch: to be assigned to.
  WatchHandle() = default;
  /// For the library.
  explicit WatchHandle(std::shared_ptr<detail::Attachment> watch);
  /// remove(), unless the watch was released. On the event loop, where it must not wait, a call that
  /// is running may outlast it.
  ~WatchHandle();
  WatchHandle(WatchHandle&& other) noexcept;
  /// Ends the watch that it had.
  WatchHandle& operator=(WatchHandle&& other) noexcept;

  /// Ends the watch, and waits until neither its map function nor its predicates run; afterwards
  /// they are not called any more. In such a function, of whichever watch, it does not wait.
  ///
  /// Requests that it has led to stay in the queue: they name objects of the controller, other
  /// watches may have led to them as well, and the reconciler may be what has to notice that
  /// something is no longer watched. A kind that no controller watches and nobody has declared
  /// leaves the cache; the call waits until its informer has ended. Then to read the kind is an
  /// error, and to watch it again lists it anew.
  ///
  /// Throws InvalidArgument on the event loop; there, use async_remove().
  void remove();
  Awaitable<void> async_remove();
  /// Leaves the watch to the controller, for as long as that lives.
  void release() { watch_ = nullptr; }

  /// Whether the controller has got everything that was there at first.
  bool has_synced() const;
  explicit operator bool() const { return watch_ != nullptr; }

 private:
  std::shared_ptr<detail::Attachment> watch_;
};

/// A controller that the manager has. A small value: copies are the same controller. It owns
/// nothing, so a reconciler may capture it by reference or by value. From any thread.
///
/// Watches can be added to it while it runs, such as one for each kind that a custom resource
/// names:
///
///     controller::Controller sync = controller::Builder<Sync>(manager).reconcile(...);
///     handles[kind] = sync.watch({.resource = resource_of(kind), .map = ...});
///     ...
///     handles.erase(kind);
///
/// A watch starts at once if the controller's other sources have, else with them. The builder's
/// predicates do not apply to it. If its kind cannot be listed, say because the CRD is not
/// installed, the cache goes on trying, and readiness says which cache has no complete list.
class Controller {
 public:
  /// None: to be assigned to. Calls throw InvalidArgument until then.
  Controller() = default;
  /// For the library.
  explicit Controller(const std::shared_ptr<detail::ControllerCore>& core);

  /// These throw InvalidArgument if the controller has ended.
  WatchHandle watch(Watch watch) const;
  /// A raw source: timer(), a Channel or one's own.
  WatchHandle watch(std::shared_ptr<Source> source) const;
  /// Events of U lead to what `map(object, enqueue)` enqueues; see MapFunction.
  template <api::ResourceObject U, class Map>
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
