// lookout: a live view of a Kubernetes cluster, and a small API server to try it on.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "cmd/commands.h"
#include "lookout/version.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

void set_up_logging(const std::string& level) {
  // Colours only on a terminal: the sink looks.
  auto logger = spdlog::stderr_color_mt("lookout");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lookout;
  // A reader that goes away is an error of writing, not the end.
  signal(SIGPIPE, SIG_IGN);

  CLI::App app{"A live view of a Kubernetes cluster, and a small API server to try it on.",
               "lookout"};
  app.set_version_flag("--version", fmt::format("lookout {}", kVersion));
  // None is found out below: otherwise that is all that is said of a misspelt one, too.
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.get_formatter()->column_width(34);

  cmd::ConnectionFlags connection;
  connection.add_to(app);
  std::string metrics_listen;
  app.add_option("--metrics-listen", metrics_listen,
                 "Serve Prometheus metrics here: 127.0.0.1:9090")
      ->type_name("ADDR");
  std::string log_level = "warn";
  app.add_option("-v,--log-level", log_level, "What to log to standard error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  app.footer(
      "Examples:\n"
      "  lookout demo                      # everything at once, in a terminal\n"
      "  lookout serve                     # an API server at http://127.0.0.1:8001\n"
      "  lookout watch pods -A             # follow its pods\n"
      "  lookout watch pods -A --kubeconfig ~/.kube/config\n\n"
      "Exit status: 0 success, 1 the operation failed, 2 wrong usage.");

  cmd::Action action;
  cmd::add_serve(app, action);
  cmd::add_get(app, connection, action);
  cmd::add_watch(app, connection, metrics_listen, action);
  cmd::add_registry(app, connection, action);
  cmd::add_bench(app, connection, action);
  cmd::add_demo(app, action);
  try {
    app.parse(argc, argv);
    if (!action) throw CLI::RequiredError("A command");
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kWrongUsage;
  }

  set_up_logging(log_level);
  try {
    return action();
  } catch (const std::exception& e) {
    fmt::print(stderr, "lookout: {}\n", e.what());
    try {
      const std::string advice = cmd::advice(e, connection.config());
      if (!advice.empty()) fmt::print(stderr, "lookout: {}\n", advice);
    } catch (const std::exception&) {
      // The configuration is what is wrong, and its message has said so.
    }
    return kFailed;
  }
}
