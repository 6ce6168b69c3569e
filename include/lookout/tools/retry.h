// Trying again what another writer has got in the way of.
#pragma once

#include <chrono>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"

namespace lookout::retry {

/// How often, and with what pauses between: client-go's wait.Backoff.
struct Policy {
  int attempts = 5;
  std::chrono::milliseconds pause{10};
  /// Each pause is longer than the one before by this factor...
  double factor = 1.0;
  /// ...and by a random part of itself, at most this many times its length.
  double jitter = 0.1;
};

/// client-go's retry.DefaultRetry: for conflicts where little happens to the object.
inline constexpr Policy kDefaultRetry{};
/// client-go's retry.DefaultBackoff: for conflicts with writers who write often.
inline constexpr Policy kDefaultBackoff{4, std::chrono::milliseconds(10), 5.0, 0.1};

using Retriable = std::function<bool(const std::exception&)>;

/// Calls `attempt` until it does not throw, throws something that is not `retriable`, or has thrown
/// `policy.attempts` times; what it threw last comes out. Pauses in between, on the calling thread;
/// a stop ends the pause and lets the last exception out. client-go's retry.OnError.
void on_error(const Policy& policy, const Retriable& retriable,
              const std::function<void()>& attempt, std::stop_token stop = {});
/// The same for a coroutine, which must be repeatable; to be awaited on a strand.
Awaitable<void> async_on_error(Policy policy, Retriable retriable,
                               std::function<Awaitable<void>()> attempt,
                               std::stop_token stop = std::stop_token(),
                               std::shared_ptr<Clock> clock = Clock::real());

/// on_error() for api::is_conflict(): `attempt` has to read the object anew, change it, and write
/// it with the resourceVersion that it has read. client-go's retry.RetryOnConflict.
///
///     retry::on_conflict([&] {
///       auto change = deployments.get("web").edit();
///       change.spec().set_replicas(3);
///       deployments.update(change.build());
///     });
void on_conflict(const std::function<void()>& attempt, const Policy& policy = kDefaultRetry,
                 std::stop_token stop = {});
Awaitable<void> async_on_conflict(std::function<Awaitable<void>()> attempt,
                                  Policy policy = kDefaultRetry,
                                  std::stop_token stop = std::stop_token(),
                                  std::shared_ptr<Clock> clock = Clock::real());

}  // namespace lookout::retry
