// Listener: one handler and its queue.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "lookout/base/metrics.h"
#include "lookout/informer/event_handler.h"
#include "lookout/informer/handler_pool.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/snapshot.h"

namespace lookout::informer::detail {

/// Delivers notifications to one handler, in order, one at a time, on the handler pool (client-go's
/// processorListener). The informer's strand pushes and never waits for a handler.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  /// `resync_period`: the period that the handler requests.
  Listener(EventHandler<api::Object> handler, std::shared_ptr<HandlerPool> pool,
           std::shared_ptr<EventLoop> loop, std::chrono::milliseconds resync_period, bool coalesce);

  /// Notifications that arrived together. All listeners share them.
  using Batch = std::vector<cache::Notification>;

  /// Queues notifications.
  void push(const std::shared_ptr<const Batch>& notifications);
  void push(const Batch& notifications);
  /// Queues additions of all objects of the snapshot, as one entry.
  void push_all(cache::Snapshot snapshot);
  /// Queues a mark after the initial objects: when it is reached, the handler is synced.
  void push_synced();

  /// Accepts no more notifications; queued ones are still delivered.
  void seal();
  /// Waits until everything has been delivered, unless the handler itself calls it.
  void wait_delivered();
  /// Drops queued notifications. No call begins afterwards.
  void close();
  /// After close(): waits for a running call, unless that call is the caller. Afterwards the handler and
  /// its captures have been destroyed.
  void wait_closed();
  /// The informer has been stopped: ends waits for the sync.
  void stop_waits();
  /// True if the handler is no longer called and has been destroyed.
  bool ended() const;
  /// True if the calling thread belongs to the event loop.
  bool on_event_loop() const { return loop_->running_in_this_thread(); }

  bool has_synced() const { return synced_.load(std::memory_order_acquire); }
  /// Waits until the handler is synced; returns false if the handler or the informer ended before.
  /// Throws InvalidArgument if it would have to wait on the event loop or in the handler.
  bool wait_for_sync(std::stop_token stop) const;

  std::size_t backlog() const;
  std::uint64_t exceptions() const { return exceptions_.load(std::memory_order_relaxed); }
  const std::string& name() const { return name_; }
  std::chrono::milliseconds requested_resync_period() const { return resync_period_; }
  /// The wait of the first notification of each batch.
  const metrics::Histogram& latency() const { return latency_; }
  /// The time that the handler took for each batch.
  const metrics::Histogram& duration() const { return duration_; }

 private:
  using Instant = std::chrono::steady_clock::time_point;
  struct Synced {};
  /// An entry of the queue.
  using Item =
      std::variant<cache::Notification, std::shared_ptr<const Batch>, cache::Snapshot, Synced>;

  /// `fill` adds that many notifications to the queue.
  template <class Fill>
  void enqueue(std::size_t count, Fill fill);
  void coalesce(const cache::Notification& notification);  // under the mutex
  bool empty() const { return queue_.empty() && latest_.empty(); }
  void drain();
  void put(Item item);  // under the mutex
  void deliver_part(const cache::Notification& notification);
  void deliver_part(const std::shared_ptr<const Batch>& batch);
  void deliver_part(const cache::Snapshot& snapshot);
  void deliver_part(Synced);
  bool deliver_unless_closed(const cache::Notification& notification);
  void deliver(const cache::Notification& notification);
  template <class Call>
  void guarded(const char* what, Call call);
  /// Destroys the handler if it is no longer called. Releases `lock` (of mutex_) meanwhile; waits for the
  /// end return only afterwards.
  void release_handler(std::unique_lock<std::mutex>& lock);
  template <class Done>
  void wait(Done done);

  const std::string name_;
  EventHandler<api::Object> handler_;  // empty once it is no longer called
  const std::shared_ptr<HandlerPool> pool_;
  const std::shared_ptr<EventLoop> loop_;

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  const std::chrono::milliseconds resync_period_;
  const bool coalesce_;
  // Guarded by mutex_. One of the two queues is in use: latest_ with coalescing, otherwise queue_.
  std::vector<Item> queue_;
  std::list<Item> latest_;
  std::unordered_map<std::string, std::list<Item>::iterator> places_;  // in latest_, by key
  Instant since_{};  // the arrival of the first queued notification
  bool sealed_ = false;
  bool stopped_ = false;     // the informer has been stopped
  bool scheduled_ = false;   // a pool task drains the queue, or will soon
  std::thread::id running_;  // the thread that is calling the handler
  unsigned waits_ = 0;       // waits of that call for the end of a handler

  // Queued and delivered notifications. Each counter has one writer at a time: the holder of the
  // mutex, and the delivering thread.
  std::atomic<std::size_t> queued_{0};
  std::atomic<std::size_t> delivered_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> synced_{false};
  std::atomic<std::uint64_t> exceptions_{0};
  metrics::Histogram latency_;
  metrics::Histogram duration_;
};

}  // namespace lookout::informer::detail
