// SharedIndexInformer: a live, indexed copy of a set of objects, shared by its handlers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include "lookout/api/group_version_resource.h"
#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/informer/event_handler.h"
#include "lookout/informer/handler_pool.h"
#include "lookout/lister/index.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/lister_watcher.h"
#include "lookout/tools/cache/reflector.h"

namespace lookout::informer {

struct InformerOptions {
  /// The type that the source delivers (ReflectorOptions::expected_*) and the name for messages; by
  /// default the resource, the kind, or "informer". Its resync_period is the default for handlers.
  LOOKOUT_OPTION cache::ReflectorOptions reflector = {};
  /// The listed resource, for the labels of metrics.
  LOOKOUT_OPTION api::GroupVersionResource resource = {};
  /// Indexes in addition to the index by namespace.
  LOOKOUT_OPTION cache::Indexers indexers = {};
  LOOKOUT_OPTION cache::TransformFunc transform = {};
};

namespace detail {
class Listener;
class InformerCore;
}  // namespace detail

/// Owns a handler of an informer: its destructor removes the handler. Declare it after the members
/// that the handler refers to, or release() it.
///
///     registration_ = pods.add_handler({.on_add = [this](const Pod& pod) { add(pod); }});
///     pods.add_handler({.on_add = print}).release();  // runs as long as the informer
///
/// It may outlive the informer and the factory; their shutdown ends the handler. All functions may
/// be called from several threads at once, except moves and assignments.
class [[nodiscard]] HandlerRegistration {
 public:
  /// No handler, for later assignment.
  HandlerRegistration() = default;
  /// For the library.
  HandlerRegistration(std::weak_ptr<detail::InformerCore> informer,
                      std::shared_ptr<detail::Listener> listener);
  /// Calls remove() unless the handler has been released or removed. On the event loop, where it
  /// must not wait, a running call may outlast the destructor.
  ~HandlerRegistration();
  HandlerRegistration(HandlerRegistration&& other) noexcept;
  /// Removes the previous handler.
  HandlerRegistration& operator=(HandlerRegistration&& other) noexcept;

  /// Leaves the handler to the informer, for the informer's lifetime. The registration can still be
  /// queried, and can still remove the handler.
  void release();
  explicit operator bool() const { return listener_ != nullptr; }

  /// True if the handler has received every initial object.
  bool has_synced() const;
  /// Waits for has_synced(). Returns false if a stop was requested, or if the handler was removed
  /// or the informer stopped before. Throws InvalidArgument on the event loop and in the handler
  /// itself, which would deadlock.
  bool wait_for_sync(std::stop_token stop = {}) const;

  /// Removes the handler. Waits for a running call, unless that call is the caller; afterwards the
  /// handler is not called again, and the objects it refers to may be destroyed. Two handlers that
  /// remove each other at the same time do not wait for each other. Throws InvalidArgument on the
  /// event loop, where a handler that waits for the loop, as in a blocking request, would deadlock
  /// with it: use detach(), or destroy the registration.
  void remove();
  /// Removes the handler but still delivers its queued notifications (client-go's
  /// RemoveEventHandler), unless the informer is shut down first. Returns immediately. The
  /// registration then owns nothing, so the objects that the handler refers to must outlive the
  /// informer.
  void detach();
  /// Like detach(), but waits for the deliveries (client-go's ShutDownEventHandler), unless the
  /// handler itself calls it. Throws InvalidArgument on the event loop, like remove().
  void drain();

  /// The number of notifications that wait for the handler.
  std::size_t backlog() const;
  /// The number of exceptions that the handler threw.
  std::uint64_t exceptions() const;
  /// The effective resync period of the handler (HandlerOptions::resync_period); 0: never.
  std::chrono::milliseconds resync_period() const;
  const std::string& name() const;

