// Watcher: follows the instances of a service.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/registry/instance_set.h"

namespace lookout::registry {

/// The result of waiting for the next set.
enum class NextOutcome {
  kInstances,  ///< there is a set
  kTimedOut,   ///< the deadline passed
  kCancelled,  ///< the caller requested a stop
  kStopped,    ///< the watcher was stopped: no more sets follow
  kClosed      ///< the registry was closed: no more sets follow
};

/// "instances", "timed out" ... for messages.
const char* to_string(NextOutcome outcome);

/// The next set, or the reason why there is none.
class NextResult {
 public:
  NextResult() : outcome_(NextOutcome::kStopped) {}
  explicit NextResult(InstanceSetPtr set) : set_(std::move(set)) {}
  explicit NextResult(NextOutcome outcome) : outcome_(outcome) {}

  NextOutcome outcome() const { return outcome_; }
  explicit operator bool() const { return set_ != nullptr; }
  const InstanceSet& operator*() const { return *set_; }
  const InstanceSet* operator->() const { return set_.get(); }
  const InstanceSetPtr& set() const { return set_; }

 private:
  NextOutcome outcome_ = NextOutcome::kInstances;
  InstanceSetPtr set_;
};

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

/// The interface of a backend whose services can be watched. Watcher documents the functions.
class WatcherBackend {
 public:
  virtual ~WatcherBackend() = default;
  virtual NextResult next(std::stop_token stop, Deadline deadline) = 0;
  virtual Awaitable<NextResult> async_next(std::stop_token stop, Deadline deadline) = 0;
  virtual InstanceSetPtr latest() const = 0;
  virtual void stop() = 0;
};

/// Follows one service. The first next() returns as soon as there is data, even if the set is
/// empty. Each later call waits until the set differs from the one that was returned last, and
/// returns the newest set. It coalesces: a slow watcher skips intermediate sets but always gets the
/// last one, and delays nothing else. An equal set is not returned again.
///
/// The destructor stops the watcher completely. A watcher may outlive its registry. next() and
/// async_next() are for one caller at a time; stop() may be called from any thread.
class Watcher {
 public:
  explicit Watcher(std::unique_ptr<WatcherBackend> backend) : backend_(std::move(backend)) {}
  Watcher(Watcher&&) noexcept = default;
  Watcher& operator=(Watcher&& other) noexcept {
    if (this != &other) {
      if (backend_) backend_->stop();
      backend_ = std::move(other.backend_);
    }
    return *this;
  }
  ~Watcher() {
    if (backend_) backend_->stop();
  }

  /// Waits for a new set. Throws InvalidArgument on the event loop.
  NextResult next(std::stop_token stop = {}, Deadline deadline = kNoDeadline) {
    return backend_->next(std::move(stop), deadline);
  }
  NextResult next_for(std::chrono::milliseconds time, std::stop_token stop = {}) {
    return next(std::move(stop), std::chrono::steady_clock::now() + Clock::limited(time));
  }

  /// The coroutine form, on any executor.
  Awaitable<NextResult> async_next(std::stop_token stop, Deadline deadline) {
    return backend_->async_next(std::move(stop), deadline);
  }
  Awaitable<NextResult> async_next(std::stop_token stop) {
    return async_next(std::move(stop), kNoDeadline);
  }
  Awaitable<NextResult> async_next() { return async_next(std::stop_token()); }

  /// The current set, without waiting and without consuming it; never null.
  InstanceSetPtr latest() const { return backend_->latest(); }

  /// Stops the watcher: a waiting next() and all later ones return kStopped.
  void stop() { backend_->stop(); }

 private:
  std::unique_ptr<WatcherBackend> backend_;
};

/// Called with the newest set whenever it differs from the last one; the rules of Watcher apply.
/// Calls come one at a time, on threads that may block: a blocked callback gets the newest set when
/// it returns and delays nothing else (Options::handlers). An exception is logged.
using SetCallback = std::function<void(const InstanceSetPtr& set)>;

/// Keeps a callback registered while it exists.
class Subscription {
 public:
  class Backend {
   public:
    virtual ~Backend() = default;
    virtual void cancel() = 0;
  };

  Subscription() = default;
  explicit Subscription(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept {
    if (this != &other) {
      cancel();
      backend_ = std::move(other.backend_);
    }
    return *this;
  }
  ~Subscription() { cancel(); }

  /// Ends the subscription. Waits for a running call, unless that call is the caller; afterwards
  /// the callback is not called again, and objects that it refers to may be destroyed.
  void cancel() {
    if (backend_) backend_->cancel();
  }

 private:
  std::unique_ptr<Backend> backend_;
};

}  // namespace lookout::registry
