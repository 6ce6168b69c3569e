// The requests of one controller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/controller/request.h"
#include "lookout/tools/workqueue/rate_limiter.h"

namespace lookout::controller {

/// The priority of events that a first list or a resync brings: behind all that happens live.
inline constexpr int kLowPriority = -100;

struct PriorityQueueOptions {
  /// The label of its metrics.
  LOOKOUT_OPTION std::string name = {};
  /// Where delayed requests wait.
  LOOKOUT_OPTION std::shared_ptr<EventLoop> loop = {};
  /// Null: the machine's.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
  /// Null: for each request 5 ms, doubling up to 1000 s.
  LOOKOUT_OPTION std::shared_ptr<workqueue::RateLimiter<Request>> rate_limiter = {};
  /// Of so many requests that are given out, one is the request that has waited longest, whatever
  /// its priority, so that a stream of urgent requests starves nobody. 0: never, as in
  /// controller-runtime.
  unsigned fair_share = 16;
};

/// Holds each request once; controller-runtime's priorityqueue. The highest priority comes first,
/// among equals the first that came.
///
/// A request that is added again keeps the higher priority and the earlier time, so an event
/// swallows a pending delay. A request that is being worked on is not given out before done().
///
/// All functions may be called from any thread.
class PriorityQueue : public metrics::Source {
 public:
  explicit PriorityQueue(PriorityQueueOptions options);
  /// Shuts down.
  ~PriorityQueue() override;
  PriorityQueue(const PriorityQueue&) = delete;
  PriorityQueue& operator=(const PriorityQueue&) = delete;

  struct Item {
    Request request;
    int priority = 0;
  };

  /// No effect after shut_down().
  void add(Request request, int priority = 0);
  void add_after(Request request, Clock::Duration delay, int priority = 0);
  /// When the rate limiter says so, but not before `at_least` has passed.
  void add_rate_limited(Request request, int priority = 0,
                        Clock::Duration at_least = Clock::Duration::zero());

  /// Waits for a request; nothing once the queue is shut down or a stop is requested.
  [[nodiscard]] std::optional<Item> get(std::stop_token stop = {});
  /// The same without waiting.
  [[nodiscard]] std::optional<Item> try_get();
  /// Called, without a lock, after a request has become ready. Set it before anything is added.
  void on_ready(std::function<void()> callback);

  /// Ends the work on a request, which may be given out again.
  void done(const Request& request);
  /// Ends the work, but holds the request back until release().
  void done_and_hold(const Request& request);
  void release(const Request& request);

  /// The request needs no more attempts: its failures are forgotten.
  void forget(const Request& request);
  int num_requeues(const Request& request) const;

  /// How many requests are ready.
  std::size_t size() const;
  /// How many are held back.
  std::size_t held() const;

  /// Drops what waits; get() then returns nothing.
  void shut_down();
  bool shutting_down() const;

  /// workqueue_depth (by priority) and its like, client-go's names, with the labels name and
  /// controller.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::controller
