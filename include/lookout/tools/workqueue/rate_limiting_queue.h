// RateLimitingQueue: a work queue that delays retries.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lookout/base/attributes.h"
#include "lookout/tools/workqueue/delaying_queue.h"
#include "lookout/tools/workqueue/rate_limiter.h"

namespace lookout::workqueue {

template <class T>
struct RateLimitingQueueOptions {
  /// Null: default_controller_rate_limiter().
  LOOKOUT_OPTION std::shared_ptr<RateLimiter<T>> rate_limiter = {};
  /// As in DelayingQueueOptions.
  LOOKOUT_OPTION std::string name = {};
  std::unique_ptr<Order<T>> order = {};
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
  LOOKOUT_OPTION std::shared_ptr<EventLoop> loop = {};
};

/// A DelayingQueue with a rate limiter (client-go's RateLimitingInterface):
///
///     if (sync(key)) queue.forget(key); else queue.add_rate_limited(key);
///
/// Call forget() when an item needs no more attempts, or its failure count is never freed.
template <class T, class Hash = std::hash<T>>
class RateLimitingQueue : public DelayingQueue<T, Hash> {
 public:
  explicit RateLimitingQueue(RateLimitingQueueOptions<T> options = {})
      : DelayingQueue<T, Hash>({.name = std::move(options.name),
                                .order = std::move(options.order),
                                .clock = std::move(options.clock),
                                .loop = std::move(options.loop)}),
        limiter_(options.rate_limiter
                     ? std::move(options.rate_limiter)
                     : default_controller_rate_limiter<T, Hash>(this->core()->clock())) {}

  /// Adds the item after the delay that the rate limiter returns.
  void add_rate_limited(T item, int priority = 0) {
    const Clock::Duration wait = limiter_->when(item);
    this->add_after(std::move(item), wait, priority);
  }
  /// Resets the item's failure count, because it succeeded or was given up. (It still needs
  /// done().)
  void forget(const T& item) { limiter_->forget(item); }
  /// The number of add_rate_limited() calls for the item since it was last forgotten.
  int num_requeues(const T& item) const { return limiter_->num_requeues(item); }

 private:
  const std::shared_ptr<RateLimiter<T>> limiter_;
};

}  // namespace lookout::workqueue
