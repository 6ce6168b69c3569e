// InformerCore: the state of an informer, kept alive by its running tasks.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "informer/listener.h"
#include "lookout/informer/shared_index_informer.h"

namespace lookout::informer::detail {

class InformerCore : public std::enable_shared_from_this<InformerCore> {
 public:
  InformerCore(std::shared_ptr<cache::ListerWatcher> source, InformerOptions options,
               std::shared_ptr<EventLoop> loop, std::shared_ptr<HandlerPool> pool);

  std::shared_ptr<Listener> add(EventHandler<api::Object> handler, HandlerOptions options);
  /// Stops sending notifications to the listener.
  void forget(const std::shared_ptr<Listener>& listener);
  void set_transform(cache::TransformFunc transform);
  void set_watch_error_handler(cache::WatchErrorHandler handler);
  void start();
  void stop();
  void shutdown();
  /// shutdown(); on the event loop, only the part that does not wait.
  void end();
  bool wait_for_sync(std::stop_token stop) const;

  bool started() const { return started_; }
  bool stopped() const { return stop_.stop_requested(); }
  bool has_synced() const { return synced_.load(std::memory_order_acquire); }
  const std::shared_ptr<cache::Indexer>& store() const { return store_; }
  const cache::Reflector& reflector() const { return *reflector_; }

  std::chrono::milliseconds resync_check_period() const;
  /// The effective resync period of the listener.
  std::chrono::milliseconds resync_period(const Listener& listener) const;
  void collect(std::vector<metrics::Sample>& out) const;

 private:
  /// A listener that gets changes.
  struct Entry {
    std::shared_ptr<Listener> listener;
    Clock::TimePoint next_resync;
    bool resyncing = true;  // true if this listener is due for a resync
  };

  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

  cache::ReflectorOptions reflector_options(cache::ReflectorOptions options);
  void require_not_started(const char* what) const;  // under the mutex
  bool should_resync();
  void distribute(std::vector<cache::Notification> notifications);
  static Awaitable<void> run(std::shared_ptr<InformerCore> self);
  /// Occasionally removes ended listeners from all_. Requires the mutex; the caller destroys the
  /// result after releasing it.
  std::vector<std::shared_ptr<Listener>> prune();
  std::vector<std::shared_ptr<Listener>> all() const;
  /// On the strand: stops the distribution to all listeners.
  void close_listeners();

  const std::shared_ptr<EventLoop> loop_;
  const std::shared_ptr<HandlerPool> pool_;
  const Strand strand_;
  const std::shared_ptr<Clock> clock_;
  const api::GroupVersionResource resource_;
  const std::chrono::milliseconds default_resync_period_;
  const std::shared_ptr<cache::Indexer> store_;
  cache::Controller controller_;  // on the strand
  const std::shared_ptr<cache::Reflector> reflector_;
  std::vector<Entry> listeners_;  // changed on the strand and under mutex_
  bool closed_ = false;           // on the strand: no listeners are added any more

  std::stop_source stop_;
  std::atomic<bool> started_{false};
  std::atomic<bool> synced_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  // Guarded by mutex_.
  bool finished_ = false;  // the reflector has returned
  std::chrono::milliseconds resync_check_period_;
  unsigned handlers_ = 0;  // number of added handlers, for their names
  // All listeners that may still call their handlers, including those that receive no more changes,
  // and some ended ones that have not been pruned yet.
  std::vector<std::shared_ptr<Listener>> all_;
  std::size_t all_after_pruning_ = 0;
};

}  // namespace lookout::informer::detail
