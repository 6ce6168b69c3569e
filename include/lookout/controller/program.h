// Program: the command line of a controller program. Only this header of the libraries needs CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lookout/controller/run_manager.h"
#include "lookout/controller/webhook.h"

namespace lookout::controller {

/// The main function of a controller program:
///
///     int main(int argc, char** argv) {
///       lookout::controller::Program program("website", "Makes a Deployment for each Website.");
///       return program.run(argc, argv, [](auto& manager) { add_website_controller(manager); });
///     }
///
/// Flags and environment variables set the fields of ManagerFlags; a flag takes precedence:
///
///     --kubeconfig FILE, --context NAME, --server URL   $KUBECONFIG
///     --metrics-listen ADDR                             $LOOKOUT_METRICS_LISTEN
///     --metrics-secure                                  $LOOKOUT_METRICS_SECURE
///     --metrics-cert-dir DIR                            $LOOKOUT_METRICS_CERT_DIR
///     --health-listen ADDR                              $LOOKOUT_HEALTH_LISTEN
///     --leader-elect                                    $LOOKOUT_LEADER_ELECT
///     --leader-elect-namespace NS                       $LOOKOUT_LEADER_ELECT_NAMESPACE
///     --namespace NS,...                                $LOOKOUT_NAMESPACE
///     -v, --log-level LEVEL                             $LOOKOUT_LOG_LEVEL
///
/// With webhooks() also:
///
///     --webhook-cert-dir DIR                            $LOOKOUT_WEBHOOK_CERT_DIR
///     --webhook-port PORT                               $LOOKOUT_WEBHOOK_PORT
///
/// In a pod, $POD_NAMESPACE names the namespace of the Lease, unless a flag does. The exit status
/// is that of run_manager(); 2 for wrong usage.
class Program {
 public:
  /// `name` is the name of the program, of its Lease and of its logger.
  explicit Program(std::string name, const std::string& description = {})
      : name_(std::move(name)), app_(description, name_) {
    app_.get_formatter()->column_width(36);
    app_.add_option("--kubeconfig", flags_.kubeconfig,
                    "Kubeconfig; default: $KUBECONFIG, ~/.kube/config, or the pod's account")
        ->type_name("FILE");
    app_.add_option("--context", flags_.context, "Use this context of the kubeconfig")
        ->type_name("NAME");
    app_.add_option("--server", flags_.server, "Use the server at this URL")->type_name("URL");
    app_.add_option("--metrics-listen", flags_.metrics_listen,
                    "Serve /metrics on this address; 0: off")
        ->type_name("ADDR")
        ->envname("LOOKOUT_METRICS_LISTEN")
        ->capture_default_str();
    app_.add_flag("--metrics-secure", flags_.metrics_secure,
                  "Serve /metrics over TLS, and only to clients that the API server authorizes")
        ->envname("LOOKOUT_METRICS_SECURE");
    app_.add_option("--metrics-cert-dir", flags_.metrics_cert_dir,
                    "Serve /metrics with tls.crt and tls.key of this folder; default: self-signed")
        ->type_name("DIR")
        ->envname("LOOKOUT_METRICS_CERT_DIR");
    app_.add_option("--health-listen", flags_.health_listen,
                    "Serve /healthz and /readyz on this address; 0: off")
        ->type_name("ADDR")
        ->envname("LOOKOUT_HEALTH_LISTEN")
        ->capture_default_str();
    app_.add_flag("--leader-elect", flags_.leader_elect,
                  "Elect one of several replicas as the leader")
        ->envname("LOOKOUT_LEADER_ELECT");
    app_.add_option("--leader-elect-namespace", flags_.leader_elect_namespace,
                    "Namespace of the Lease; default: that of the pod or of the context")
        ->type_name("NS")
        ->envname("LOOKOUT_LEADER_ELECT_NAMESPACE");
    app_.add_option("--namespace", flags_.namespaces,
                    "Watch only these namespaces, separated by commas")
        ->type_name("NS")
        ->envname("LOOKOUT_NAMESPACE")
        ->delimiter(',')
        ->allow_extra_args(false);
    app_.add_option("-v,--log-level", flags_.log_level, "The lowest level to log to standard error")
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

  /// For additional flags. The variables that they set must live until run() has returned.
  CLI::App& app() { return app_; }
  /// For other defaults of the flags above.
  ManagerFlags& flags() { return flags_; }
  /// Options that have no flag.
  ManagerOptions& options() { return options_; }

  /// Serves webhooks if a flag names a certificate; otherwise the program serves none. `add`
  /// registers the handlers, for example with WebhookServer::validate(). Adds the readiness check
  /// "webhooks". `options` are those without a flag; by default, the server keeps serving for five
  /// seconds after a stop request, until API servers have noticed. Call once, before run().
  void webhooks(std::function<void(WebhookServer& webhooks)> add,
                WebhookOptions options = draining_webhooks()) {
    add_webhooks_ = std::move(add);
    webhook_options_ = std::move(options);
    webhook_options_.cert_dir.clear();
    app_.add_option("--webhook-cert-dir", webhook_options_.cert_dir,
                    "Serve webhooks with tls.crt and tls.key of this folder; else none")
        ->type_name("DIR")
        ->envname("LOOKOUT_WEBHOOK_CERT_DIR");
    app_.add_option("--webhook-port", webhook_options_.port, "Serve webhooks at this port")
        ->type_name("PORT")
        ->envname("LOOKOUT_WEBHOOK_PORT")
        ->capture_default_str();
  }

  /// Reads the command line and the environment, and runs a manager; see run_manager(). Calls
  /// `setup` after reading the flags.
  int run(int argc, const char* const* argv, const ManagerSetup& setup) {
    constexpr int kWrongUsage = 2;
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      return app_.exit(e) == 0 ? 0 : kWrongUsage;
    }
    return run_manager(name_, flags_, options_, [&](Manager& manager) {
      setup(manager);
      serve_webhooks(manager);
    });
  }

 private:
  static WebhookOptions draining_webhooks() {
    WebhookOptions out;
    out.drain_delay = std::chrono::seconds(5);
    return out;
  }

  void serve_webhooks(Manager& manager) {
    if (webhook_options_.cert_dir.empty()) return;
    webhook_server_.emplace(manager, webhook_options_);
    add_webhooks_(*webhook_server_);
    manager.add_ready_check("webhooks", webhook_server_->started_checker());
  }

  const std::string name_;
  CLI::App app_;
  ManagerFlags flags_;
  ManagerOptions options_;
  std::function<void(WebhookServer&)> add_webhooks_;
  WebhookOptions webhook_options_;
  std::optional<WebhookServer> webhook_server_;  // outlives the manager
};

}  // namespace lookout::controller
