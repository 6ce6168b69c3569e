// App: runs a service from registration to drain.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/base/metrics.h"
#include "lookout/registry/options.h"
#include "lookout/registry/registration.h"
#include "lookout/registry/registry.h"
#include "lookout/rest/client.h"

namespace lookout::registry {

struct AppOptions {
  LOOKOUT_OPTION std::string name = {};
  LOOKOUT_OPTION std::string version = {};
  /// Empty: the name of the pod.
  LOOKOUT_OPTION std::string id = {};
  LOOKOUT_OPTION std::map<std::string, std::string> metadata = {};
  /// "http://0.0.0.0:80": only the protocol and the port are used; the address is the pod's. A
  /// container of the pod must declare the port.
  LOOKOUT_OPTION std::vector<Endpoint> endpoints = {};
  /// How long the program keeps serving after deregistration at most: until `in_flight` returns 0,
  /// or, without it, the whole time. Together with `timeout`, it must fit into the pod's
  /// terminationGracePeriodSeconds.
  std::chrono::milliseconds drain{5'000};
  /// The minimum time to keep serving, for callers that have not noticed the deregistration yet.
  std::chrono::milliseconds notice{1'000};
  /// Returns true if the program can serve: RegistrationOptions::ready. Empty: the instance is
  /// announced as soon as run() begins.
  LOOKOUT_OPTION std::function<bool()> ready = {};
  /// Returns the number of requests being served.
  LOOKOUT_OPTION std::function<std::size_t()> in_flight = {};
  /// As in RegistrationOptions.
  std::chrono::milliseconds check_every{1'000};
  std::chrono::milliseconds refresh_every{15'000};
  std::chrono::milliseconds timeout{10'000};
  LOOKOUT_OPTION std::function<void(const std::string& reason)> on_error = {};
  /// The pod; empty fields are filled in from the environment (PodIdentity::find).
  LOOKOUT_OPTION PodIdentity pod = {};
  /// Where to announce the instance; null: as a kratos service on this pod.
  LOOKOUT_OPTION std::shared_ptr<Registrar> registrar = {};
  /// True: SIGTERM and SIGINT end run() (stop_on_signals()).
  bool signals = true;
};

/// A service that registers, serves, deregisters, drains and ends:
///
///     registry::App app{client, {.name = "web", .version = "v1",
///                                .endpoints = {"http://0.0.0.0:80"}, .drain = 2s}};
///     return app.run([&](std::stop_token stop) { server.serve(stop); });
///
/// On SIGTERM (or stop()), it deregisters first. It keeps serving until callers have noticed and
/// the requests in flight are finished; then it requests the stop of the token that `serve` got.
class App : public metrics::Source {
 public:
  /// Throws RegistrationError for an instance that cannot be announced, and Error if the pod cannot
  /// be determined.
  App(rest::Client client, AppOptions options);
  ~App() override;
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Calls serve(stop) on this thread. May be called once. Returns 0, or the result of `serve` if
  /// it is an int; rethrows its exceptions. If `serve` returns early, the instance is deregistered,
  /// too.
  template <class Serve>
  int run(Serve&& serve) {
    int status = 0;
    serve_until_stop([&](std::stop_token stop) {
      if constexpr (std::is_same_v<std::invoke_result_t<Serve&, std::stop_token>, int>) {
        status = serve(std::move(stop));
      } else {
        serve(std::move(stop));
      }
    });
    return status;
  }
  /// Does the same as SIGTERM. From any thread.
  void stop();

  /// kWaiting before run().
  Registration::State state() const;
  std::string last_error() const;
  bool wait_registered(std::chrono::milliseconds time) const;
  /// The metrics of the registration.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  void serve_until_stop(const std::function<void(std::stop_token)>& serve);

  struct Core;
  const std::unique_ptr<Core> core_;
};

}  // namespace lookout::registry
