// Retries after failures, such as conflicts with another writer.
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

/// The number of attempts and the pauses between them: client-go's wait.Backoff.
struct Policy {
  int attempts = 5;
  std::chrono::milliseconds pause{10};
  /// Each pause is longer than the previous one by this factor.
  double factor = 1.0;
  /// The maximum jitter: a random extra of up to this fraction is added to each pause.
  double jitter = 0.1;
};

/// client-go's retry.DefaultRetry: for conflicts on objects that change rarely.
inline constexpr Policy kDefaultRetry{};
/// client-go's retry.DefaultBackoff: for conflicts with frequent writers.
inline constexpr Policy kDefaultBackoff{4, std::chrono::milliseconds(10), 5.0, 0.1};

using Retriable = std::function<bool(const std::exception&)>;

/// Calls `attempt` until it succeeds, throws an exception that is not `retriable`, or has failed
/// `policy.attempts` times; rethrows the last exception. Pauses on the calling thread between
/// attempts; a stop ends the pause and rethrows the last exception. client-go's retry.OnError.
void on_error(const Policy& policy, const Retriable& retriable,
              const std::function<void()>& attempt, std::stop_token stop = {});
/// Like on_error(), for a coroutine that can be repeated; await it on a strand.
Awaitable<void> async_on_error(Policy policy, Retriable retriable,
                               std::function<Awaitable<void>()> attempt,
                               std::stop_token stop = std::stop_token(),
                               std::shared_ptr<Clock> clock = Clock::real());

/// on_error() for api::is_conflict(): each `attempt` must read the object, change it, and write it
/// with the resourceVersion that it has read. client-go's retry.RetryOnConflict.
///
///     retry::on_conflict([&] {
///       const auto change = deployments.get("web").edit();
///       change.spec().set_replicas(3);
///       deployments.update(change);
///     });
void on_conflict(const std::function<void()>& attempt, const Policy& policy = kDefaultRetry,
                 std::stop_token stop = {});
Awaitable<void> async_on_conflict(std::function<Awaitable<void>()> attempt,
                                  Policy policy = kDefaultRetry,
                                  std::stop_token stop = std::stop_token(),
                                  std::shared_ptr<Clock> clock = Clock::real());

}  // namespace lookout::retry