 private:
  std::weak_ptr<detail::InformerCore> informer_;
  std::shared_ptr<detail::Listener> listener_;
  bool owned_ = false;
};

/// client-go's SharedIndexInformer, for objects of any type; SharedInformer<T> is the typed skin.
///
/// The reflector, the store and the distribution to handlers run on one strand of the event loop;
/// handlers run on the pool. For each object, a handler sees a subsequence of its versions, in
/// order, from an addition to a deletion; the store is never older than a notification. All
/// functions may be called from any thread.
class SharedIndexInformer : public metrics::Source {
 public:
  /// Several informers may share a loop and a pool.
  SharedIndexInformer(std::shared_ptr<cache::ListerWatcher> source, InformerOptions options,
                      std::shared_ptr<EventLoop> loop, std::shared_ptr<HandlerPool> pool);
  /// Shuts down (see shutdown() for a handler that destroys its informer). On the event loop, where
  /// it must not wait, it only stops, and running calls of handlers may outlast the destructor.
  ~SharedIndexInformer() override;
  SharedIndexInformer(const SharedIndexInformer&) = delete;
  SharedIndexInformer& operator=(const SharedIndexInformer&) = delete;

  /// Adds a handler. If the informer is running, the handler first receives every stored object.
  /// The result owns the handler. Throws InvalidArgument if the informer has been stopped.
  HandlerRegistration add_handler(EventHandler<api::Object> handler, HandlerOptions options = {});

  /// Throws InvalidArgument if a name is taken, if a function is empty, or if the informer has been
  /// stopped.
  void add_indexers(cache::Indexers indexers);
  /// Adds one index and returns a handle to it.
  lister::Index<api::Object> add_index(std::string name, cache::IndexFunc function);

  /// Only before start(); later calls throw InvalidArgument. The last call wins.
  void set_transform(cache::TransformFunc transform);
  void set_watch_error_handler(cache::WatchErrorHandler handler);

  /// Starts to list and watch; does nothing if the informer has been started or stopped before.
  void start();
  bool started() const;

  /// Stops permanently. Returns immediately; queued notifications are still delivered.
  void stop();
  bool stopped() const;

  /// Stops, waits until nothing runs any more, and removes all handlers, waiting for their running
  /// calls, including those of handlers that were detached or that removed themselves. Drops queued
  /// notifications. Once it returns, the informer calls no user code, even if several threads shut
  /// it down at once. A handler may call it: it then does not wait for the calling handler, nor for
  /// handlers that are themselves waiting here. Throws InvalidArgument on the event loop; there,
  /// use stop().
  void shutdown();

  /// True if the store holds the whole first list. (Each handler has its own has_synced().)
  bool has_synced() const;
  /// Waits for has_synced(); may be called before start(). Returns false if a stop was requested or
  /// the informer was stopped first. Throws InvalidArgument on the event loop, where it would
  /// deadlock.
  bool wait_for_sync(std::stop_token stop = {}) const;

  /// The known objects. Only the informer writes to the store.
  const cache::Indexer& store() const;
  const std::shared_ptr<const cache::Indexer>& shared_store() const;

  /// The time of the server's last sign of life.
  Clock::TimePoint last_activity() const;
  /// The time since last_activity(). An API server sends at least a bookmark about every minute. If
  /// this time is much longer, the store may be stale.
  Clock::Duration staleness() const;
  /// True if the store is complete, the informer is running, and the server has given a sign of
  /// life within this time.
  bool live(Clock::Duration within = std::chrono::minutes(2)) const;
  /// How often the informer checks for due resyncs: the shortest period that was requested before
  /// the start; 0: never.
  std::chrono::milliseconds resync_check_period() const;
  /// The start of the current live state; empty while the server is unreachable or a new list is
  /// needed. See cache::Reflector::live().
  std::optional<Clock::TimePoint> live_since() const;
  /// The last failure since the informer was live.
  std::optional<cache::ReflectorFailure> last_failure() const;
  /// The resourceVersion that the store has reached; empty before the first list. When a handler is
  /// called, the store has at least the version of the notification. Of an informer for several
  /// namespaces, the version that all listed ones have reached: single objects may be newer.
  std::string last_sync_resource_version() const;
  const cache::ReflectorStats& stats() const;
  /// See cache::Reflector::unreadable_keys().
  std::shared_ptr<const std::unordered_set<std::string>> unreadable_keys() const;
  const std::string& name() const;

  /// reflector_*, informer_* ...: with client-go's names, labels and buckets where client-go has them.
  /// informer_handler_* describe single handlers, which client-go does not measure.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  std::shared_ptr<detail::InformerCore> core_;
  std::shared_ptr<const cache::Indexer> store_;
};

}  // namespace lookout::informer
