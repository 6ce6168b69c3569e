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

#include "lookout/informer/event_handler.h"
#include "lookout/informer/handler_pool.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/snapshot.h"
#include "lookout/tools/metrics.h"

namespace lookout::informer::detail {

/// Delivers notifications to one handler, in order, one at a time, on the handler pool (client-go's
/// processorListener). The informer's strand pushes; nothing here ever makes it wait for a handler.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  /// `resync_period`: what the handler asks for.
  Listener(EventHandler<api::Object> handler, std::shared_ptr<HandlerPool> pool,
           std::chrono::milliseconds resync_period, bool coalesce);

  /// What came together; shared by all who are told of it.
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
  /// Waits for the call that is running when it has been closed, unless this is that call.
  void wait_closed();

  bool has_synced() const { return synced_.load(std::memory_order_acquire); }
  /// Waits until the handler is in sync; false if it was stopped or closed before.
  bool wait_for_sync(std::stop_token stop) const;

  std::size_t backlog() const;
  std::uint64_t exceptions() const { return exceptions_.load(std::memory_order_relaxed); }
  const std::string& name() const { return handler_.name; }
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

  const EventHandler<api::Object> handler_;
  const std::shared_ptr<HandlerPool> pool_;

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
  bool scheduled_ = false;   // a task of the pool drains the queue, or will
  std::thread::id running_;  // the thread that is in a call

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
