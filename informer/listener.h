// One handler and its queue.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "lookout/informer/event_handler.h"
#include "lookout/informer/handler_pool.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/snapshot.h"

namespace lookout::informer::detail {

/// Delivers notifications to one handler, in order, one at a time, on the handler pool (client-go's
/// processorListener). The informer's strand pushes; nothing here ever makes it wait for a handler.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(EventHandler<api::Object> handler, std::shared_ptr<HandlerPool> pool);

  /// Queues notifications.
  void push(const std::vector<cache::Notification>& notifications);
  /// Queues an addition for every object of the snapshot: one entry, however many they are.
  void push_all(cache::Snapshot snapshot);
  /// Queues the mark that everything initial has been queued: when it is reached, the handler is in
  /// sync.
  void push_synced();

  /// Drops what is queued. No call begins afterwards.
  void close();
  /// Waits for the call that is running when it has been closed, unless this is that call.
  void wait_closed();

  bool has_synced() const { return synced_.load(std::memory_order_acquire); }
  /// Waits until the handler is in sync; false if it was stopped or closed before.
  bool wait_for_sync(std::stop_token stop) const;

  std::size_t backlog() const { return closed_ ? 0 : waiting_.load(std::memory_order_relaxed); }
  std::uint64_t exceptions() const { return exceptions_.load(std::memory_order_relaxed); }
  const std::string& name() const { return handler_.name; }

 private:
  struct Item {
    enum class Kind { kNotification, kSnapshot, kSynced };
    Kind kind = Kind::kNotification;
    cache::Notification notification;
    cache::Snapshot snapshot;
  };

  /// `fill` puts that many notifications into the queue.
  template <class Fill>
  void enqueue(std::size_t count, Fill fill);
  void drain();
  void deliver(const Item& item);
  void deliver(const cache::Notification& notification);
  template <class Call>
  void guarded(const char* what, Call call);

  const EventHandler<api::Object> handler_;
  const std::shared_ptr<HandlerPool> pool_;

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::vector<Item> queue_;
  bool scheduled_ = false;   // a task of the pool drains the queue, or will
  std::thread::id running_;  // the thread that is in a call

  std::atomic<std::size_t> waiting_{0};  // notifications that have not been delivered
  std::atomic<bool> closed_{false};
  std::atomic<bool> synced_{false};
  std::atomic<std::uint64_t> exceptions_{0};
};

}  // namespace lookout::informer::detail
