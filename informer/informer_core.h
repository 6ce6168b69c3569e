// The working parts of an informer, kept alive by what runs.
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
  /// Tells the listener nothing any more.
  void forget(const std::shared_ptr<Listener>& listener);
  void set_transform(cache::TransformFunc transform);
  void set_watch_error_handler(cache::WatchErrorHandler handler);
  void start();
  void stop();
  void shutdown();
  /// shutdown(); on the event loop, the part of it that does not wait.
  void end();
  bool wait_for_sync(std::stop_token stop) const;

  bool started() const { return started_; }
  bool stopped() const { return stop_.stop_requested(); }
  bool has_synced() const { return synced_.load(std::memory_order_acquire); }
  const std::shared_ptr<cache::Indexer>& store() const { return store_; }
  const cache::Reflector& reflector() const { return *reflector_; }

  std::chrono::milliseconds resync_check_period() const;
  /// The resync period that the listener really gets.
  std::chrono::milliseconds resync_period(const Listener& listener) const;
  void collect(std::vector<metrics::Sample>& out) const;

 private:
  /// A listener that gets changes.
  struct Entry {
    std::shared_ptr<Listener> listener;
    Clock::TimePoint next_resync;
    bool resyncing = true;  // updates to the same version are for this one, too
  };

  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

  cache::ReflectorOptions reflector_options(cache::ReflectorOptions options);
  void require_not_started(const char* what) const;  // under the mutex
  bool should_resync();
  void distribute(std::vector<cache::Notification> notifications);
  static Awaitable<void> run(std::shared_ptr<InformerCore> self);
  /// Takes out of all_ what has ended, now and then. Under the mutex; what it returns is to go when
  /// that is free.
  std::vector<std::shared_ptr<Listener>> prune();
  std::vector<std::shared_ptr<Listener>> all() const;
  /// On the strand: no listener gets anything after this.
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
  bool closed_ = false;           // on the strand: it takes no more of them

  std::stop_source stop_;
  std::atomic<bool> started_{false};
  std::atomic<bool> synced_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  // Guarded by mutex_.
  bool finished_ = false;  // the reflector has returned
  std::chrono::milliseconds resync_check_period_;
  unsigned handlers_ = 0;  // that have been added, for their names
  // All listeners that may still call their handlers, also those that get no more changes;
  // and some that do not call them any more.
  std::vector<std::shared_ptr<Listener>> all_;
  std::size_t all_after_pruning_ = 0;
};

}  // namespace lookout::informer::detail
