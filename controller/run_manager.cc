#include "lookout/controller/run_manager.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>

#include "lookout/base/detail/log.h"
#include "lookout/controller/recorded_events.h"
#include "lookout/controller/signals.h"

namespace lookout::controller {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

void log_to_standard_error(const std::string& name, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>(
      name, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

void end_at_once() {
  log::error("exiting immediately, without waiting for running work");
  spdlog::default_logger()->flush();
  std::_Exit(kFailed);
}

}  // namespace

rest::Config ManagerFlags::config() const {
  rest::LoadOptions options;
  options.file = kubeconfig;
  options.context = context;
  options.server = server;
  return rest::Config::load(options);
}

void ManagerFlags::apply_to(ManagerOptions& options, const std::string& name,
                            const rest::Config& config) const {
  options.metrics_listen = metrics_listen;
  options.health_listen = health_listen;
  if (metrics_secure && !options.secure_metrics) options.secure_metrics.emplace();
  if (options.secure_metrics && !metrics_cert_dir.empty())
    options.secure_metrics->cert_dir = metrics_cert_dir;
  if (!namespaces.empty()) {
    options.cache.namespaces = namespaces;
    // Those with selectors of their own are watched in addition.
    std::erase_if(options.cache.by_namespace, [this](const auto& single) {
      return std::find(namespaces.begin(), namespaces.end(), single.first) == namespaces.end();
    });
  }
  if (!leader_elect) {
    options.leader_election.reset();
    return;
  }
  LeaderElection election;
  if (options.leader_election) election = *options.leader_election;
  if (election.name.empty()) election.name = name;
  if (!leader_elect_namespace.empty()) election.ns = leader_elect_namespace;
  if (election.ns.empty()) election.ns = config.default_namespace;
  options.leader_election = std::move(election);
}

int run_manager(const std::string& name, const ManagerFlags& flags, ManagerOptions options,
                const ManagerSetup& setup) {
  log_to_standard_error(name, flags.log_level);
  try {
    // Install the signal handlers first.
    const std::stop_token stop = stop_on_signals();
    const rest::Config config = flags.config();
    flags.apply_to(options, name, config);
    const rest::Client client{config};
    std::shared_ptr<RecordedEvents> recorded;
    if (!options.events) options.events = recorded = std::make_shared<RecordedEvents>(client);
    if (!options.on_shutdown_overrun) options.on_shutdown_overrun = end_at_once;
    std::unique_ptr<Manager> manager;
    try {
      manager = std::make_unique<Manager>(client, std::move(options));
    } catch (const InvalidArgument& e) {
      log::error("{}", e.what());
      return kWrongUsage;
    }
    if (recorded) manager->add_metrics(recorded);
    setup(*manager);
    manager->run(stop);
    return 0;
  } catch (const std::exception& e) {
    log::error("{}", e.what());
    return kFailed;
  }
}

}  // namespace lookout::controller
