#include "lookout/tools/retry.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>

#include "lookout/api/error.h"
#include "lookout/api/status.h"

namespace lookout::retry {
namespace {

/// The pauses of one series of attempts.
class Pauses {
 public:
  explicit Pauses(const Policy& policy) : policy_(policy), next_(policy.pause) {
    if (policy.attempts < 1) throw InvalidArgument("a retry needs one attempt at least");
  }

  /// Call after a failure: returns true if there is another attempt.
  bool again() { return ++attempts_ < policy_.attempts; }

  Clock::Duration next() {
    const double part = std::uniform_real_distribution<>(0, policy_.jitter)(random_);
    const auto pause = std::chrono::duration_cast<Clock::Duration>(next_ * (1 + part));
    next_ *= policy_.factor;
    return pause;
  }

 private:
  const Policy policy_;
  std::chrono::duration<double, std::milli> next_;
  int attempts_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

void on_error(const Policy& policy, const Retriable& retriable,
              const std::function<void()>& attempt, std::stop_token stop) {
  Pauses pauses(policy);
  for (;;) {
    try {
      return attempt();
    } catch (const std::exception& e) {
      if (!retriable(e) || !pauses.again() || stop.stop_requested()) throw;
      std::mutex mutex;
      std::condition_variable_any changed;
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, stop, pauses.next(), [&] { return stop.stop_requested(); })) throw;
    }
  }
}

Awaitable<void> async_on_error(Policy policy, Retriable retriable,
                               std::function<Awaitable<void>()> attempt, std::stop_token stop,
                               std::shared_ptr<Clock> clock) {
  Pauses pauses(policy);
  for (;;) {
    std::exception_ptr error;
    try {
      co_await attempt();
      co_return;
    } catch (const std::exception& e) {
      if (!retriable(e) || !pauses.again()) throw;
      error = std::current_exception();
    }
    const bool slept = co_await clock->sleep(pauses.next(), stop);
    if (!slept) std::rethrow_exception(error);
  }
}

void on_conflict(const std::function<void()>& attempt, const Policy& policy, std::stop_token stop) {
  on_error(policy, api::is_conflict, attempt, std::move(stop));
}

Awaitable<void> async_on_conflict(std::function<Awaitable<void>()> attempt, Policy policy,
                                  std::stop_token stop, std::shared_ptr<Clock> clock) {
  return async_on_error(policy, api::is_conflict, std::move(attempt), std::move(stop),
                        std::move(clock));
}

}  // namespace lookout::retry
