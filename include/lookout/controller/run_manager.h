// The main function of a controller program, but for its command line: see program.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lookout/controller/manager.h"
#include "lookout/rest/config.h"

namespace lookout::controller {

/// How a controller program is set up from outside. Program (program.h) reads them from a command
/// line; a program with flags of its own fills them in by itself.
struct ManagerFlags {
  /// As in kubectl. If all three are empty: $KUBECONFIG, ~/.kube/config, or the pod that this runs
  /// in.
  std::string kubeconfig = {};
  std::string context = {};
  std::string server = {};
  /// ManagerOptions::metrics_listen and health_listen; "0": nowhere.
  std::string metrics_listen = ":8080";
  std::string health_listen = ":8081";
  bool leader_elect = false;
  /// Where the Lease is. Empty: the namespace of the pod, or that of the kubeconfig's context.
  std::string leader_elect_namespace = {};
  /// CacheOptions::namespaces; empty: all.
  std::vector<std::string> namespaces = {};
  /// trace, debug, info, warn, error or off.
  std::string log_level = "info";

  /// Where the server is and who this is. Throws rest::ConfigError.
  rest::Config config() const;

  /// Writes them into `options`. A LeaderElection that is there keeps its times and its name, and
  /// goes if leader_elect is false. `name` is the name of the Lease otherwise; `config` gives its
  /// namespace.
  void apply_to(ManagerOptions& options, const std::string& name, const rest::Config& config) const;
};

/// Adds controllers, checks and runnables to the manager that is about to run.
using ManagerSetup = std::function<void(Manager& manager)>;

/// Logs to standard error, connects, makes a manager, has `setup` fill it, and runs it until
/// SIGTERM or SIGINT (controller::stop_on_signals()). Returns the exit status: 0 after a stop, 1
/// after a failure, 2 for options that cannot work, such as a bad address. It logs the reason.
///
/// `name` names the program: its Lease and its logger. If `options.events` is null, Events go to
/// the server (RecordedEvents). If `options.on_shutdown_overrun` is null, a stop that takes longer
/// than the graceful timeout ends the process with status 1.
///
/// Replaces spdlog's default logger.
int run_manager(const std::string& name, const ManagerFlags& flags, ManagerOptions options,
                const ManagerSetup& setup);

}  // namespace lookout::controller
