// BoundedQueue: a queue between two coroutines with back pressure.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lookout/base/async_event.h"

namespace lookout::apiserver::storage::etcd3 {

/// For one producer and one consumer, each a coroutine on its own executor. cancel() is thread-safe. The
/// queue is full with `capacity` items, or with fewer whose weight reaches `max_weight`.
template <class T>
class BoundedQueue {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  BoundedQueue(boost::asio::any_io_executor producer, boost::asio::any_io_executor consumer,
               std::size_t capacity, std::size_t max_weight)
      : capacity_(capacity),
        max_weight_(max_weight),
        not_full_(std::move(producer)),
        not_empty_(std::move(consumer)) {}

  /// For the producer: waits for room. False if the queue has been cancelled.
  Awaitable<bool> push(T item, std::size_t weight) {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (cancelled_) co_return false;
        if (!full_locked()) {
          // The consumer waits only while the queue is empty.
          if (items_.empty() && not_empty_) not_empty_->ring_next();
          items_.emplace_back(std::move(item), weight);
          weight_ += weight;
          co_return true;
        }
      }
      co_await not_full_.wait();
    }
  }

  /// For the producer: there are no more items.
  void finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    ring_consumer();
  }

  /// For the consumer: replaces the content of `out` by up to `max` items; none if `until` comes first.
  /// False if the queue is finished and empty, or was cancelled.
  Awaitable<bool> pop(std::vector<T>& out, std::size_t max, TimePoint until) {
    out.clear();
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (cancelled_) co_return false;
        const bool was_full = full_locked();
        for (; !items_.empty() && out.size() < max; items_.pop_front()) {
          weight_ -= items_.front().second;
          out.push_back(std::move(items_.front().first));
        }
        if (!out.empty()) {
          if (was_full) not_full_.ring_next();
          co_return true;
        }
        if (finished_) co_return false;
      }
      if (std::chrono::steady_clock::now() >= until) co_return true;
      co_await not_empty_->wait(until);
    }
  }

  /// Ends the waits of both sides, and drops all items.
  void cancel() {
    const std::lock_guard lock(mutex_);
    cancel_locked();
  }

  /// Like cancel(), for a consumer whose executor may end before the queue.
  void leave() {
    const std::lock_guard lock(mutex_);
    cancel_locked();
    not_empty_.reset();
  }

  bool full() const {
    const std::lock_guard lock(mutex_);
    return full_locked();
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return items_.empty();
  }

 private:
  void cancel_locked() {
    cancelled_ = true;
    items_.clear();
    weight_ = 0;
    not_full_.ring();
    ring_consumer();
  }
  void ring_consumer() {
    if (not_empty_) not_empty_->ring();
  }
  bool full_locked() const { return items_.size() >= capacity_ || weight_ >= max_weight_; }

  const std::size_t capacity_;
  const std::size_t max_weight_;
  mutable std::mutex mutex_;
  std::deque<std::pair<T, std::size_t>> items_;
  std::size_t weight_ = 0;
  bool finished_ = false;
  bool cancelled_ = false;
  AsyncEvent not_full_;
  std::optional<AsyncEvent> not_empty_;
};

}  // namespace lookout::apiserver::storage::etcd3
