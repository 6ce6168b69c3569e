#include "lookout/registry/app.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "lookout/base/clock.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/signals.h"
#include "lookout/registry/kratos/registry.h"

namespace lookout::registry {

using std::chrono::milliseconds;

struct App::Core {
  AppOptions options;
  std::shared_ptr<Registrar> registrar;
  std::stop_source stop;

  mutable std::mutex mutex;
  mutable std::condition_variable_any changed;
  // Guarded by mutex.
  std::shared_ptr<Registration> registration;
  bool ran = false;
  bool ended = false;  // serve has returned

  bool in_flight_threw = false;  // on the thread of end_in_peace()

  std::shared_ptr<Registration> current() const {
    const std::lock_guard lock(mutex);
    return registration;
  }
  RegistrationOptions registration_options() const;
  /// Waits for the stop, and shuts down. Runs on its own thread.
  void end_in_peace(std::stop_source serving);
  void drain();
  /// Calls options.in_flight. Empty if it throws; the first exception is logged.
  std::optional<std::size_t> in_flight();
  /// Waits. False if serve() has returned in the meantime.
  bool serves_for(milliseconds time);
};

RegistrationOptions App::Core::registration_options() const {
  RegistrationOptions out;
  out.instance.id = options.id;
  out.instance.name = options.name;
  out.instance.version = options.version;
  out.instance.metadata = options.metadata;
  out.instance.endpoints = options.endpoints;
  out.ready = options.ready;
  out.check_every = options.check_every;
  out.refresh_every = options.refresh_every;
  out.timeout = options.timeout;
  out.on_error = options.on_error;
  return out;
}

bool App::Core::serves_for(milliseconds time) {
  std::unique_lock lock(mutex);
  return !changed.wait_for(lock, Clock::limited(time), [&] { return ended; });
}

std::optional<std::size_t> App::Core::in_flight() {
  std::string why = "something that is not a std::exception";
  try {
    return options.in_flight();
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  if (!std::exchange(in_flight_threw, true))
    log::error("registry: in_flight of {} threw: {}; waiting for the drain time", options.name,
               why);
  return std::nullopt;
}

void App::Core::drain() {
  const auto begun = std::chrono::steady_clock::now();
  if (!serves_for(options.notice)) return;
  const auto end = begun + Clock::limited(std::max(options.drain, options.notice));
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    if (options.in_flight && in_flight() == std::size_t{0}) return;
    if (!serves_for(std::min(left, options.in_flight ? milliseconds(10) : left))) return;
  }
  if (!options.in_flight) return;
  if (const auto left = in_flight(); left && *left > 0) {
    log::warn("registry: {} exits with {} requests in flight, {} ms after deregistration",
              options.name, *left, options.drain.count());
  }
}

void App::Core::end_in_peace(std::stop_source serving) {
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, stop.get_token(), [&] { return ended; });
  }
  current()->leave();
  drain();
  serving.request_stop();
}

App::App(rest::Client client, AppOptions options) : core_(std::make_unique<Core>()) {
  core_->options = std::move(options);
  AppOptions& own = core_->options;
  core_->registrar = own.registrar;
  if (!core_->registrar) {
    const PodIdentity pod = PodIdentity::find(own.pod, client.config().default_namespace);
    if (own.id.empty()) own.id = pod.name;
    Options registry;
    registry.ns = pod.ns;
    registry.pod = pod;
    // Report an invalid endpoint immediately.
    static_cast<void>(kratos::registration_patch(core_->registration_options().instance));
    core_->registrar = std::make_shared<kratos::Registry>(std::move(client), std::move(registry));
  }
}

App::~App() = default;

void App::serve_until_stop(const std::function<void(std::stop_token)>& serve) {
  {
    const std::lock_guard lock(core_->mutex);
    if (std::exchange(core_->ran, true)) throw InvalidArgument("an App can run only once");
    core_->registration =
        std::make_shared<Registration>(*core_->registrar, core_->registration_options());
  }
  std::exception_ptr error;
  {
    std::stop_source serving;
    // (Joined before the callback is destroyed.)
    const std::stop_token signals = core_->options.signals ? stop_on_signals() : std::stop_token();
    const std::stop_callback on_signal(signals, [this] { core_->stop.request_stop(); });
    const std::jthread ending([this, serving] { core_->end_in_peace(serving); });
    try {
      serve(serving.get_token());
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(core_->mutex);
    core_->ended = true;
    core_->changed.notify_all();
  }
  if (error) std::rethrow_exception(error);
}

void App::stop() { core_->stop.request_stop(); }

Registration::State App::state() const {
  const auto registration = core_->current();
  return registration ? registration->state() : Registration::State::kWaiting;
}

std::string App::last_error() const {
  const auto registration = core_->current();
  return registration ? registration->last_error() : std::string();
}

bool App::wait_registered(milliseconds time) const {
  const auto end = std::chrono::steady_clock::now() + Clock::limited(time);
  while (std::chrono::steady_clock::now() < end) {
    if (const auto registration = core_->current()) {
      return registration->wait_registered(
          std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now()));
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

void App::collect(std::vector<metrics::Sample>& out) const {
  if (const auto registration = core_->current()) registration->collect(out);
}

}  // namespace lookout::registry
