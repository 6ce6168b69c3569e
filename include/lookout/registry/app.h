// A service from its start to its end.
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
  /// "http://0.0.0.0:80": protocol and port count, the address is the pod's. A container of the pod
  /// must declare the port.
  LOOKOUT_OPTION std::vector<Endpoint> endpoints = {};
  /// How long the program goes on serving after it has deregistered, at most: until `in_flight`
  /// says 0, or, without it, all that time. Must fit into the pod's terminationGracePeriodSeconds,
  /// as must `timeout`.
  std::chrono::milliseconds drain{5'000};
  /// It goes on serving at least so long, for callers that have not noticed yet.
  std::chrono::milliseconds notice{1'000};
  /// Whether the program can serve now: RegistrationOptions::ready. Without it the instance is
  /// announced as soon as run() begins.
  LOOKOUT_OPTION std::function<bool()> ready = {};
  /// How many requests are being served.
  LOOKOUT_OPTION std::function<std::size_t()> in_flight = {};
  /// As in RegistrationOptions.
  std::chrono::milliseconds check_every{1'000};
  std::chrono::milliseconds refresh_every{15'000};
  std::chrono::milliseconds timeout{10'000};
  LOOKOUT_OPTION std::function<void(const std::string& reason)> on_error = {};
  /// The pod, if it is another than the one this runs in.
  LOOKOUT_OPTION PodIdentity pod = {};
  /// Where it is announced; null: as a kratos service on this pod.
  LOOKOUT_OPTION std::shared_ptr<Registrar> registrar = {};
  /// Whether SIGTERM and SIGINT end run() (stop_on_signals()).
  bool signals = true;
};

/// A service that registers, serves, deregisters, drains and ends:
///
///     registry::App app{client, {.name = "web", .version = "v1",
///                                .endpoints = {"http://0.0.0.0:80"}, .drain = 2s}};
///     return app.run([&](std::stop_token stop) { server.serve(stop); });
///
/// On SIGTERM (or stop()) the instance is taken back first. It goes on serving until its callers
/// have noticed and what is in flight is done; then the stop is requested that `serve` was given.
class App : public metrics::Source {
 public:
  /// Throws RegistrationError for an instance that cannot be announced, and Error if it is not
  /// known which pod this is.
  App(rest::Client client, AppOptions options);
  ~App() override;
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Calls serve(stop) on this thread, once. Returns 0, or what `serve` returns if that is an int;
  /// throws what it throws. If `serve` returns by itself, the instance is taken back, too.
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
  /// Does what SIGTERM does. From any thread.
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
