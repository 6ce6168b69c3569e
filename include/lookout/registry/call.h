// Calls that arrive: retries on other instances, time limits, backup requests.
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

/// How Balancer::call() calls.
///
/// The function gets the endpoint, `fn(const Endpoint&)`, or the attempt as well,
/// `fn(const Endpoint&, const Attempt&)`. It fails by an exception, or by a result that the judge
/// takes for a failure. Then another instance is called, one that this call has not tried, as long
/// as there are attempts, time, instances and budget. (So use it for requests that may be made
/// twice.) The results of attempts are reported to the balancer.
struct CallPolicy {
  /// At most so many instances are called, backup requests included.
  int attempts = 3;
  /// For all of it. 0: no limit.
  std::chrono::milliseconds deadline{10'000};
  /// For each attempt; 0: what is left of the deadline, in equal parts for the attempts that are
  /// left. A coroutine is cancelled when its time is over. A function that blocks is not: it has to
  /// give Attempt::time to what it calls (a socket, libcurl).
  std::chrono::milliseconds per_try{0};
  /// Only endpoints of this scheme; empty: of any.
  LOOKOUT_OPTION std::string scheme = {};
  /// When an attempt has not ended after this time, another instance is called as well, and the
  /// first good result counts; the others are asked to stop (Attempt::stop), and waited for. With a
  /// function that blocks, each attempt then has a thread. 0: never.
  std::chrono::milliseconds hedge_after{0};
  /// For the policy that hashes; hash_of() makes one of text.
  std::optional<std::uint64_t> hash = {};
  /// Whether a call waits (until the deadline, if there is one) for the first instance when there
  /// is none, as at the start of a program.
  bool wait_for_instance = true;
  /// Ends the call: no further attempt begins, and attempts that run are asked to stop.
  LOOKOUT_OPTION std::stop_token stop = {};
  /// Whether a call that failed with this exception may be made again; if not, it ends with that
  /// exception. Empty: always.
  LOOKOUT_OPTION std::function<bool(const std::exception&)> retry_if = {};
};

/// One attempt of a call.
struct Attempt {
  int number = 1;  ///< 1, 2, ...
  /// The time that it has. std::chrono::milliseconds::max(): no limit.
  std::chrono::milliseconds time = std::chrono::milliseconds::max();
  /// Stopped when the result is not needed any more.
  LOOKOUT_OPTION std::stop_token stop = {};
  const ServiceInstance* instance = nullptr;  ///< never null
};

/// Thrown by the function of a call: the request itself is wrong, or was answered by a no. The call
/// ends with this exception, and the instance has done well.
class FinalError : public Error {
 public:
  using Error::Error;
};

/// A call found no instance that answered. what() names the instances and the last failure.
class CallError : public Error {
 public:
  enum class Reason {
    kNoInstance,  ///< there is none (left)
    kAttempts,    ///< all attempts failed
    kDeadline,    ///< the time is over
    kBudget,      ///< too many calls fail: the budget for retries is spent
    kStopped      ///< the stop token was stopped
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

/// Takes every result for a good one.
struct AlwaysOk {
  template <class Result>
  Outcome operator()(const Result&) const {
    return Outcome::kOk;
  }
};

/// One call: which attempt may begin, and what becomes of it. For one thread at a time; attempts
/// may run on others.
class CallRun {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Hands a stop of the call on to an attempt.
  struct Forward {
    std::stop_source to;
    void operator()() const { std::stop_source(to).request_stop(); }
  };
  /// An attempt that has begun.
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
    kWait,   ///< there is no instance yet: look again soon
    kOver    ///< no further attempt
  };
  /// Begins the next attempt. (The first may wait for an instance.)
  Next begin();
  /// The attempt that was begun last. Stays where it is as long as this lives.
  Try& current() { return *tries_.back(); }
  /// An attempt has ended well or not, by a result.
  void end(Try& attempt, Outcome outcome);
  /// It has ended by an exception. True if the call ends with that exception.
  bool end(Try& attempt, const std::exception_ptr& error);
  /// The call has its result, or none: asks all attempts that run to stop. Those that began before
  /// the one that succeeded (`winner`, or null) were too slow.
  void stop_others(const Try* winner);
  bool stopped() const { return policy_.stop.stop_requested(); }
  const CallPolicy& policy() const { return policy_; }
  TimePoint deadline() const { return deadline_; }
  /// Waits a moment for an instance, on this thread.
  void wait() const;
  [[noreturn]] void fail() const;
  /// Counts the call as failed, whose result was judged a failure.
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
