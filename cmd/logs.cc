// lookout logs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/commands.h"
#include "cmd/duration.h"
#include "cmd/object_checks.h"
#include "cmd/say.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/log_stream.h"
#include "lookout/rest/options.h"

namespace lookout::cmd {
namespace {

using k8s::core::v1::Pod;

struct LogFlags {
  std::string pod;
  std::string ns;
  std::optional<std::int64_t> tail;
  std::chrono::milliseconds since{0};
  rest::LogOptions options;
};

/// As in kubectl: the one of the annotation, or the first one. Says so if there are several.
std::string default_container(const Pod& pod) {
  std::vector<std::string> names;
  for (const auto container : pod.spec().containers()) names.emplace_back(container.name());
  const std::string_view annotated =
      pod.metadata().annotations()["kubectl.kubernetes.io/default-container"];
  if (!annotated.empty()) return std::string(annotated);
  if (names.size() < 2) return {};
  say("lookout: container {} of {}; -c chooses another one\n", names.front(),
      fmt::join(names, ", "));
  return names.front();
}

int print_log(const ConnectionFlags& connection, LogFlags flags) {
  const rest::Client client{connection.config()};
  const auto pods =
      client.resource<Pod>(flags.ns.empty() ? client.config().default_namespace : flags.ns);
  if (flags.options.container.empty())
    flags.options.container = default_container(pods.get(flags.pod));
  rest::LogStream log = pods.logs(flags.pod, flags.options);
  for (const rest::LogLine& line : log) {
    std::fwrite(line.text.data(), 1, line.text.size(), stdout);
    if (!line.continued) std::fputc('\n', stdout);
    // Nobody knows when the next line comes.
    if (flags.options.follow) std::fflush(stdout);
    if (std::ferror(stdout) != 0) break;
  }
  return 0;
}

/// Throws CLI::ValidationError.
void check(LogFlags& flags) {
  if (const auto slash = flags.pod.find('/'); slash != std::string::npos) {
    const std::string resource = flags.pod.substr(0, slash);
    if (resource != "pod" && resource != "pods" && resource != "po") {
      throw CLI::ValidationError(
          "POD", fmt::format("\"{}\" is not a pod: lookout get pods shows their names", flags.pod));
    }
    flags.pod.erase(0, slash + 1);
  }
  if (const std::string problem = check_object_name(flags.pod); !problem.empty())
    throw CLI::ValidationError("POD", problem);
  // As in kubectl, -1 stands for all lines.
  if (flags.tail.value_or(-1) >= 0) flags.options.tail_lines = flags.tail;
  flags.options.since = std::chrono::ceil<std::chrono::seconds>(flags.since);
}

}  // namespace

void add_logs(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* command = app.add_subcommand("logs", "Print the log of a container");
  const auto flags = std::make_shared<LogFlags>();
  command->add_option("pod", flags->pod, "The pod: web-1 or pod/web-1")
      ->type_name("POD")
      ->required();
  command
      ->add_option("-n,--namespace", flags->ns,
                   "Use this namespace (default: that of the context, or default)")
      ->check(check_namespace)
      ->type_name("NS");
  command
      ->add_option("-c,--container", flags->options.container,
                   "The container (default: that of the pod's annotation, or the first one)")
      ->type_name("NAME");
  command->add_flag("-f,--follow", flags->options.follow, "Continue with new lines, until Ctrl-C");
  command->add_flag("-p,--previous", flags->options.previous,
                    "The log of the container before its last restart");
  command->add_option("--tail", flags->tail, "Only this many lines from the end; -1: all lines")
      ->type_name("LINES");
  add_duration(*command, "--since", flags->since, "Only lines of this time before now: 10m");
  command->add_flag("--timestamps", flags->options.timestamps, "Begin each line with its time");
  command->footer(
      "A server without nodes, such as lookout serve, has no logs.\n\n"
      "Examples:\n"
      "  lookout logs web-1 -n shop -f --tail 100\n"
      "  lookout logs web-1 -c sidecar --since 1h --timestamps\n"
      "  lookout logs web-1 -p");
  command->callback([flags, &connection, &action] {
    check(*flags);
    action = [flags, &connection] { return print_log(connection, *flags); };
  });
}

}  // namespace lookout::cmd
