// One handler and its queue.
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
/// processorListener). The informer's strand pushes; nothing here ever makes it wait for a handler.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  /// `resync_period`: what the handler asks for.
  Listener(EventHandler<api::Object> handler, std::shared_ptr<HandlerPool> pool,
           std::shared_ptr<EventLoop> loop, std::chrono::milliseconds resync_period, bool coalesce);

  /// Notifications that came together. All listeners share them.
  using Batch = std::vector<cache::Notification>;

  /// Queues notifications.
  void push(const std::shared_ptr<const Batch>& notifications);
  void push(const Batch& notifications);
  /// Queues an addition for every object of the snapshot: one entry, however many they are.
  void push_all(cache::Snapshot snapshot);
  /// Queues the mark that everything initial has been queued: when it is reached, the handler is in
  /// sync.
  void push_synced();

  /// Takes nothing more; what is queued is delivered.
  void seal();
  /// Waits until everything has been delivered, unless this is called by what is delivered.
  void wait_delivered();
  /// Drops what is queued. No call begins afterwards.
  void close();
  /// Waits for the call that is running when it has been closed, unless this is that call. Then the
  /// handler, and what it refers to, is gone.
  void wait_closed();
  /// The informer has been stopped: ends waits for being in sync.
  void stop_waits();
  /// Whether the handler will not be called any more, and is gone.
  bool ended() const;
  /// Whether the calling thread is one of the event loop's.
  bool on_event_loop() const { return loop_->running_in_this_thread(); }

  bool has_synced() const { return synced_.load(std::memory_order_acquire); }
  /// Waits until the handler is in sync; false if it, or the informer, was stopped or closed
  /// before. Throws InvalidArgument if it would have to wait on the event loop or in the handler.
  bool wait_for_sync(std::stop_token stop) const;

  std::size_t backlog() const;
  std::uint64_t exceptions() const { return exceptions_.load(std::memory_order_relaxed); }
  const std::string& name() const { return name_; }
  std::chrono::milliseconds requested_resync_period() const { return resync_period_; }
  /// How long what came first had waited, each time the handler was given something.
  const metrics::Histogram& latency() const { return latency_; }
  /// How long the handler then took for all of it.
  const metrics::Histogram& duration() const { return duration_; }

 private:
  using Instant = std::chrono::steady_clock::time_point;
  struct Synced {};
  /// A part of the queue.
  using Item =
      std::variant<cache::Notification, std::shared_ptr<const Batch>, cache::Snapshot, Synced>;

  /// `fill` puts that many notifications into the queue.
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
  /// Lets go of the handler if it is not called any more. `lock` is of mutex_, and is not held
  /// while the handler goes; nobody who waits for the end gets past before that.
  void release_handler(std::unique_lock<std::mutex>& lock);
  template <class Done>
  void wait(Done done);

  const std::string name_;
  EventHandler<api::Object> handler_;  // empty once it is not called any more
  const std::shared_ptr<HandlerPool> pool_;
  const std::shared_ptr<EventLoop> loop_;

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  const std::chrono::milliseconds resync_period_;
  const bool coalesce_;
  // Guarded by mutex_. One of the two queues is in use, the second by those who coalesce.
  std::vector<Item> queue_;
  std::list<Item> latest_;
  std::unordered_map<std::string, std::list<Item>::iterator> places_;  // in latest_, by key
  Instant since_{};  // when the first of what is queued came
  bool sealed_ = false;
  bool stopped_ = false;     // the informer has been
  bool scheduled_ = false;   // a task of the pool drains the queue, or will
  std::thread::id running_;  // the thread that is in a call
  unsigned waits_ = 0;       // that call waits for a handler: itself, or another one

  // Notifications, and those of them that the handler has been given. Each has one writer at a
  // time: whoever has the mutex, whoever delivers.
  std::atomic<std::size_t> queued_{0};
  std::atomic<std::size_t> delivered_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> synced_{false};
  std::atomic<std::uint64_t> exceptions_{0};
  metrics::Histogram latency_;
  metrics::Histogram duration_;
};

}  // namespace lookout::informer::detail
