// run_manager(): the main function of a controller program, without its command line (program.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lookout/controller/manager.h"
#include "lookout/rest/config.h"

namespace lookout::controller {

/// The settings of a controller program. Program (program.h) reads them from a command line; a
/// program with its own flags fills them in itself.
struct ManagerFlags {
  /// As in kubectl. If all three are empty: $KUBECONFIG, ~/.kube/config, or the pod's service
  /// account.
  std::string kubeconfig = {};
  std::string context = {};
  std::string server = {};
  /// ManagerOptions::metrics_listen and health_listen; "0": not served.
  std::string metrics_listen = ":8080";
  std::string health_listen = ":8081";
  /// ManagerOptions::secure_metrics, and its cert_dir.
  bool metrics_secure = false;
  std::string metrics_cert_dir = {};
  bool leader_elect = false;
  /// The namespace of the Lease. Empty: that of the pod, or of the kubeconfig's context.
  std::string leader_elect_namespace = {};
  /// CacheOptions::namespaces; empty: all.
  std::vector<std::string> namespaces = {};
  /// trace, debug, info, warn, error or off.
  std::string log_level = "info";

  /// The client configuration. Throws rest::ConfigError.
  rest::Config config() const;

  /// Writes the settings into `options`. An existing LeaderElection keeps its times and its name,
  /// and is removed if leader_elect is false. Otherwise the Lease gets the name `name` and the
  /// namespace of `config`.
  void apply_to(ManagerOptions& options, const std::string& name, const rest::Config& config) const;
};

/// Adds controllers, checks and runnables to the manager before it runs.
using ManagerSetup = std::function<void(Manager& manager)>;

/// Logs to standard error, connects, makes a manager, calls `setup`, and runs the manager until
/// SIGTERM or SIGINT (controller::stop_on_signals()). Returns the exit status: 0 after a stop, 1
/// after a failure, 2 for invalid options, such as a bad address. It logs the reason.
///
/// `name` is the name of the Lease and of the logger. If `options.events` is null, Events are
/// written to the server (RecordedEvents). If `options.on_shutdown_overrun` is null, a stop that
/// exceeds the graceful timeout ends the process with status 1.
///
/// Replaces spdlog's default logger.
int run_manager(const std::string& name, const ManagerFlags& flags, ManagerOptions options,
                const ManagerSetup& setup);

}  // namespace lookout::controller
