#include "lookout/registry/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lookout/base/clock.h"
#include "lookout/base/enum_names.h"
#include "registry/balancer_state.h"

namespace lookout::registry::detail {
namespace {

using std::chrono::milliseconds;

/// How often a waiting call checks for an instance, at least.
constexpr milliseconds kLook{20};

const char* text_of_reason(CallError::Reason reason) {
  static constexpr auto kNames = base::enum_names<CallError::Reason>(
      {{CallError::Reason::kNoInstance, "there is no other instance"},
       {CallError::Reason::kAttempts, "no attempts are left"},
       {CallError::Reason::kDeadline, "the deadline has passed"},
       {CallError::Reason::kBudget, "the budget for retries is spent"},
       {CallError::Reason::kStopped, "the call was stopped"}});
  return kNames.name_of(reason, "").data();
}

/// Why no instance was picked, given the number of announced ones.
std::string text_of_none(std::size_t announced, const std::string& scheme) {
  if (announced == 0) return "no instance is announced";
  return fmt::format("none of the {} announced instances has {} that can be picked", announced,
                     scheme.empty() ? "an endpoint" : fmt::format("an endpoint {}://", scheme));
}

}  // namespace

CallRun::CallRun(const Balancer& balancer, const CallPolicy& policy)
    : balancer_(balancer),
      policy_(policy),
      deadline_(policy.deadline.count() > 0 ? now() + Clock::limited(policy.deadline)
                                            : TimePoint::max()) {
  balancer_.state_->calls.fetch_add(1, std::memory_order_relaxed);
  balancer_.state_->retries.call_begun();
}

CallRun::~CallRun() = default;

CallRun::TimePoint CallRun::now() const { return balancer_.state_->health->clock->now(); }

CallRun::Next CallRun::begin() {
  const auto over = [this](CallError::Reason reason) {
    reason_ = reason;
    return Next::kOver;
  };
  const TimePoint begun = now();
  if (stopped()) return over(CallError::Reason::kStopped);
  if (static_cast<int>(tries_.size()) >= policy_.attempts) {
    return over(CallError::Reason::kAttempts);
  }
  if (begun >= deadline_) return over(CallError::Reason::kDeadline);

  PickOptions options;
  options.exclude = tried_;
  options.scheme = policy_.scheme;
  options.hash = policy_.hash;
  Pick pick = balancer_.pick(options);
  if (!pick) {
    reason_ = CallError::Reason::kNoInstance;
    return tries_.empty() && policy_.wait_for_instance ? Next::kWait : Next::kOver;
  }
  if (!tries_.empty()) {
    if (!balancer_.state_->retries.take(nanos_of(begun))) {
      balancer_.state_->budget_spent.fetch_add(1, std::memory_order_relaxed);
      return over(CallError::Reason::kBudget);
    }
    balancer_.state_->calls_retried.fetch_add(1, std::memory_order_relaxed);
  }
  auto next = std::make_unique<Try>();
  tried_.push_back(pick);  // copies are not in flight
  next->pick = std::move(pick);
  next->begun = begun;
  next->forward.emplace(policy_.stop, Forward{next->stop});
  const int left = policy_.attempts - static_cast<int>(tries_.size());
  if (deadline_ != TimePoint::max()) {
    const auto rest = deadline_ - begun;
    next->until = begun + (policy_.per_try.count() > 0 ? rest : rest / left);
  }
  if (policy_.per_try.count() > 0)
    next->until = std::min(next->until, begun + Clock::limited(policy_.per_try));
  next->attempt.number = static_cast<int>(tries_.size()) + 1;
  next->attempt.stop = next->stop.get_token();
  next->attempt.instance = &*next->pick;
  if (next->until != TimePoint::max()) {
    const auto time = std::chrono::ceil<milliseconds>(next->until - begun);
    next->attempt.time = std::max(time, milliseconds(1));
  }
  tries_.push_back(std::move(next));
  return Next::kBegun;
}

void CallRun::learn(Try& attempt, Outcome outcome, const char* failure) {
  if (std::exchange(attempt.ended, true)) return;
  attempt.pick.report(outcome, now() - attempt.begun);
  if (failure == nullptr) return;
  if (!failures_.empty()) failures_ += "; ";
  const ServiceInstance& instance = *attempt.pick;
  failures_ += fmt::format("{} ({}): {}", attempt.pick.endpoint().text(), instance.key(), failure);
}

void CallRun::end(Try& attempt, Outcome outcome) {
  const char* failure = outcome == Outcome::kFailed     ? "failed"
                        : outcome == Outcome::kTimedOut ? "no answer in time"
                                                        : nullptr;
  learn(attempt, outcome, failure);
}

bool CallRun::end(Try& attempt, const std::exception_ptr& error) {
  last_error_ = error;
  // A stopped attempt is not an outcome of the instance.
  // A blocking function that observes its time limit fails at its end.
  const Outcome outcome = attempt.timed_out        ? Outcome::kTimedOut
                          : stopped()              ? Outcome::kIgnored
                          : now() >= attempt.until ? Outcome::kTimedOut
                                                   : Outcome::kFailed;
  try {
    std::rethrow_exception(error);
  } catch (const FinalError&) {
    learn(attempt, Outcome::kOk, nullptr);
    return true;
  } catch (const std::exception& e) {
    learn(attempt, outcome, e.what());
    return policy_.retry_if && !policy_.retry_if(e);
  } catch (...) {
    learn(attempt, outcome, "an exception that is not a std::exception");
  }
  return false;
}

void CallRun::stop_others(const Try* winner) {
  for (const auto& one : tries_) {
    if (one->ended) continue;
    one->stop.request_stop();
    // A backup request was faster. (This is not a timeout.)
    if (winner != nullptr && one->begun < winner->begun) {
      learn(*one, Outcome::kFailed, nullptr);
    } else {
      learn(*one, Outcome::kIgnored, nullptr);
    }
  }
}

void CallRun::wait() const {
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - now());
  const auto set = balancer_.load();
  balancer_.wait_for_change(*set, std::clamp(left, milliseconds(1), kLook), policy_.stop);
}

void CallRun::give_up() const {
  balancer_.state_->calls_failed.fetch_add(1, std::memory_order_relaxed);
}

void CallRun::fail() const {
  give_up();
  const std::string& service = balancer_.state_->service;
  if (tries_.empty()) {
    const auto set = balancer_.load();
    const Freshness fresh = set->freshness();
    throw CallError(
        reason_,
        fmt::format("call of {}: {}{}{}{}{}", service,
                    reason_ == CallError::Reason::kNoInstance ? "" : text_of_reason(reason_),
                    reason_ == CallError::Reason::kNoInstance ? "" : "; ",
                    text_of_none(set->size(), policy_.scheme), fresh.error.empty() ? "" : "; ",
                    fresh.error),
        last_error_);
  }
  throw CallError(reason_,
                  fmt::format("call of {}: {} of {} attempts failed, {}: {}", service,
                              tries_.size(), policy_.attempts, text_of_reason(reason_), failures_),
                  last_error_);
}

}  // namespace lookout::registry::detail
