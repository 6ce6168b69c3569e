#include "cmd/registry/dubbo_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cmd/columns.h"
#include "cmd/printable.h"
#include "cmd/registry/discovery.h"
#include "cmd/registry/instance_commands.h"
#include "cmd/registry/instance_json.h"
#include "cmd/say.h"
#include "cmd/stop_signals.h"
#include "lookout/registry/dubbo/client.h"
#include "lookout/registry/dubbo/provider_url.h"

namespace lookout::cmd::registry_cmd {
namespace {

using registry::dubbo::Client;
using registry::dubbo::ClientOptions;
using registry::dubbo::Generation;

ClientOptions observer(const rest::Client& client, const Flags& flags) {
  ClientOptions out;
  out.observer = true;
  out.namespaces = {flags.all_namespaces ? registry::kAllNamespaces : namespace_of(client, flags)};
  out.on_malformed = [](const registry::Malformed& malformed) {
    say("lookout: {}/{}: {}\n", malformed.ns, malformed.name, malformed.reason);
  };
  probe(client, flags);
  return out;
}

ClientOptions writer(const rest::Client& client, const Flags& flags) {
  ClientOptions out;
  out.role = registry::dubbo::Role::kProvider;
  out.pod = find_pod(client, flags);
  if (flags.generation == "1.4") out.generation = Generation::kDubbo14;
  if (flags.generation == "1.5") out.generation = Generation::kDubbo15;
  return out;
}

/// The keys of the records: the one that is given, or one for each endpoint.
std::vector<std::string> keys_of(const Flags& flags) {
  if (flags.name.starts_with('/')) return {flags.name};
  std::vector<std::string> out;
  for (const std::string& endpoint : flags.endpoints) {
    auto url = registry::dubbo::ProviderUrl::parse(endpoint);
    if (url.path.empty()) url.path = url.interface;  // that is what a URL's path means
    url.interface = flags.name;
    if (!flags.version.empty()) url.version = flags.version;
    for (auto& [name, value] : metadata_of(flags)) url.parameters[name] = value;
    std::string key = url.key();
    if (std::ranges::find(out, key) == out.end()) out.push_back(std::move(key));
  }
  return out;
}

}  // namespace

int dubbo_register(const ConnectionFlags& connection, const Flags& flags) {
  // Parse the options first: creating the client already changes the pod's labels.
  const std::vector<std::string> keys = keys_of(flags);
  const rest::Client rest(connection.config());
  Client client(rest, writer(rest, flags));
  for (const std::string& key : keys) client.create(key, flags.value);
  fmt::print("{} registered on {}/{}\n", flags.name, client.pod().ns, client.pod().name);
  return 0;
}

int dubbo_deregister(const ConnectionFlags& connection, const Flags& flags) {
  const std::vector<std::string> keys = keys_of(flags);
  const rest::Client rest(connection.config());
  ClientOptions options = writer(rest, flags);
  options.label_pod = false;
  Client client(rest, std::move(options));
  const std::string pod = client.pod().ns + "/" + client.pod().name;
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (!client.remove(key)) missing.push_back(key);
  }
  if (!missing.empty()) {
    throw Error(fmt::format(
        "{} has no record {}: {}", pod, fmt::join(missing, ", "),
        missing.size() == keys.size() ? "nothing was changed" : "the others were removed"));
  }
  fmt::print("{} deregistered from {}\n", flags.name, pod);
  return 0;
}

int dubbo_get(const ConnectionFlags& connection, const Flags& flags) {
  const rest::Client rest(connection.config());
  Client client(rest, observer(rest, flags));
  const auto records = client.get_children(flags.name);
  if (flags.output == "json") {
    fmt::print("{}\n", json_text([&](JsonWriter& json) {
                 json.StartArray();
                 for (const auto& record : records) {
                   json.StartObject();
                   write_text(json, "key", record.key);
                   write_text(json, "value", record.value);
                   json.EndObject();
                 }
                 json.EndArray();
               }));
  } else if (records.empty()) {
    say("No keys with the prefix {} found.\n", flags.name);
  } else {
    std::vector<Row> rows = {{"KEY", "VALUE"}};
    for (const auto& record : records)
      rows.push_back({printable(record.key), printable(record.value)});
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
      fmt::print("{}\n", json_text([&](JsonWriter& json) {
                   json.StartObject();
                   write_text(json, "type", type);
                   write_text(json, "key", event->key);
                   write_text(json, "value", event->value);
                   write_text(json, "pod", event->pod);
                   json.EndObject();
                 }));
    } else {
      fmt::print("{}",
                 table.line({type, printable(event->key), printable(event->value), event->pod}));
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace lookout::cmd::registry_cmd
