#include "cmd/registry/dubbo_commands.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdio>
#include <map>
#include <string_view>

#include "cmd/columns.h"
#include "cmd/stop_signals.h"
#include "lookout/registry/dubbo/client.h"

namespace lookout::cmd::registry_cmd {
namespace {

using registry::dubbo::Client;
using registry::dubbo::ClientOptions;
using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

ClientOptions observer(const rest::Client& client, const Flags& flags) {
  ClientOptions out;
  out.observer = true;
  out.namespaces = {flags.all_namespaces ? ""
                    : flags.ns.empty()   ? client.config().default_namespace
                                         : flags.ns};
  out.on_malformed = [](const registry::Malformed& malformed) {
    fmt::print(stderr, "lookout: {}/{}: {}\n", malformed.ns, malformed.name, malformed.reason);
  };
  // An informer goes on trying for ever. What is wrong from the start is said at once.
  rest::ListOptions one;
  one.limit = 1;
  client.resource(api::Resource(api::find_builtin_by_name("pods")->type()), out.namespaces.front())
      .list(one);
  return out;
}

ClientOptions writer(const Flags& flags) {
  ClientOptions out;
  out.role = registry::dubbo::Role::kProvider;
  out.pod = {flags.ns, flags.pod};
  return out;
}

void text(JsonWriter& writer, const char* key, std::string_view value) {
  writer.Key(key);
  writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

/// "com.example.User" of "/dubbo/com.example.User/providers/...".
std::string_view service_of(std::string_view key) {
  if (!key.starts_with('/')) return {};
  key.remove_prefix(1);
  const auto group = key.find('/');
  if (group == std::string_view::npos) return {};
  key.remove_prefix(group + 1);
  return key.substr(0, key.find('/'));
}

}  // namespace

int dubbo_register(const ConnectionFlags& connection, const Flags& flags) {
  Client client(rest::Client(connection.config()), writer(flags));
  client.create(flags.name, flags.value);
  fmt::print("{} registered\n", flags.name);
  return 0;
}

int dubbo_deregister(const ConnectionFlags& connection, const Flags& flags) {
  if (flags.name.empty()) throw Error("--style dubbo: which key? Give it as NAME");
  Client client(rest::Client(connection.config()), writer(flags));
  client.remove(flags.name);
  fmt::print("{} deregistered\n", flags.name);
  return 0;
}

int dubbo_get(const ConnectionFlags& connection, const Flags& flags) {
  const rest::Client rest(connection.config());
  Client client(rest, observer(rest, flags));
  const auto records = client.get_children(flags.name);
  if (flags.output == "json") {
    rapidjson::StringBuffer buffer;
    JsonWriter json(buffer);
    json.StartArray();
    for (const auto& record : records) {
      json.StartObject();
      text(json, "key", record.key);
      text(json, "value", record.value);
      json.EndObject();
    }
    json.EndArray();
    fmt::print("{}\n", buffer.GetString());
  } else if (records.empty()) {
    fmt::print(stderr, "No keys with the prefix {} found.\n", flags.name);
  } else {
    std::vector<Row> rows = {{"KEY", "VALUE"}};
    for (const auto& record : records) rows.push_back({record.key, record.value});
    fmt::print("{}", align(rows));
  }
  return 0;
}

int dubbo_list(const ConnectionFlags& connection, const Flags& flags) {
  const rest::Client rest(connection.config());
  Client client(rest, observer(rest, flags));
  std::map<std::string, std::size_t> services;
  for (const auto& record : client.get_children("")) {
    const std::string_view service = service_of(record.key);
    if (service.empty()) continue;
    const bool instance = record.key.find("/providers/") != std::string::npos;
    services[std::string(service)] += instance ? 1u : 0u;
  }
  if (flags.output == "json") {
    rapidjson::StringBuffer buffer;
    JsonWriter json(buffer);
    json.StartArray();
    for (const auto& [service, instances] : services) {
      json.StartObject();
      text(json, "service", service);
      json.Key("instances");
      json.Uint64(instances);
      json.EndObject();
    }
    json.EndArray();
    fmt::print("{}\n", buffer.GetString());
  } else if (services.empty()) {
    fmt::print(stderr, "No services found.\n");
  } else {
    std::vector<Row> rows = {{"SERVICE", "INSTANCES"}};
    for (const auto& [service, instances] : services) {
      rows.push_back({service, std::to_string(instances)});
    }
    fmt::print("{}", align(rows));
  }
  return 0;
}

int dubbo_watch(const ConnectionFlags& connection, const Flags& flags) {
  StopSignals signals;
  const rest::Client rest(connection.config());
  Client client(rest, observer(rest, flags));
  auto watcher = client.watch_with_prefix(flags.name, registry::dubbo::Begin::kWithWhatIsThere);
  StreamingTable table;
  if (flags.output == "table") fmt::print("{}", table.line({"EVENT", "KEY", "VALUE", "POD"}));
  while (std::ferror(stdout) == 0) {
    const auto event = watcher.next(signals.token());
    if (!event) break;
    const char* type = registry::dubbo::to_string(event->type);
    if (flags.output == "json") {
      rapidjson::StringBuffer buffer;
      JsonWriter json(buffer);
      json.StartObject();
      text(json, "type", type);
      text(json, "key", event->key);
      text(json, "value", event->value);
      text(json, "pod", event->pod);
      json.EndObject();
      fmt::print("{}\n", buffer.GetString());
    } else {
      fmt::print("{}", table.line({type, event->key, event->value, event->pod}));
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace lookout::cmd::registry_cmd
