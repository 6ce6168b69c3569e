#include "cmd/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cmd/closest.h"
#include "cmd/colours.h"
#include "cmd/say.h"
#include "cmd/short_options.h"
#include "lookout/version.h"

namespace lookout::cmd {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

/// Opens closed standard streams as /dev/null, as Go's runtime does. Otherwise the next opened file would
/// get the number of a standard stream, and its output.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest free number, which is this one.
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF) open("/dev/null", O_RDWR);
  }
}

void set_up_logging(const std::string& level) {
  // The sink uses colours only on a terminal.
  const auto colours = use_colours() ? spdlog::color_mode::automatic : spdlog::color_mode::never;
  auto logger = spdlog::stderr_color_mt("lookout", colours);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

/// True if the reader of standard output has closed the pipe: `lookout get pods | head -1`.
bool reader_has_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

/// Flushes the output and returns the exit status.
int finished(int status) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || reader_has_gone()) return status;
  say("lookout: standard output cannot be written\n");
  return kFailed;
}

/// The advice for a kubectl command that `lookout` lacks; empty for other words.
std::string instead_of(const std::string& command) {
  if (command == "create") return "use lookout apply -f FILE";
  if (command == "describe") return "use lookout get RESOURCE NAME -o yaml, or kubectl describe";
  if (command == "version") return "use lookout --version";
  static const std::set<std::string> kKubectl = {
      "annotate",    "api-versions", "attach",     "auth",   "autoscale", "cordon",
      "certificate", "cluster-info", "completion", "config", "cp",        "debug",
      "diff",        "drain",        "edit",       "events", "exec",      "explain",
      "expose",      "kustomize",    "label",      "patch",  "plugin",    "port-forward",
      "proxy",       "replace",      "rollout",    "run",    "scale",     "set",
      "taint",       "top",          "uncordon"};
  if (!kKubectl.contains(command)) return {};
  return fmt::format("use kubectl {}, with the same --server or --kubeconfig", command);
}

/// Throws for an option of kubectl that `lookout` lacks, if there is another way.
void check_kubectl_options(const CLI::App& app) {
  static const std::set<std::string> kCredentials = {
      "--as",      "--as-group", "--as-uid",     "--certificate-authority",
      "--token",   "--user",     "--username",   "--client-certificate",
      "--cluster", "--password", "--client-key", "--insecure-skip-tls-verify"};
  for (const std::string& argument : app.remaining(true)) {
    const std::string name = argument.substr(0, argument.find('='));
    if (kCredentials.contains(name)) {
      throw CLI::ValidationError(name, "belongs in a kubeconfig: use --kubeconfig and --context");
    }
    if (name == "-k" || name == "--kustomize") {
      throw CLI::ValidationError(name, "use kubectl kustomize FOLDER | lookout apply -f -");
    }
    if (name == "--output-watch-events") throw CLI::ValidationError(name, "use lookout watch");
  }
}

/// Throws for an unknown word in place of a command.
void check_command(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string command = "lookout";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  std::vector<std::string> known;
  for (const CLI::App* each : at->get_subcommands(std::function<bool(const CLI::App*)>()))
    known.push_back(each->get_name());
  const std::vector<std::string> rest = app.remaining(true);
  if (known.empty() || rest.empty() || rest.front().starts_with('-')) return;
  std::string hint = at == &app ? instead_of(rest.front()) : "";
  const std::string meant = closest(rest.front(), known);
  if (hint.empty() && !meant.empty()) hint = fmt::format("did you mean \"{}\"?", meant);
  throw CLI::ValidationError(fmt::format("{} has no command \"{}\"{}{}", command, rest.front(),
                                         hint.empty() ? "" : ": ", hint));
}

/// A common option that only some commands support.
struct SomeCommandsOption {
  const char* name;
  std::vector<std::string> commands;  // including their subcommands
};

/// The commands that connect to a server.
std::vector<std::string> client_commands() {
  return {"get",        "watch",        "apply",           "delete",
          "logs",       "wait",         "api-resources",   "registry",
          "bench sync", "bench events", "bench informers", "bench soak"};
}

/// Also true for a subcommand of one of them.
bool is_among(const std::string& command, const std::vector<std::string>& commands) {
  return std::ranges::any_of(commands, [&](const std::string& name) {
    return command == name || command.starts_with(name + " ");
  });
}

std::vector<SomeCommandsOption> some_commands_options() {
  const std::vector<std::string> clients = client_commands();
  return {{"--kubeconfig", clients},
          {"--context", clients},
          {"--server", clients},
          {"--content-type", clients},
          {"--metrics-listen", {"watch"}}};
}

/// Changes "help get" to "get --help", as kubectl's users write it.
std::vector<std::string> with_help_option(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

/// The chosen command, such as "bench sync". Empty if another program parses it.
std::string chosen_command(const CLI::App& app) {
  std::string out;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    if (at->get_prefix_command()) return {};
    out += (out.empty() ? "" : " ") + at->get_name();
  }
  return out;
}

