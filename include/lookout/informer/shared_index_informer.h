// A live, indexed copy of a set of objects, shared by any number of handlers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
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
  /// Says which type the source delivers (ReflectorOptions::expected_*), and the name for messages.
  /// Its resync_period is that of handlers that ask for none of their own.
  LOOKOUT_OPTION cache::ReflectorOptions reflector = {};
  /// The listed resource, for the labels of metrics.
  LOOKOUT_OPTION api::GroupVersionResource resource = {};
  /// In addition to the index by namespace.
  LOOKOUT_OPTION cache::Indexers indexers = {};
  LOOKOUT_OPTION cache::TransformFunc transform = {};
};

namespace detail {
class Listener;
class InformerCore;
}  // namespace detail

/// Owns a handler that has been added: when it goes, the handler ends as by remove(). Keep it in a
/// member that is declared after what the handler refers to, or release() it.
///
///     registration_ = pods.add_handler({.on_add = [this](const Pod& pod) { add(pod); }});
///     pods.add_handler({.on_add = print}).release();  // as long as the informer
///
/// It may outlive the informer and the factory: their shutdown has ended the handler then. All
/// functions may be called from several threads at once, but not while it is moved or assigned to.
class [[nodiscard]] HandlerRegistration {
 public:
  /// No handler: to be assigned to.
  HandlerRegistration() = default;
  /// For the library.
  HandlerRegistration(std::weak_ptr<detail::InformerCore> informer,
                      std::shared_ptr<detail::Listener> listener);
  /// remove(), unless the handler has been released or taken out. On the event loop, where it must
  /// not wait, a call that is running may outlast it.
  ~HandlerRegistration();
  HandlerRegistration(HandlerRegistration&& other) noexcept;
  /// Ends the handler that it had.
  HandlerRegistration& operator=(HandlerRegistration&& other) noexcept;

  /// Leaves the handler to the informer, for as long as that runs. The registration still answers
  /// questions, and takes the handler out if asked to.
  void release();
  explicit operator bool() const { return listener_ != nullptr; }

  /// Whether the handler has got every initial object.
  bool has_synced() const;
  /// Waits for it; false if stopped, or if the handler was removed or the informer stopped before.
  bool wait_for_sync(std::stop_token stop = {}) const;

  /// Takes the handler out. Waits for a call that is running, unless it is made from that call;
  /// afterwards the handler is not called again, and what it refers to may go. Two handlers that
  /// remove each other at the same time do not wait for each other.
  void remove();
  /// Takes the handler out, but what has been queued for it is still delivered (client-go's
  /// RemoveEventHandler), unless the informer is shut down before. Returns at once; the
  /// registration owns nothing then, so what the handler refers to must last as the informer does.
  void detach();
  /// The same, and waits until it has been delivered (client-go's ShutDownEventHandler), unless it
  /// is called by the handler.
  void drain();

  /// Notifications that wait for the handler.
  std::size_t backlog() const;
  /// How often the handler threw.
  std::uint64_t exceptions() const;
  /// How often the handler is really told of everything again (HandlerOptions::resync_period); 0:
  /// never.
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
/// handlers run on the pool. For one object a handler sees a subsequence of its versions, in order,
/// beginning with an addition and ending with a deletion; the store is never older than a
/// notification. All functions may be called from any thread.
class SharedIndexInformer : public metrics::Source {
 public:
  /// Loop and pool may serve many informers.
  SharedIndexInformer(std::shared_ptr<cache::ListerWatcher> source, InformerOptions options,
                      std::shared_ptr<EventLoop> loop, std::shared_ptr<HandlerPool> pool);
  /// Shuts down (see shutdown() for a handler that does it). On the event loop, where that would be
  /// waiting for itself, it stops, and calls of handlers that are running may outlast it.
  ~SharedIndexInformer() override;
  SharedIndexInformer(const SharedIndexInformer&) = delete;
  SharedIndexInformer& operator=(const SharedIndexInformer&) = delete;

  /// A handler that is added to a running informer is first told of everything that is there. What
  /// is returned owns the handler. Throws InvalidArgument if the informer has been stopped.
  HandlerRegistration add_handler(EventHandler<api::Object> handler, HandlerOptions options = {});

  /// Throws InvalidArgument if a name is taken, or if the informer has been stopped.
  void add_indexers(cache::Indexers indexers);
  /// Adds one, for those who want to hold it.
  lister::Index<api::Object> add_index(std::string name, cache::IndexFunc function);

  /// Before the start only; afterwards they throw InvalidArgument. The last one counts.
  void set_transform(cache::TransformFunc transform);
  void set_watch_error_handler(cache::WatchErrorHandler handler);

  /// Begins to list and watch; does nothing if it has begun or been stopped before.
  void start();
  bool started() const;

  /// Ends it, for good. Returns at once; what has been queued for handlers is still delivered.
  void stop();
  bool stopped() const;

  /// Stops, waits until nothing runs any more, and removes all handlers, waiting for their running
  /// calls, including those of handlers that were detached or removed themselves. Queued
  /// notifications are dropped. After it returns the informer calls no function of the program any
  /// more, even if several threads shut it down at once. A handler may call it: it then does not
  /// wait for the call it is made from, nor for handlers that are themselves waiting here. Throws
  /// InvalidArgument on the event loop; there, use stop().
  void shutdown();

  /// Whether the store holds all of the first list. (Each handler has a has_synced of its own.)
  bool has_synced() const;
  /// Waits for it; false if a stop was requested, or if the informer was stopped before. Throws
  /// InvalidArgument on the event loop, which would wait for itself.
  bool wait_for_sync(std::stop_token stop = {}) const;

  /// The known objects. Only the informer changes the store.
  const cache::Indexer& store() const;
  const std::shared_ptr<const cache::Indexer>& shared_store() const;

  /// When the server last gave a sign of life.
  Clock::TimePoint last_activity() const;
  /// How long ago that was. An API server sends a bookmark about every minute, if nothing else: an
  /// informer that has heard nothing for much longer may know less than the server does.
  Clock::Duration staleness() const;
  /// Whether the store is complete, the informer runs, and the server has been heard of within this
  /// time.
  bool live(Clock::Duration within = std::chrono::minutes(2)) const;
  /// How often the informer looks for handlers whose resync is due: the shortest period that was
  /// asked for before the start; 0: never.
  std::chrono::milliseconds resync_check_period() const;
  /// Since when the store follows the server without a break; nothing while the server cannot be
  /// reached or a new list is needed. See cache::Reflector::live().
  std::optional<Clock::TimePoint> live_since() const;
  /// Why it does not: the last failure since it did.
  std::optional<cache::ReflectorFailure> last_failure() const;
  std::string last_sync_resource_version() const;
  const cache::ReflectorStats& stats() const;
  const std::string& name() const;

  /// reflector_*, informer_* ...: client-go's names where it has them, with its labels and buckets.
  /// informer_handler_* are about single handlers, which client-go does not measure.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  std::shared_ptr<detail::InformerCore> core_;
  std::shared_ptr<const cache::Indexer> store_;
};

}  // namespace lookout::informer
