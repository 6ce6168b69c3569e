#include "lookout/registry/registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "lookout/api/status.h"
#include "lookout/base/clock.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/enum_names.h"
#include "lookout/rest/error.h"
#include "registry/pod_state.h"
#include "registry/user_calls.h"

namespace lookout::registry {

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

namespace {

/// The pod has gone, and its announcement with it.
bool pod_has_gone(const std::exception& e) {
  if (detail::pod_was_replaced(e)) return true;
  const auto* answer = dynamic_cast<const api::StatusError*>(&e);
  return answer != nullptr && rest::is_object_missing(e) && answer->status().kind == "pods";
}

/// The server has refused the request, so it has changed nothing. (After 408 it may have.)
bool was_refused(const api::StatusError& e) {
  return e.code() >= 400 && e.code() < 500 && e.code() != 408;
}

}  // namespace

struct Registration::Core {
  Core(Registrar& to, RegistrationOptions chosen)
      : kept(to.shared()),
        registrar(kept ? *kept : to),
        options(std::move(chosen)),
        retry(first_retry()) {}

  milliseconds first_retry() const { return Clock::limited(options.retry_after); }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const bool ready = is_ready();
      const auto now = std::chrono::steady_clock::now();
      if (ready && now >= next_attempt) {
        announce(stop);
      } else if (!ready && announced) {
        withdraw(stop);
      } else if (!ready) {
        stop_failing();
        withdraw_earlier(stop);
      }
      sleep(stop);
    }
    {
      const std::lock_guard lock(mutex);
      ended = true;
    }
    changed.notify_all();
  }

  bool is_ready() {
    std::string why = "the program is not ready";
    try {
      if (!options.ready || options.ready()) return true;
    } catch (const std::exception& e) {
      why = fmt::format("the program is not ready: {}", e.what());
    } catch (...) {
    }
    const std::lock_guard lock(mutex);
    error = std::move(why);
    return false;
  }

  void announce(const std::stop_token& stop) {
    // From here on, the instance may be announced, even if the request fails.
    const bool before = std::exchange(announced, true);
    if (!attempt("register", [&] {
          rest::CallOptions call;
          call.stop = requests.get_token();
          call.timeout = options.timeout;
          try {
            registrar.register_instance(options.instance, std::move(call));
          } catch (const RegistrationError&) {
            announced = before;  // nothing was sent
            throw;
          } catch (const api::StatusError& e) {
            if (was_refused(e)) announced = before;
            throw;
          }
        })) {
      if (!stop.stop_requested()) set_state(State::kFailing);
      return;
    }
    registrations.fetch_add(1, std::memory_order_relaxed);
    nothing_earlier = true;
    next_attempt = options.refresh_every.count() > 0
                       ? std::chrono::steady_clock::now() + Clock::limited(options.refresh_every)
                       : SteadyTime::max();
    set_state(State::kRegistered);
  }

  /// The instance cannot be announced, and does not have to be: the program is not ready.
  void stop_failing() {
    {
      const std::lock_guard lock(mutex);
      if (state != State::kFailing) return;
      state = registrations > 0 ? State::kOut : State::kWaiting;
    }
    changed.notify_all();
  }

  /// The program was restarted in its pod, and is not ready: callers must not find it.
  void withdraw_earlier(const std::stop_token& stop) {
    if (nothing_earlier || std::chrono::steady_clock::now() < next_attempt) return;
    const auto request = [&] {
      rest::CallOptions call;
      call.stop = stop;
      call.timeout = options.timeout;
      try {
        registrar.withdraw_earlier(options.instance, std::move(call));
      } catch (const api::StatusError& e) {
        // Without the right to patch its pod, it cannot announce anything either.
        if (e.code() != 403 && !pod_has_gone(e)) throw;
      }
    };
    nothing_earlier = attempt("withdraw the earlier announcement of", request, current_error());
  }

  std::string current_error() const {
    const std::lock_guard lock(mutex);
    return error;
  }

  void withdraw(const std::stop_token& stop) {
    const std::string why = current_error();
    if (std::chrono::steady_clock::now() < next_withdrawal) return;
    if (!deregister(stop, options.timeout)) {
      next_withdrawal = next_attempt;
      return;
    }
    announced = false;
    next_attempt = {};
    set_state(State::kOut);
    const std::lock_guard lock(mutex);
    error = why;
  }

  bool deregister(const std::stop_token& stop, milliseconds time) {
    return attempt("deregister", [&] {
      rest::CallOptions call;
      call.stop = stop;
      call.timeout = std::max(time, milliseconds(1));
      try {
        registrar.deregister_instance(options.instance, std::move(call));
      } catch (const std::exception& e) {
        if (!pod_has_gone(e)) throw;
      }
    });
  }

  /// False if it fails; then `next_attempt` is set. After a success, `error` is `problem`.
  template <class Request>
  bool attempt(const char* what, const Request& request, std::string problem = {}) {
    std::string why;
    try {
      request();
      retry = first_retry();
      const std::lock_guard lock(mutex);
      error = std::move(problem);
      return true;
    } catch (const std::exception& e) {
      why = e.what();
    } catch (...) {
      why = "an exception that is not a std::exception";
    }
    failures.fetch_add(1, std::memory_order_relaxed);
    next_attempt = std::chrono::steady_clock::now() + retry;
    retry = std::min(2 * retry, Clock::limited(options.retry_after_max));
    why = fmt::format("cannot {} {}: {}", what, options.instance.name, why);
    {
      const std::lock_guard lock(mutex);
      error = why;
    }
    report(why);
    return false;
  }

  void report(const std::string& why) const {
    if (!options.on_error) {
      log::warn("registry: {}", why);
      return;
    }
    detail::call_user("on_error of the registration of " + options.instance.name,
                      [&] { options.on_error(why); });
  }

  void sleep(const std::stop_token& stop) {
    auto until = std::chrono::steady_clock::now() +
                 Clock::limited(std::max(options.check_every, milliseconds(1)));
    // The time of a retry may come first.
    if (next_attempt > std::chrono::steady_clock::now()) until = std::min(until, next_attempt);
    std::unique_lock lock(mutex);
    changed.wait_until(lock, stop, until, [&] { return std::exchange(check, false); });
  }

  void set_state(State next) {
    {
      const std::lock_guard lock(mutex);
      state = next;
    }
    changed.notify_all();
  }

  /// Ends the thread. Gives a running registration half of the time until `end`: if cancelled, the
  /// server might still execute it after the deregistration.
  void end_thread(SteadyTime end) {
    thread.request_stop();
    {
      const auto now = std::chrono::steady_clock::now();
      std::unique_lock lock(mutex);
      changed.wait_until(lock, now + (end - now) / 2, [&] { return ended; });
    }
    requests.request_stop();
    thread.join();
  }

  /// Runs on the thread of leave(), after the other thread has ended.
  bool take_back(SteadyTime end) {
    while (announced) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      if (deregister({}, left)) {
        announced = false;
      } else {
        std::this_thread::sleep_until(std::min(next_attempt, end));
      }
    }
    return true;
  }

  const std::shared_ptr<Registrar> kept;
  Registrar& registrar;
  const RegistrationOptions options;
  std::atomic<std::uint64_t> registrations{0};
  std::atomic<std::uint64_t> failures{0};

  // Used by the thread, and by leave() after it has ended.
  bool announced = false;
  bool nothing_earlier = false;  // the announcement of an earlier run is gone or replaced
  SteadyTime next_attempt = {};
  SteadyTime next_withdrawal = {};
  milliseconds retry;

  mutable std::mutex mutex;
  mutable std::condition_variable_any changed;
  // Guarded by mutex.
  State state = State::kWaiting;
  std::string error;
  bool check = false;
  bool ended = false;  // the thread has ended

  std::stop_source requests;  // stops registrations
  std::mutex leaving;
  std::optional<bool> taken_back;  // guarded by leaving
  std::jthread thread;             // last: joined first
};

