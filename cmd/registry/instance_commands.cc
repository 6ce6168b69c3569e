#include "cmd/registry/instance_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <set>
#include <string_view>

#include "cmd/columns.h"
#include "cmd/stop_signals.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/registry/services/registry.h"

namespace lookout::cmd::registry_cmd {
namespace {

using registry::InstanceSet;
using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

registry::Options discovery_options(const rest::Client& client, const Flags& flags) {
  registry::Options out;
  if (!flags.all_namespaces) {
    out.ns = flags.ns.empty() ? client.config().default_namespace : flags.ns;
  }
  out.label_selector = flags.label_selector;
  out.include_unready = flags.include_unready;
  out.on_malformed = [](const registry::Malformed& malformed) {
    fmt::print(stderr, "lookout: left out {}/{}: {}\n", malformed.ns, malformed.name,
               malformed.reason);
  };
  return out;
}

std::unique_ptr<registry::Discovery> discovery(const rest::Client& client, const Flags& flags,
                                               bool include_unready) {
  auto options = discovery_options(client, flags);
  options.include_unready |= include_unready;
  if (flags.style == "services") {
    return std::make_unique<registry::services::Registry>(client, std::move(options));
  }
  return std::make_unique<registry::kratos::Registry>(client, std::move(options));
}

/// An informer goes on trying for ever. What is wrong from the start is said at once.
void probe(const rest::Client& client, const Flags& flags) {
  rest::ListOptions one;
  one.limit = 1;
  one.label_selector = flags.label_selector;
  const auto options = discovery_options(client, flags);
  const auto* resource =
      api::find_builtin_by_name(flags.style == "services" ? "endpointslices" : "pods");
  client.resource(api::Resource(resource->type()), options.ns).list(one);
}

registry::kratos::Registry registrar(const ConnectionFlags& connection, const Flags& flags) {
  registry::Options options;
  options.pod = {flags.ns, flags.pod};
  return registry::kratos::Registry(rest::Client(connection.config()), std::move(options));
}

void text(JsonWriter& writer, const char* key, std::string_view value) {
  writer.Key(key);
  writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

void write(JsonWriter& writer, const registry::ServiceInstance& instance) {
  writer.StartObject();
  text(writer, "id", instance.id);
  text(writer, "name", instance.name);
  text(writer, "version", instance.version);
  writer.Key("metadata");
  writer.StartObject();
  for (const auto& [key, value] : instance.metadata) text(writer, key.c_str(), value);
  writer.EndObject();
  writer.Key("endpoints");
  writer.StartArray();
  for (const auto& endpoint : instance.endpoints) writer.String(endpoint.c_str());
  writer.EndArray();
  text(writer, "pod", instance.origin);
  text(writer, "zone", instance.zone);
  writer.Key("ready");
  writer.Bool(instance.ready);
  writer.EndObject();
}

/// One object, without a line break.
std::string to_json(const std::string& service, const InstanceSet& set) {
  rapidjson::StringBuffer buffer;
  JsonWriter writer(buffer);
  writer.StartObject();
  text(writer, "service", service);
  writer.Key("version");
  writer.Uint64(set.version());
  writer.Key("live");
  writer.Bool(set.freshness().live);
  writer.Key("instances");
  writer.StartArray();
  for (const auto& instance : set) write(writer, instance);
  writer.EndArray();
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

std::string or_none(std::string value) { return value.empty() ? "<none>" : value; }

std::string table(const InstanceSet& set) {
  std::vector<Row> rows = {{"POD", "ID", "VERSION", "ZONE", "READY", "ENDPOINTS", "METADATA"}};
  for (const auto& i : set) {
    std::vector<std::string> metadata;
    metadata.reserve(i.metadata.size());
    for (const auto& [key, value] : i.metadata) metadata.push_back(key + "=" + value);
    rows.push_back({or_none(i.origin), or_none(i.id), or_none(i.version), or_none(i.zone),
                    i.ready ? "true" : "false",
                    or_none(fmt::format("{}", fmt::join(i.endpoints, ","))),
                    or_none(fmt::format("{}", fmt::join(metadata, ",")))});
  }
  return align(rows);
}

std::string joined(const std::set<std::string>& values) {
  return or_none(fmt::format("{}", fmt::join(values, ",")));
}

}  // namespace

int register_instance(const ConnectionFlags& connection, const Flags& flags) {
  registry::ServiceInstance instance;
  instance.id = flags.id;
  instance.name = flags.name;
  instance.version = flags.version;
  instance.endpoints = flags.endpoints;
  for (const auto& pair : flags.metadata) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(fmt::format("--metadata {}: it must be KEY=VALUE", pair));
    }
    instance.metadata[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  auto registry = registrar(connection, flags);
  registry.register_instance(instance);
  fmt::print("{} registered\n", flags.name);
  return 0;
}

int deregister_instance(const ConnectionFlags& connection, const Flags& flags) {
  auto registry = registrar(connection, flags);
  registry.deregister_instance({});
  fmt::print("deregistered\n");
  return 0;
}

int get_service(const ConnectionFlags& connection, const Flags& flags) {
  const rest::Client client(connection.config());
  probe(client, flags);
  const auto found = discovery(client, flags, false)->get_service(flags.name);
  if (flags.output == "json") {
    fmt::print("{}\n", to_json(flags.name, *found));
  } else if (found->empty()) {
    fmt::print(stderr, "No instances of {} found.\n", flags.name);
  } else {
    fmt::print("{}", table(*found));
  }
  return 0;
}

int list_services(const ConnectionFlags& connection, const Flags& flags) {
  const rest::Client client(connection.config());
  probe(client, flags);
  const auto registry = discovery(client, flags, true);
  std::vector<Row> rows = {{"SERVICE", "INSTANCES", "READY", "VERSIONS", "ZONES"}};
  std::string json = "[";
  for (const auto& name : registry->services()) {
    const auto found = registry->get_service(name);
    std::size_t ready = 0;
    std::set<std::string> versions;
    std::set<std::string> zones;
    for (const auto& instance : *found) {
      ready += instance.ready ? 1u : 0u;
      if (!instance.version.empty()) versions.insert(instance.version);
      if (!instance.zone.empty()) zones.insert(instance.zone);
    }
    rows.push_back({name, std::to_string(found->size()), std::to_string(ready), joined(versions),
                    joined(zones)});
    json += (json.size() > 1 ? "," : "") + to_json(name, *found);
  }
  if (flags.output == "json") {
    fmt::print("{}]\n", json);
  } else if (rows.size() == 1) {
    fmt::print(stderr, "No services found.\n");
  } else {
    fmt::print("{}", align(rows));
  }
  return 0;
}

int watch_service(const ConnectionFlags& connection, const Flags& flags) {
  StopSignals signals;
  const rest::Client client(connection.config());
  probe(client, flags);
  const auto registry = discovery(client, flags, false);
  auto watcher = registry->watch(flags.name);
  const bool live = flags.output == "table" && isatty(STDOUT_FILENO) == 1;
  registry::InstanceSetPtr shown = registry->get_service(flags.name);
  bool was_live = true;
  const auto show = [&] {
    was_live = shown->freshness().live;
    if (flags.output == "json") {
      fmt::print("{}\n", to_json(flags.name, *shown));
    } else {
      if (live) fmt::print("\x1b[H\x1b[2J");
      fmt::print("{}: {} instances{}\n{}\n", flags.name, shown->size(),
                 was_live ? "" : " (stale: the server cannot be reached)",
                 shown->empty() ? "" : table(*shown));
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
    } else if (shown->freshness().live == was_live) {
      continue;
    }
    show();
  }
  return 0;
}

}  // namespace lookout::cmd::registry_cmd
