// An announcement that lasts as long as it is true.
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
  /// Whether the program can serve now. Asked every `check_every`, on a thread of the registration;
  /// must return soon. One that throws says no. While it says no, the instance is not announced.
  /// Empty: always.
  LOOKOUT_OPTION std::function<bool()> ready = {};
  std::chrono::milliseconds check_every{1'000};
  /// The announcement is sent again so often, in case somebody removed it. (The server writes
  /// nothing if nothing changes, and needs no further right for it.) 0: never.
  std::chrono::milliseconds refresh_every{15'000};
  /// The limit of each request, and of the deregistration with its retries (kratos' is 10 s, too).
  std::chrono::milliseconds timeout{10'000};
  /// After a failure it is tried again after this time, then after twice that, up to a limit.
  std::chrono::milliseconds retry_after{200};
  std::chrono::milliseconds retry_after_max{10'000};
  /// Called with each failure, on the thread of the registration. The default logs a warning.
  LOOKOUT_OPTION std::function<void(const std::string& reason)> on_error = {};
};

/// Keeps an instance announced: registers it when the program is ready, tries again when that
/// fails, takes it back while the program is not ready, and for good at the end.
class Registration : public metrics::Source {
 public:
  enum class State {
    kWaiting,     ///< the program has not been ready yet
    kRegistered,  ///< announced
    kOut,         ///< it was announced, and is not ready now
    kFailing,     ///< it is ready, and cannot be announced: last_error() says why
    kLeft         ///< leave() was called
  };

  /// `registrar` must outlive this. Returns at once; a thread does the work.
  Registration(Registrar& registrar, RegistrationOptions options);
  /// Calls leave().
  ~Registration() override;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  State state() const;
  /// Why the last request failed, or the program is not ready; empty if nothing is wrong.
  std::string last_error() const;
  /// Whether the instance is announced; waits that long for it.
  bool wait_registered(std::chrono::milliseconds time, std::stop_token stop = {}) const;
  /// Asks at once whether the program is ready, instead of at the next time.
  void check_now();

  /// Takes the announcement back, and ends. Waits for a request that is under way, tries again when
  /// it fails, and gives up after RegistrationOptions::timeout: false. Again: the same result.
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
