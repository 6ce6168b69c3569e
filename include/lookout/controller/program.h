// A controller program's command line. Needs CLI11, which nothing else in Lookout's libraries does.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "lookout/controller/run_manager.h"

namespace lookout::controller {

/// The main function of a controller program:
///
///     int main(int argc, char** argv) {
///       lookout::controller::Program program("website", "Makes a Deployment for each Website.");
///       return program.run(argc, argv, [](auto& manager) { add_website_controller(manager); });
///     }
///
/// Flags and environment variables set what ManagerFlags holds; a flag goes before its variable:
///
///     --kubeconfig FILE, --context NAME, --server URL   $KUBECONFIG
///     --metrics-listen ADDR                             $LOOKOUT_METRICS_LISTEN
///     --health-listen ADDR                              $LOOKOUT_HEALTH_LISTEN
///     --leader-elect                                    $LOOKOUT_LEADER_ELECT
///     --leader-elect-namespace NS                       $LOOKOUT_LEADER_ELECT_NAMESPACE
///     --namespace NS,...                                $LOOKOUT_NAMESPACE
///     -v, --log-level LEVEL                             $LOOKOUT_LOG_LEVEL
///
/// In a pod, $POD_NAMESPACE names the namespace of the Lease, unless a flag does. The exit status
/// is that of run_manager(); wrong usage is 2.
class Program {
 public:
  /// `name` is that of the program, of its Lease and of its logger.
  explicit Program(std::string name, const std::string& description = {})
      : name_(std::move(name)), app_(description, name_) {
    app_.get_formatter()->column_width(36);
    app_.add_option("--kubeconfig", flags_.kubeconfig,
                    "Use this kubeconfig; else $KUBECONFIG, ~/.kube/config, or the pod's account")
        ->type_name("FILE");
    app_.add_option("--context", flags_.context, "Use this context of the kubeconfig")
        ->type_name("NAME");
    app_.add_option("--server", flags_.server, "Talk to the server at this URL")->type_name("URL");
    app_.add_option("--metrics-listen", flags_.metrics_listen, "Serve /metrics here; 0: nowhere")
        ->type_name("ADDR")
        ->envname("LOOKOUT_METRICS_LISTEN")
        ->capture_default_str();
    app_.add_option("--health-listen", flags_.health_listen,
                    "Serve /healthz and /readyz here; 0: nowhere")
        ->type_name("ADDR")
        ->envname("LOOKOUT_HEALTH_LISTEN")
        ->capture_default_str();
    app_.add_flag("--leader-elect", flags_.leader_elect, "Let one of several replicas work")
        ->envname("LOOKOUT_LEADER_ELECT");
    app_.add_option("--leader-elect-namespace", flags_.leader_elect_namespace,
                    "Where the Lease is; else the namespace of the pod or of the context")
        ->type_name("NS")
        ->envname("LOOKOUT_LEADER_ELECT_NAMESPACE");
    app_.add_option("--namespace", flags_.namespaces,
                    "Watch these namespaces only; several with commas")
        ->type_name("NS")
        ->envname("LOOKOUT_NAMESPACE")
        ->delimiter(',')
        ->allow_extra_args(false);
    app_.add_option("-v,--log-level", flags_.log_level, "What to log to standard error")
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
        ->envname("LOOKOUT_LOG_LEVEL")
        ->capture_default_str();
    app_.footer("Examples:\n  " + name_ +
                " --server http://127.0.0.1:8001        # lookout serve\n  " + name_ +
                " --kubeconfig ~/.kube/config\n  " + name_ +
                " --leader-elect --namespace shop,blog  # in a cluster\n\n"
                "Exit status: 0 stopped by a signal, 1 failed, 2 wrong usage.");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// For flags of the program's own. What they write to must live until run() has returned.
  CLI::App& app() { return app_; }
  /// Other defaults for the flags above.
  ManagerFlags& flags() { return flags_; }
  /// Everything that has no flag.
  ManagerOptions& options() { return options_; }

  /// Reads the command line and the environment, and runs a manager; see run_manager(). `setup` is
  /// called once the flags are read.
  int run(int argc, const char* const* argv, const ManagerSetup& setup) {
    constexpr int kWrongUsage = 2;
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      return app_.exit(e) == 0 ? 0 : kWrongUsage;
    }
    return run_manager(name_, flags_, options_, setup);
  }

 private:
  const std::string name_;
  CLI::App app_;
  ManagerFlags flags_;
  ManagerOptions options_;
};

}  // namespace lookout::controller
