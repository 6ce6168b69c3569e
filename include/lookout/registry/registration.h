// Registration: keeps an instance announced.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "lookout/base/attributes.h"
#include "lookout/base/metrics.h"
#include "lookout/registry/registry.h"
#include "lookout/registry/service_instance.h"

namespace lookout::registry {

struct RegistrationOptions {
  LOOKOUT_OPTION ServiceInstance instance = {};
  /// Returns true if the program can serve. Called every `check_every`, on a thread of the
  /// registration; must return soon. An exception counts as false. While it is false, the instance
  /// is not announced. Empty: always true.
  LOOKOUT_OPTION std::function<bool()> ready = {};
  std::chrono::milliseconds check_every{1'000};
  /// How often the announcement is repeated in case somebody removed it. (The server writes nothing
  /// if nothing changes, and no further rights are needed.) 0: never.
  std::chrono::milliseconds refresh_every{15'000};
  /// The limit of each request, and of the deregistration including retries (kratos also uses 10
  /// s).
  std::chrono::milliseconds timeout{10'000};
  /// The first wait after a failure; it doubles up to a limit.
  std::chrono::milliseconds retry_after{200};
  std::chrono::milliseconds retry_after_max{10'000};
  /// Called for each failure, on the thread of the registration. The default logs a warning.
  LOOKOUT_OPTION std::function<void(const std::string& reason)> on_error = {};
};

/// Keeps an instance announced: registers it when the program is ready, retries after failures,
/// deregisters it while the program is not ready, and deregisters it in the end.
class Registration : public metrics::Source {
 public:
  enum class State {
    kWaiting,     ///< never announced, and the program is not ready
    kRegistered,  ///< announced
    kOut,         ///< it was announced, but the program is not ready now
    kFailing,     ///< it is ready but cannot be announced: see last_error()
    kLeft         ///< leave() was called
  };

  /// `registrar` must outlive this object, unless it has a part that may (Registrar::shared()), as
  /// a kratos::Registry has. Returns immediately; a thread does the work.
  Registration(Registrar& registrar, RegistrationOptions options);
  /// Calls leave().
  ~Registration() override;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  State state() const;
  /// Why the last request failed or the program is not ready; empty if there is no problem.
  std::string last_error() const;
  /// Waits until the instance is announced; returns false on timeout.
  bool wait_registered(std::chrono::milliseconds time, std::stop_token stop = {}) const;
  /// Checks now whether the program is ready, instead of at the next interval.
  void check_now();

  /// Deregisters and ends the registration. Waits for a running request, for half of
  /// RegistrationOptions::timeout at most, retries failures, and returns false if it gives up when
  /// that time is over. Nothing needs to be withdrawn if the pod no longer exists or was replaced, or
  /// if each registration was rejected (RegistrationError) or refused by the server (403).
  /// Further calls return the same result.
  bool leave();

  /// lookout_registry_registered, _registrations_total, _registration_errors_total.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  struct Core;
  const std::unique_ptr<Core> core_;
};

/// "waiting", "registered" ... for messages.
const char* to_string(Registration::State state);

}  // namespace lookout::registry
