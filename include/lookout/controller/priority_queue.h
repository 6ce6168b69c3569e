// PriorityQueue: the request queue of one controller.
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

/// The priority of events from a first list or a resync: below all live events.
inline constexpr int kLowPriority = -100;

struct PriorityQueueOptions {
  /// The `name` label of its metrics.
  LOOKOUT_OPTION std::string name = {};
  /// The event loop for the timers of delayed requests.
  LOOKOUT_OPTION std::shared_ptr<EventLoop> loop = {};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
  /// Null: 5 ms per request, doubling up to 1000 s.
  LOOKOUT_OPTION std::shared_ptr<workqueue::RateLimiter<Request>> rate_limiter = {};
  /// One in this many requests is the one that has waited longest, regardless of its priority, so
  /// that a stream of urgent requests starves no other. 0: never, as in controller-runtime.
  unsigned fair_share = 16;
  /// See ControllerOptions::debounce.
  Clock::Duration debounce = Clock::Duration::zero();
};

/// Holds each request once; controller-runtime's priorityqueue. Returns the highest priority first;
/// requests of equal priority in order of arrival.
///
/// A request that is added again keeps the higher priority and the earlier time, so an event
/// replaces a pending delay; with a debounce period, further events delay it. A request that is
/// being processed is not returned before done().
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
    Clock::TimePoint since{};  ///< when it was returned
  };
  /// A request that is being processed.
  struct Work {
    Request request;
    Clock::TimePoint since{};
  };

  /// Adds a request for an event: it is ready at once, or after the debounce period. Does nothing
  /// after shut_down().
  void add(const Request& request, int priority = 0);
  void add_after(const Request& request, Clock::Duration delay, int priority = 0);
  /// Adds the request after the rate limiter's delay, but not before `at_least` has passed.
  void add_rate_limited(const Request& request, int priority = 0,
                        Clock::Duration at_least = Clock::Duration::zero());

  /// Waits for a request; empty once the queue is shut down or a stop is requested.
  [[nodiscard]] std::optional<Item> get(std::stop_token stop = {});
  /// Like get(), without waiting.
  [[nodiscard]] std::optional<Item> try_get();
  /// Called, without a lock, when a request has become ready. Set it before anything is added.
  void on_ready(std::function<void()> callback);

  /// Ends the processing of a request, which may then be returned again.
  void done(const Request& request);
  /// The same, for a caller that already knows the time.
  void done(const Request& request, Clock::TimePoint now);
  /// Ends the processing, but holds the request back until release().
  void done_and_hold(const Request& request);
  void release(const Request& request);

  /// Resets the failure count of a request, because it succeeded or was given up.
  void forget(const Request& request);
  int num_requeues(const Request& request) const;

  /// The number of requests that are ready.
  std::size_t size() const;
  /// The number of requests that are held back.
  std::size_t held() const;
  /// The requests that are being processed, in the order in which they were returned.
  std::vector<Work> working() const;

  /// Drops waiting requests; get() then returns nothing.
  void shut_down();
  bool shutting_down() const;

  /// workqueue_depth (by priority) etc., with client-go's names and the labels name and controller.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::controller
