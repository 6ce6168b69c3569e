// The loops of Balancer::call(): on a thread, on several, in a coroutine.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "lookout/base/async_event.h"
#include "lookout/base/clock.h"
#include "lookout/base/detail/run_on.h"
#include "lookout/registry/call.h"

namespace lookout::registry::detail {

/// Stands for void.
struct Nothing {};

template <class Function>
decltype(auto) invoke_call(Function& function, const Endpoint& endpoint, const Attempt& attempt) {
  if constexpr (std::is_invocable_v<Function&, const Endpoint&, const Attempt&>) {
    return function(endpoint, attempt);
  } else {
    return function(endpoint);
  }
}

template <class Function>
using CallResult = decltype(invoke_call(std::declval<Function&>(), std::declval<const Endpoint&>(),
                                        std::declval<const Attempt&>()));

inline bool is_good(Outcome outcome) {
  return outcome == Outcome::kOk || outcome == Outcome::kIgnored;
}

// -------------------------------------------------------------------------- one at a time

template <class Result, class Function, class Judge>
Result plain_call(CallRun& run, Function& function, Judge& judge) {
  std::optional<Result> last;
  for (;;) {
    const CallRun::Next next = run.begin();
    if (next == CallRun::Next::kWait) {
      run.wait();
      continue;
    }
    if (next == CallRun::Next::kOver) {
      if (!last) run.fail();
      run.give_up();
      return *std::move(last);
    }
    last.reset();
    CallRun::Try& now = run.current();
    std::optional<Result> result;
    try {
      result.emplace(invoke_call(function, now.pick.endpoint(), now.attempt));
    } catch (...) {
      if (run.end(now, std::current_exception())) throw;
      continue;
    }
    const Outcome outcome = judge(std::as_const(*result));
    run.end(now, outcome);
    if (is_good(outcome)) return *std::move(result);
    last.emplace(*std::move(result));
  }
}

// ------------------------------------------------------------------------- several at a time

/// An attempt with a thread or a coroutine of its own.
template <class Result>
struct Slot {
  CallRun::Try* attempt = nullptr;
  std::optional<Result> result = {};
  std::exception_ptr error = {};
  bool done = false;
  bool looked_at = false;
};

template <class Result, class Function, class Judge>
Result hedged_call(CallRun& run, Function& function, Judge& judge) {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Slot<Result>> slots;
  std::vector<std::jthread> threads;  // destroyed before the objects they refer to
  const CallRun::Try* winner = nullptr;
  struct StopOthers {
    CallRun& run;
    const CallRun::Try*& winner;
    ~StopOthers() { run.stop_others(winner); }
  } const stop_others{run, winner};  // runs before the threads are joined

  std::optional<Result> last;
  std::size_t running = 0;
  for (;;) {
    auto hedge_at = CallRun::TimePoint::max();
    const CallRun::Next next = run.begin();
    if (next == CallRun::Next::kBegun) {
      Slot<Result>& slot = slots.emplace_back();
      slot.attempt = &run.current();
      ++running;
      threads.emplace_back([&function, &slot, &mutex, &changed] {
        std::optional<Result> result;
        std::exception_ptr error;
        try {
          result.emplace(
              invoke_call(function, slot.attempt->pick.endpoint(), slot.attempt->attempt));
        } catch (...) {
          error = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        if (result) slot.result.emplace(*std::move(result));
        slot.error = std::move(error);
        slot.done = true;
        changed.notify_all();
      });
      hedge_at = std::chrono::steady_clock::now() + Clock::limited(run.policy().hedge_after);
    } else if (running == 0) {
      if (next == CallRun::Next::kWait) {
        run.wait();
        continue;
      }
      if (!last) run.fail();
      run.give_up();
      return *std::move(last);
    }
    Slot<Result>* ended = nullptr;
    {
      std::unique_lock lock(mutex);
      const auto any = [&] {
        const auto it = std::ranges::find_if(
            slots, [](const auto& slot) { return slot.done && !slot.looked_at; });
        ended = it == slots.end() ? nullptr : &*it;
        return ended != nullptr;
      };
      if (hedge_at == CallRun::TimePoint::max()) {
        changed.wait(lock, any);
      } else if (!changed.wait_until(lock, hedge_at, any)) {
        continue;  // a backup request
      }
      ended->looked_at = true;
    }
    --running;
    last.reset();
    if (ended->error) {
      if (run.end(*ended->attempt, ended->error)) std::rethrow_exception(ended->error);
      continue;
    }
    const Outcome outcome = judge(std::as_const(*ended->result));
    run.end(*ended->attempt, outcome);
    if (is_good(outcome)) {
      winner = ended->attempt;
      return *std::move(ended->result);
    }
    last.emplace(*std::move(ended->result));
  }
}

template <class Function, class Judge>
auto blocking_call(const Balancer& balancer, const CallPolicy& policy, Function& function,
                   Judge& judge) {
  using Raw = CallResult<Function>;
  CallRun run(balancer, policy);
  if constexpr (std::is_void_v<Raw>) {
    auto wrapped = [&](const Endpoint& endpoint, const Attempt& attempt) {
      invoke_call(function, endpoint, attempt);
      return Nothing();
    };
    AlwaysOk ok;
    if (policy.hedge_after.count() > 0) {
      hedged_call<Nothing>(run, wrapped, ok);
    } else {
      plain_call<Nothing>(run, wrapped, ok);
    }
  } else {
    using Result = std::decay_t<Raw>;
    if (policy.hedge_after.count() > 0) return hedged_call<Result>(run, function, judge);
    return plain_call<Result>(run, function, judge);
  }
}
template <class Function>
auto blocking_call(const Balancer& balancer, const CallPolicy& policy, Function& function,
                   const AlwaysOk& judge) {
  return blocking_call<Function, const AlwaysOk>(balancer, policy, function, judge);
}

// ------------------------------------------------------------------------------- coroutines

template <class Result>
struct AsyncSlot : Slot<Result> {
  boost::asio::cancellation_signal cancel = {};
};

template <class Result, class Function>
Awaitable<void> run_attempt(Function& function, std::shared_ptr<AsyncSlot<Result>> slot) {
  try {
    const CallRun::Try& attempt = *slot->attempt;
    if constexpr (std::is_same_v<Result, Nothing>) {
      co_await invoke_call(function, attempt.pick.endpoint(), attempt.attempt);
      slot->result.emplace();
    } else {
      slot->result.emplace(
          co_await invoke_call(function, attempt.pick.endpoint(), attempt.attempt));
    }
  } catch (...) {
    slot->error = std::current_exception();
  }
}

/// Runs on its own strand, as do the attempts.
template <class Result, class Function, class Judge>
Awaitable<Result> call_on_strand(const Balancer& balancer, CallPolicy policy, Function function,
                                 Judge judge) {
  using SlotPtr = std::shared_ptr<AsyncSlot<Result>>;
  // The attempts refer to this frame, which therefore must live until all of them have ended.
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  const auto executor = co_await boost::asio::this_coro::executor;
  AsyncEvent event(executor);
  CallRun run(balancer, policy);
  const std::stop_callback on_stop(policy.stop, [event] { event.ring(); });

  std::vector<SlotPtr> slots;
  std::optional<Result> last;
  std::optional<Result> result;
  std::exception_ptr error;
  const CallRun::Try* winner = nullptr;
  auto hedge_at = CallRun::TimePoint::max();
  bool begins = true;
  bool over = false;
  for (;;) {
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    if (state.cancelled() != boost::asio::cancellation_type::none) {
      error = std::make_exception_ptr(
          boost::system::system_error(boost::asio::error::operation_aborted));
      break;
    }
    if (run.stopped()) {
      static_cast<void>(run.begin());  // reports the end
      break;
    }
    auto wake = CallRun::TimePoint::max();
    if (std::exchange(begins, false)) {
      const CallRun::Next next = run.begin();
      hedge_at = CallRun::TimePoint::max();
      if (next == CallRun::Next::kBegun) {
        auto slot = std::make_shared<AsyncSlot<Result>>();
        slot->attempt = &run.current();
        slots.push_back(slot);
        last.reset();
        boost::asio::co_spawn(executor, run_attempt<Result>(function, slot),
                              // Asio uses the signal until it calls this.
                              boost::asio::bind_cancellation_slot(
                                  slot->cancel.slot(), [slot, event](const std::exception_ptr&) {
                                    slot->done = true;
                                    event.ring_here();
                                  }));
        if (policy.hedge_after.count() > 0)
          hedge_at = run.now() + Clock::limited(policy.hedge_after);
      } else if (std::ranges::all_of(slots, &AsyncSlot<Result>::looked_at)) {
        over = next == CallRun::Next::kOver;
        begins = !over;
        wake = run.now() + std::chrono::milliseconds(10);
      }
    }
    if (over) break;
    wake = std::min(wake, hedge_at);
    for (const SlotPtr& slot : slots) {
      if (!slot->looked_at) wake = std::min(wake, slot->attempt->until);
    }
    // An attempt that has ended before this point rang when nothing waited.
    const bool has_ended = std::ranges::any_of(
        slots, [](const SlotPtr& slot) { return slot->done && !slot->looked_at; });
    if (!has_ended) co_await event.wait(wake);

    const auto now = run.now();
    // The judge and retry_if may throw: then the other attempts must end first, too.
    try {
      for (const SlotPtr& slot : slots) {
        if (slot->looked_at) continue;
        if (slot->done) {
          slot->looked_at = true;
          if (slot->error) {
            if (run.end(*slot->attempt, slot->error)) {
              error = slot->error;
              break;
            }
            begins = true;
            continue;
          }
          const Outcome outcome = judge(std::as_const(*slot->result));
          run.end(*slot->attempt, outcome);
          if (is_good(outcome)) {
            winner = slot->attempt;
            result.emplace(*std::move(slot->result));
            break;
          }
          last.emplace(*std::move(slot->result));
          begins = true;
        } else if (now >= slot->attempt->until) {
          slot->looked_at = true;
          slot->attempt->timed_out = true;
          run.end(*slot->attempt, Outcome::kTimedOut);
          slot->attempt->stop.request_stop();
          slot->cancel.emit(boost::asio::cancellation_type::terminal);
          begins = true;
        }
      }
    } catch (...) {
      error = std::current_exception();
    }
    if (result || error) break;
    if (now >= hedge_at) begins = true;
  }
  run.stop_others(winner);
  for (const SlotPtr& slot : slots) {
    if (!slot->done) slot->cancel.emit(boost::asio::cancellation_type::terminal);
  }
  while (!std::ranges::all_of(slots, &AsyncSlot<Result>::done)) co_await event.wait();
  if (error) std::rethrow_exception(error);
  if (result) co_return *std::move(result);
  if (!last) run.fail();
  run.give_up();
  co_return *std::move(last);
}

template <class Function>
using AwaitedResult = typename CallResult<Function>::value_type;

template <class Function, class Judge>
Awaitable<AwaitedResult<Function>> coroutine_call(const Balancer& balancer, CallPolicy policy,
                                                  Function function, Judge judge) {
  const auto executor = co_await boost::asio::this_coro::executor;
  const boost::asio::any_io_executor strand = boost::asio::make_strand(executor);
  if constexpr (std::is_void_v<AwaitedResult<Function>>) {
    co_await lookout::detail::run_on(
        strand,
        call_on_strand<Nothing>(balancer, std::move(policy), std::move(function), AlwaysOk()));
  } else {
    co_return co_await lookout::detail::run_on(
        strand, call_on_strand<AwaitedResult<Function>>(balancer, std::move(policy),
                                                        std::move(function), std::move(judge)));
  }
}

}  // namespace lookout::registry::detail