Registration::Registration(Registrar& registrar, RegistrationOptions options)
    : core_(std::make_unique<Core>(registrar, std::move(options))) {
  core_->thread =
      std::jthread([core = core_.get()](const std::stop_token& stop) { core->run(stop); });
}

Registration::~Registration() { leave(); }

Registration::State Registration::state() const {
  const std::lock_guard lock(core_->mutex);
  return core_->state;
}

std::string Registration::last_error() const { return core_->current_error(); }

bool Registration::wait_registered(milliseconds time, std::stop_token stop) const {
  std::unique_lock lock(core_->mutex);
  core_->changed.wait_for(lock, std::move(stop), Clock::limited(time), [&] {
    return core_->state == State::kRegistered || core_->state == State::kLeft;
  });
  return core_->state == State::kRegistered;
}

void Registration::check_now() {
  {
    const std::lock_guard lock(core_->mutex);
    core_->check = true;
  }
  core_->changed.notify_all();
}

bool Registration::leave() {
  const std::lock_guard lock(core_->leaving);
  if (core_->taken_back) return *core_->taken_back;
  const auto end = std::chrono::steady_clock::now() + Clock::limited(core_->options.timeout);
  core_->end_thread(end);
  core_->retry = core_->first_retry();
  core_->taken_back = core_->take_back(end);
  core_->set_state(State::kLeft);
  return *core_->taken_back;
}

void Registration::collect(std::vector<metrics::Sample>& out) const {
  metrics::Collector all(out, {{"service", core_->options.instance.name}});
  all.gauge("lookout_registry_registered", "1 while this instance is announced.",
            state() == State::kRegistered ? 1 : 0);
  all.counter("lookout_registry_registrations_total", "Announcements, including repeated ones.",
              core_->registrations);
  all.counter("lookout_registry_registration_errors_total",
              "Failed requests to announce or withdraw this instance.", core_->failures);
}

const char* to_string(Registration::State state) {
  static constexpr auto kNames =
      base::enum_names<Registration::State>({{Registration::State::kWaiting, "waiting"},
                                             {Registration::State::kRegistered, "registered"},
                                             {Registration::State::kOut, "out"},
                                             {Registration::State::kFailing, "failing"},
                                             {Registration::State::kLeft, "left"}});
  return kNames.name_of(state, "").data();
}

}  // namespace lookout::registry