/// "--server" is an option of `lookout`, so the help of its commands does not list it.
void mention_common_options(CLI::App& command, const std::string& name) {
  for (CLI::App* each : command.get_subcommands(std::function<bool(CLI::App*)>()))
    mention_common_options(*each, name.empty() ? each->get_name() : name + " " + each->get_name());
  if (!is_among(name, client_commands()) || command.get_prefix_command()) return;
  command.footer(command.get_footer() +
                 "\n\n--server, --kubeconfig, --context and other options of all commands: "
                 "lookout --help");
}

/// Ends a message about wrong usage.
std::string with_pointer_to_help(const CLI::App* app, const CLI::Error& error) {
  const std::string command = chosen_command(*app);
  return fmt::format("{}\nRun `lookout {}--help` for more information.\n", error.what(),
                     command.empty() ? "" : command + " ");
}

/// Common options may follow the command. Throws for a common option that the command does not support.
void check_options(const CLI::App& app, int argc) {
  if (app.count("--version") > 0 && argc > 2) {
    throw CLI::ValidationError("--version",
                               "cannot be combined with other arguments: lookout --version");
  }
  const std::string command = chosen_command(app);
  for (const auto& option : some_commands_options()) {
    if (!is_among(command, option.commands) && !command.empty() && app.count(option.name) > 0) {
      throw CLI::ValidationError(option.name,
                                 fmt::format("lookout {} has no such option", command));
    }
  }
}

}  // namespace

void on_chosen(CLI::App& command, Action& action, Action run) {
  command.callback([&action, run = std::move(run)] { action = run; });
}

int run_program(int argc, char** argv, AddCommands add_commands) {
  open_standard_streams();
  // Make writes to a closed pipe fail instead of ending the program.
  signal(SIGPIPE, SIG_IGN);

  CLI::App app{"A live view of a Kubernetes cluster, and a small API server to try it on.",
               "lookout"};
  bool version = false;
  app.add_flag("--version", version, "Print the version and exit");
  // A missing command is checked below: CLI11 would report a misspelt one as missing.
  app.require_subcommand(0, 1);
  app.fallthrough();
  // As in kubectl, the last one counts: an alias may have others.
  app.option_defaults()->take_last();
  app.get_formatter()->column_width(34);

  CommonFlags flags;
  flags.arguments = with_help_option(std::vector<std::string>(argv + 1, argv + argc));
  flags.connection.add_to(app);
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "watch: serve Prometheus metrics on this address: 127.0.0.1:9090")
      ->type_name("ADDR");
  std::string log_level = "warn";
  app.add_option("-v,--log-level", log_level, "The lowest level to log to standard error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  app.footer(
      "Without --server, --kubeconfig, --context and $KUBECONFIG, commands use the cluster of the "
      "pod\n"
      "that they run in, or else http://127.0.0.1:8001. They read ~/.kube/config only for "
      "--context\n"
      "without a kubeconfig.\n\n"
      "Examples:\n"
      "  lookout demo                      # a live view of a simulated cluster\n"
      "  lookout serve                     # an API server at http://127.0.0.1:8001\n"
      "  lookout apply -f config/          # create or change objects\n"
      "  lookout watch pods -A             # watch all pods\n"
      "  lookout watch pods -A --kubeconfig ~/.kube/config\n"
      "  lookout new website               # a controller project\n\n"
      "Exit status: 0 success, 1 the operation failed, 2 wrong usage.");

  Action action;
  add_commands(app, flags, action);
  mention_common_options(app, "");
  app.failure_message(&with_pointer_to_help);
  try {
    try {
      std::vector<std::string> arguments =
          with_long_options(app, with_namespace_behind_command(app, flags.arguments));
      // CLI11 expects the arguments in reverse order.
      std::ranges::reverse(arguments);
      app.parse(std::move(arguments));
    } catch (const CLI::RequiredError&) {
      check_kubectl_options(app);
      throw;
    } catch (const CLI::ExtrasError&) {
      // In "register web --version v1", the option is wrong, not the extra value.
      check_options(app, argc);
      check_command(app);
      check_kubectl_options(app);
      throw;
    }
    check_options(app, argc);
    if (version) {
      fmt::print("lookout {}\n", kVersion);
      return finished(0);
    }
    if (!action) {
      const std::string command = chosen_command(app);
      throw CLI::RequiredError(command.empty() ? "A command" : "A command of lookout " + command);
    }
  } catch (const CLI::ParseError& e) {
    return finished(app.exit(e) == 0 ? 0 : kWrongUsage);
  }

  set_up_logging(log_level);
  try {
    return finished(action());
  } catch (const std::exception& e) {
    // fmt::print() throws if standard output cannot be written.
    if (std::ferror(stdout) != 0 && dynamic_cast<const std::system_error*>(&e) != nullptr)
      return finished(0);
    say("lookout: {}\n", e.what());
    try {
      const std::string hint = advice(e, flags.connection);
      if (!hint.empty()) say("lookout: {}\n", hint);
    } catch (const std::exception&) {
      // The configuration is invalid; the original message describes the problem.
    }
    return kFailed;
  }
}

}  // namespace lookout::cmd
