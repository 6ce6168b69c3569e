#include "cmd/registry/instance_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "cmd/closest.h"
#include "cmd/columns.h"
#include "cmd/printable.h"
#include "cmd/registry/discovery.h"
#include "cmd/registry/instance_json.h"
#include "cmd/say.h"
#include "cmd/stop_signals.h"
#include "cmd/terminal.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/meta/v1.h"
#include "lookout/registry/kratos/registry.h"

namespace lookout::cmd::registry_cmd {
namespace {

using registry::InstanceSet;

std::string or_none(std::string value) {
  return value.empty() ? "<none>" : printable(std::move(value));
}

std::string table(const InstanceSet& set) {
  std::vector<Row> rows = {{"POD", "ID", "VERSION", "ZONE", "READY", "ENDPOINTS", "METADATA"}};
  for (const auto& i : set) {
    std::vector<std::string> metadata;
    metadata.reserve(i.metadata.size());
    for (const auto& [key, value] : i.metadata) metadata.push_back(key + "=" + value);
    std::vector<std::string_view> endpoints;
    endpoints.reserve(i.endpoints.size());
    for (const auto& endpoint : i.endpoints) endpoints.push_back(endpoint.text());
    rows.push_back({or_none(i.origin), or_none(i.id), or_none(i.version), or_none(i.zone),
                    i.ready ? "true" : "false",
                    or_none(fmt::format("{}", fmt::join(endpoints, ","))),
                    or_none(fmt::format("{}", fmt::join(metadata, ",")))});
  }
  return align(rows);
}

std::string joined(const std::set<std::string>& values) {
  return or_none(fmt::format("{}", fmt::join(values, ",")));
}

/// The row of a service in `ls`.
Row summary(const InstanceSet& set) {
  std::size_t ready = 0;
  std::set<std::string> versions;
  std::set<std::string> zones;
  for (const auto& instance : set) {
    ready += instance.ready ? 1u : 0u;
    if (!instance.version.empty()) versions.insert(instance.version);
    if (!instance.zone.empty()) zones.insert(instance.zone);
  }
  return {printable(set.service()), std::to_string(set.size()), std::to_string(ready),
          joined(versions), joined(zones)};
}

std::string json_of(const InstanceSet& set) {
  return json_text([&](JsonWriter& writer) { write_set(writer, set); });
}

/// The line above the table in `watch`.
std::string headline(const InstanceSet& set) {
  const registry::Freshness freshness = set.freshness();
  std::string out = fmt::format("{}: {} instance{}", printable(set.service()), set.size(),
                                set.size() == 1 ? "" : "s");
  if (!freshness.live) {
    out += fmt::format(
        " (stale since {}{}{})",
        api::format_time(std::chrono::time_point_cast<std::chrono::microseconds>(freshness.since)),
        freshness.error.empty() ? "" : ": ", printable(freshness.error));
  }
  return out;
}

/// The reason why a pod that announces a kratos service is not served.
std::string obstacle(const k8s::core::v1::Pod& pod) {
  const auto status = pod.status();
  if (pod.metadata().deletion_timestamp()) return "it is terminating";
  if (status.phase() != "Running") {
    return fmt::format("its phase is {}, not Running",
                       status.phase().empty() ? "unknown" : printable(std::string(status.phase())));
  }
  if (status.pod_ip().empty()) return "it has no address yet";
  for (const auto condition : status.conditions()) {
    if (condition.type() == "Ready" && condition.status() == "True") {
      return "its annotations cannot be read";
    }
  }
  return "it is not ready (--include-unready shows it)";
}

/// Advice if there are no instances; completes the message.
std::string why_none(const rest::Client& client, const Flags& flags,
                     const std::vector<std::string>& services) {
  const bool announced = std::ranges::find(services, flags.name) != services.end();
  if (announced && flags.style == "kratos") {
    rest::ListOptions some;
    some.limit = 5;
    some.label_selector = fmt::format("{}={}", registry::kratos::kServiceNameLabel, flags.name);
    std::string out = ". It is announced by pods that cannot serve:";
    const auto pods = client.resource(k8s::core::v1::Pod::kResource, namespace_of(client, flags));
    for (const auto& pod : pods.list(some).items) {
      out += fmt::format("\n  {}: {}", printable(pod.key()), obstacle(k8s::core::v1::Pod(pod)));
    }
    return out;
  }
  if (announced) return flags.include_unready ? "." : ". --include-unready shows those not ready.";
  // Providers of dubbo are called "group/interface:version".
  const auto full = std::ranges::find_if(services, [&](std::string_view service) {
    service.remove_prefix(service.find('/') + 1);
    return service.substr(0, service.find(':')) == flags.name;
  });
  const std::string meant = full != services.end() ? *full : closest(flags.name, services);
  if (!meant.empty()) return fmt::format(": did you mean {}?", printable(meant));
  const std::string ns = namespace_of(client, flags);
  if (!ns.empty()) return fmt::format(" in the namespace {}. -A looks in all namespaces.", ns);
  return ". `lookout registry ls -A` lists what there is.";
}

}  // namespace

std::map<std::string, std::string> metadata_of(const Flags& flags) {
  std::map<std::string, std::string> out;
  for (const auto& pair : flags.metadata) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw CLI::ValidationError("--metadata", "\"" + pair + "\" is not KEY=VALUE");
    }
    out[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return out;
}

int register_instance(const ConnectionFlags& connection, const Flags& flags) {
  registry::ServiceInstance instance;
  instance.id = flags.id;
  instance.name = flags.name;
  instance.version = flags.version;
  instance.endpoints.assign(flags.endpoints.begin(), flags.endpoints.end());
  instance.metadata = metadata_of(flags);
  const rest::Client client(connection.config());
  registry::Options options;
  options.pod = find_pod(client, flags);
  const std::string pod = options.pod.ns + "/" + options.pod.name;
  registry::kratos::Registry(client, std::move(options)).register_instance(instance);
  fmt::print("{} registered on {}\n", flags.name, pod);
  return 0;
}

int deregister_instance(const ConnectionFlags& connection, const Flags& flags) {
  const rest::Client client(connection.config());
  registry::Options options;
  options.pod = find_pod(client, flags);
  const std::string pod = options.pod.ns + "/" + options.pod.name;
  if (!flags.name.empty()) {
    const auto object =
        client.resource(k8s::core::v1::Pod::kResource, options.pod.ns).get(options.pod.name);
    const auto announced = object.labels()[registry::kratos::kServiceNameLabel].as_string();
    if (announced != flags.name) {
      throw Error(fmt::format("{} announces {}, not {}: nothing was changed", pod,
                              announced.empty() ? "nothing" : announced, flags.name));
    }
  }
  registry::kratos::Registry(client, std::move(options)).deregister_instance({});
  fmt::print("{} deregistered\n", pod);
  return 0;
}

int get_service(const ConnectionFlags& connection, const Flags& flags) {
  const rest::Client client(connection.config());
  probe(client, flags);
  const auto told = std::make_shared<Told::element_type>(0);
  const auto registry = make_discovery(client, flags, flags.include_unready, told);
  const auto found = registry->get_service(flags.name);
  finish_telling(*registry, told);
  if (flags.output == "json") {
    fmt::print("{}\n", json_of(*found));
  } else if (found->empty()) {
    say("No instances of {} found{}\n", flags.name, why_none(client, flags, registry->services()));
  } else {
    fmt::print("{}", table(*found));
  }
  return 0;
}

int list_services(const ConnectionFlags& connection, const Flags& flags) {
  const rest::Client client(connection.config());
  probe(client, flags);
  const auto told = std::make_shared<Told::element_type>(0);
  const auto registry = make_discovery(client, flags, true, told);
  std::vector<registry::InstanceSetPtr> sets;
  for (const auto& name : registry->services()) sets.push_back(registry->get_service(name));
  finish_telling(*registry, told);
  if (flags.output == "json") {
    fmt::print("{}\n", json_text([&](JsonWriter& writer) {
                 writer.StartArray();
                 for (const auto& set : sets) write_set(writer, *set);
                 writer.EndArray();
               }));
  } else if (sets.empty()) {
    const std::string ns = namespace_of(client, flags);
    say("No services (of style {}) found in {}\n", flags.style,
        ns.empty() ? "any namespace."
                   : fmt::format("the namespace {}. -A looks in all namespaces.", ns));
  } else {
    std::vector<Row> rows = {{"SERVICE", "INSTANCES", "READY", "VERSIONS", "ZONES"}};
    for (const auto& set : sets) rows.push_back(summary(*set));
    fmt::print("{}", align(rows));
  }
  return 0;
}

int watch_service(const ConnectionFlags& connection, const Flags& flags) {
  StopSignals signals;
  const rest::Client client(connection.config());
  probe(client, flags);
  const auto registry = make_discovery(client, flags, flags.include_unready);
  auto watcher = registry->watch(flags.name);
  registry::InstanceSetPtr shown = registry->get_service(flags.name);
  std::optional<LiveScreen> screen;
  if (flags.output == "table" && stdout_is_terminal()) screen.emplace();
  bool was_live = true;
  bool had_reason = false;
  std::size_t was_wide = 0;
  const auto show = [&] {
    const registry::Freshness freshness = shown->freshness();
    was_live = freshness.live;
    had_reason = !freshness.error.empty();
    was_wide = terminal_columns();
    if (flags.output == "json") {
      fmt::print("{}\n", json_of(*shown));
    } else if (screen) {
      screen->show(headline(*shown) + "\n\n" + (shown->empty() ? "" : table(*shown)));
    } else {
      fmt::print("{}\n{}\n", headline(*shown), shown->empty() ? "" : table(*shown));
    }
    std::fflush(stdout);
  };
  show();
  while (std::ferror(stdout) == 0) {
    const auto next = watcher.next_for(std::chrono::seconds(1), signals.token());
    if (next && next.set()->same_instances(*shown)) continue;
    if (next) {
      shown = next.set();
    } else if (next.outcome() != registry::NextOutcome::kTimedOut) {
      break;
    } else {
      const registry::Freshness now = shown->freshness();
      // The headline has the reason, which is known a little later.
      const bool new_reason = !now.live && !now.error.empty() && !had_reason;
      const bool same = now.live == was_live && (!new_reason || flags.output == "json");
      if (same && (!screen || terminal_columns() == was_wide)) continue;
    }
    show();
  }
  return 0;
}

}  // namespace lookout::cmd::registry_cmd
