// Balancer::call(): retries on other instances, time limits, backup requests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/base/attributes.h"
#include "lookout/base/event_loop.h"
#include "lookout/registry/endpoint.h"
#include "lookout/registry/pick.h"
#include "lookout/registry/policy.h"

namespace lookout::registry {

class Balancer;

/// The rules of Balancer::call().
///
/// The function takes the endpoint, `fn(const Endpoint&)`, and optionally the attempt, `fn(const
/// Endpoint&, const Attempt&)`. It fails by throwing, or by returning a result that the judge
/// rejects. The call then tries another instance, never one that it has tried before, while
/// attempts, time, instances and the retry budget last. Therefore use it only for requests that may
/// be sent twice. The result of each attempt is reported to the balancer.
struct CallPolicy {
  /// The maximum number of instances to call, including backup requests.
  int attempts = 3;
  /// The limit for all attempts together. 0: no limit.
  std::chrono::milliseconds deadline{10'000};
  /// The limit for each attempt; 0: the remaining time is divided equally among the remaining
  /// attempts. A coroutine is cancelled when its time is over. A blocking function is not: it must
  /// pass Attempt::time to the functions that it calls (a socket, libcurl).
  std::chrono::milliseconds per_try{0};
  /// Only endpoints with this scheme; empty: any.
  LOOKOUT_OPTION std::string scheme = {};
  /// If an attempt takes longer than this, another instance is called as well, and the first good
  /// result counts. The call then requests Attempt::stop of the other attempts and waits for them.
  /// With a blocking function, each attempt has its own thread. 0: never.
  std::chrono::milliseconds hedge_after{0};
  /// For the consistent hash policy; hash_of() computes it from text.
  std::optional<std::uint64_t> hash = {};
  /// True: if there is no instance yet, for example at the start of the program, the call waits for
  /// one, until the deadline if there is one, or until `stop`.
  bool wait_for_instance = true;
  /// Ends the call: no further attempt starts, and running attempts are asked to stop.
  LOOKOUT_OPTION std::stop_token stop = {};
  /// Returns true if a call that failed with this exception may be retried; otherwise the call ends
  /// with the exception. Empty: always.
  LOOKOUT_OPTION std::function<bool(const std::exception&)> retry_if = {};
};

/// One attempt of a call.
struct Attempt {
  int number = 1;  ///< 1, 2, ...
  /// The time limit of the attempt. std::chrono::milliseconds::max(): no limit.
  std::chrono::milliseconds time = std::chrono::milliseconds::max();
  /// Requested when the result is no longer needed.
  LOOKOUT_OPTION std::stop_token stop = {};
  const ServiceInstance* instance = nullptr;  ///< never null
};

/// The function of a call throws this if the request itself is invalid or was rejected.
/// The call ends with this exception, and the instance counts as successful.
class FinalError : public Error {
 public:
  using Error::Error;
};

/// No instance answered the call. what() names the instances and the last failure.
class CallError : public Error {
 public:
  enum class Reason {
    kNoInstance,  ///< there is no instance (left)
    kAttempts,    ///< all attempts failed
    kDeadline,    ///< the deadline passed
    kBudget,      ///< too many calls fail: the retry budget is spent
    kStopped      ///< a stop was requested
  };
  CallError(Reason reason, const std::string& message, std::exception_ptr cause)
      : Error(message), reason_(reason), cause_(std::move(cause)) {}
  Reason reason() const { return reason_; }
  /// The exception of the last attempt; null if it threw none.
  const std::exception_ptr& cause() const { return cause_; }

 private:
  Reason reason_;
  std::exception_ptr cause_;
};

namespace detail {

/// Accepts every result.
struct AlwaysOk {
  template <class Result>
  Outcome operator()(const Result&) const {
    return Outcome::kOk;
  }
};

/// The state of one call: decides which attempt starts next, and how the call ends. For one thread
/// at a time; the attempts may run on other threads.
class CallRun {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Forwards a stop of the call to an attempt.
  struct Forward {
    std::stop_source to;
    void operator()() const { std::stop_source(to).request_stop(); }
  };
  /// An attempt that has started.
  struct Try {
    Pick pick;
    Attempt attempt;
    std::stop_source stop;
    std::optional<std::stop_callback<Forward>> forward;
    TimePoint begun;
    TimePoint until = TimePoint::max();
    bool timed_out = false;
    bool ended = false;
  };

  CallRun(const Balancer& balancer, const CallPolicy& policy);
  ~CallRun();
  CallRun(const CallRun&) = delete;
  CallRun& operator=(const CallRun&) = delete;

  enum class Next {
    kBegun,  ///< `current()` may run
    kWait,   ///< there is no instance yet: try again soon
    kOver    ///< no further attempt
  };
  /// Starts the next attempt. (The first one may wait for an instance.)
  Next begin();
  /// The attempt that was started last. The reference stays valid as long as this object.
  Try& current() { return *tries_.back(); }
  /// An attempt has ended with a result.
  void end(Try& attempt, Outcome outcome);
  /// An attempt has ended with an exception. Returns true if the call ends with that exception.
  bool end(Try& attempt, const std::exception_ptr& error);
  /// The call has ended: asks all running attempts to stop. Attempts that started before the
  /// successful one (`winner`, or null) were too slow.
  void stop_others(const Try* winner);
  bool stopped() const { return policy_.stop.stop_requested(); }
  const CallPolicy& policy() const { return policy_; }
  TimePoint deadline() const { return deadline_; }
  /// Waits briefly for an instance, on this thread.
  void wait() const;
  [[noreturn]] void fail() const;
  /// Counts the call as failed: its last result was judged a failure.
  void give_up() const;
  TimePoint now() const;

 private:
  void learn(Try& attempt, Outcome outcome, const char* failure);

  const Balancer& balancer_;
  const CallPolicy policy_;
  const TimePoint deadline_;
  std::vector<std::unique_ptr<Try>> tries_;
  std::vector<Pick> tried_;
  std::exception_ptr last_error_;
  std::string failures_;  // of the attempts, for the message
  CallError::Reason reason_ = CallError::Reason::kNoInstance;
};

}  // namespace detail
}  // namespace lookout::registry
