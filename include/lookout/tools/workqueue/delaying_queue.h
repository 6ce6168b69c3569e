// DelayingQueue: a work queue whose items can be added with a delay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/base/alarm.h"
#include "lookout/base/attributes.h"
#include "lookout/base/event_loop.h"
#include "lookout/tools/workqueue/queue.h"

namespace lookout::workqueue {

template <class T>
struct DelayingQueueOptions {
  /// As in QueueOptions.
  LOOKOUT_OPTION std::string name = {};
  std::unique_ptr<Order<T>> order = {};
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
  /// The event loop for the timers: rest::Client::shared_loop() in most programs. Null: a thread of
  /// its own.
  LOOKOUT_OPTION std::shared_ptr<EventLoop> loop = {};
};

namespace detail {

/// The items that are not due yet.
template <class T, class Hash>
class DelayCore : public std::enable_shared_from_this<DelayCore<T, Hash>> {
 public:
  DelayCore(std::shared_ptr<QueueCore<T, Hash>> queue, std::shared_ptr<EventLoop> loop)
      : queue_(std::move(queue)), loop_(loop ? std::move(loop) : std::make_shared<EventLoop>(1u)) {}

  void begin() {
    alarm_ = std::make_unique<Alarm>(loop_, queue_->clock(), [weak = this->weak_from_this()] {
      if (const auto self = weak.lock()) self->release();
    });
  }

  void add_after(T item, Clock::Duration delay, int priority) {
    if (queue_->shutting_down()) return;
    queue_->note_retry();
    if (delay <= Clock::Duration::zero()) return queue_->add(std::move(item), priority);
    const auto time = end_of_delay(queue_->clock()->now(), delay);
    {
      const std::lock_guard lock(mutex_);
      const auto at = places_.find(item);
      if (at == places_.end()) {
        const Place place{time, next_++};
        places_.emplace(item, place);
        waiting_.emplace(place, Entry{std::move(item), priority});
      } else {
        auto node = waiting_.extract(at->second);
        node.mapped().priority = std::max(node.mapped().priority, priority);
        if (time < at->second.first) node.key() = at->second = {time, next_++};
        waiting_.insert(std::move(node));
      }
    }
    alarm_->set(time);
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    places_.clear();
  }

 private:
  using Place = std::pair<Clock::TimePoint, std::uint64_t>;  // when; arrival
  struct Entry {
    T item;
    int priority;
  };

  void release() {
    const auto now = queue_->clock()->now();
    std::vector<Entry> due;
    std::optional<Clock::TimePoint> next;
    {
      const std::lock_guard lock(mutex_);
      while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
        auto node = waiting_.extract(waiting_.begin());
        places_.erase(node.mapped().item);
        due.push_back(std::move(node.mapped()));
      }
      if (!waiting_.empty()) next = waiting_.begin()->first.first;
    }
    // First, because a custom Order may throw.
    if (next) alarm_->set(*next);
    std::exception_ptr failed;
    for (Entry& entry : due) {
      try {
        queue_->add(std::move(entry.item), entry.priority);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    if (failed) std::rethrow_exception(failed);
  }

  const std::shared_ptr<QueueCore<T, Hash>> queue_;
  const std::shared_ptr<EventLoop> loop_;
  std::unique_ptr<Alarm> alarm_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<Place, Entry> waiting_;
  std::unordered_map<T, Place, Hash> places_;
  std::uint64_t next_ = 0;
};

}  // namespace detail

/// A Queue with delayed additions: retries of failed items without spinning (client-go's
/// DelayingInterface).
template <class T, class Hash = std::hash<T>>
class DelayingQueue : public Queue<T, Hash> {
 public:
  explicit DelayingQueue(DelayingQueueOptions<T> options = {})
      : Queue<T, Hash>(QueueOptions<T>{.name = std::move(options.name),
                                       .order = std::move(options.order),
                                       .clock = std::move(options.clock)}),
        delay_(
            std::make_shared<detail::DelayCore<T, Hash>>(this->core(), std::move(options.loop))) {
    delay_->begin();
  }

  /// Adds the item after the delay; immediately if it is not positive. If the item is already
  /// delayed, the earlier time wins.
  void add_after(T item, Clock::Duration delay, int priority = 0) {
    delay_->add_after(std::move(item), delay, priority);
  }

  /// Drops items that are not due yet.
  void shut_down() {
    Queue<T, Hash>::shut_down();
    delay_->clear();
  }
  bool shut_down_with_drain(std::stop_token stop = {}) {
    const bool drained = Queue<T, Hash>::shut_down_with_drain(std::move(stop));
    delay_->clear();
    return drained;
  }

 private:
  const std::shared_ptr<detail::DelayCore<T, Hash>> delay_;
};

}  // namespace lookout::workqueue
