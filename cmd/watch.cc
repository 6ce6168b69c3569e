#include "cmd/watch.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "cmd/columns.h"
#include "cmd/commands.h"
#include "cmd/custom_columns.h"
#include "cmd/duration.h"
#include "cmd/listen_address.h"
#include "cmd/metrics.h"
#include "cmd/object_name.h"
#include "cmd/say.h"
#include "cmd/stop_signals.h"
#include "lookout/api/fields.h"
#include "lookout/base/error.h"
#include "lookout/base/json_text.h"
#include "lookout/informer/shared_informer_factory.h"

namespace lookout::cmd {
namespace {

/// Prints a handler's notifications. Called on the handler's threads, one call at a time.
class EventPrinter {
 public:
  EventPrinter(const api::Resource& resource, Columns columns, bool json, bool with_namespace,
               const WatchFlags& flags)
      : resource_(resource),
        columns_(std::move(columns)),
        json_(json),
        with_namespace_(with_namespace),
        flags_(flags) {
    // A large buffer: it is flushed when no more lines are queued.
    std::setvbuf(stdout, nullptr, _IOFBF, 1 << 16);
    Row names;
    if (flags_.format.columns) {
      names = flags_.format.columns->headers();
    } else if (!json_ && flags_.format.is_table()) {
      names = columns_.names();
      if (with_namespace_) names.insert(names.begin(), "NAMESPACE");
      if (flags_.shows_events) names.insert(names.begin(), "EVENT");
      flags_.labels.add_names(names);
    }
    if (names.empty()) return;
    // (The line sets the widths of the columns.)
    const std::string line = table_.line(std::move(names));
    if (flags_.shows_headers) write(line);
  }

  void event(std::string_view type, const api::Object& object, bool initial) {
    if (json_) {
      write(json_line(type, object.key(), object.resource_version(), initial, object));
      return;
    }
    if (!flags_.format.is_table()) {
      try {
        write(formatted(object));
      } catch (const Error& e) {
        say("lookout: {}: {}\n", name_of(resource_, object.name()), e.what());
      }
      return;
    }
    const auto now =
        std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
    Row row = columns_.values(object, now);
    if (with_namespace_) row.insert(row.begin(), std::string(object.ns()));
    if (flags_.shows_events) row.insert(row.begin(), std::string(type));
    flags_.labels.add_values(row, object["metadata"]["labels"]);
    write(table_.line(std::move(row)));
  }

  void synced(const std::string& resource_version) {
    if (json_) {
      write(json_line("SYNCED", "", resource_version, false, {}));
    } else if (flags_.shows_events) {
      write("SYNCED\n");
    }
    flush();
  }

  void flush() { std::fflush(stdout); }
  /// Whether standard output is still open.
  bool good() const { return std::ferror(stdout) == 0; }

 private:
  static void write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

  /// Throws Error if a template does not fit the object.
  std::string formatted(const api::Object& object) {
    if (flags_.format.columns) return table_.line(flags_.format.columns->values(object.body()));
    ObjectPrinter printer(flags_.format, flags_.shows_managed_fields, true);
    printer.add(resource_, object);
    const bool separates =
        flags_.format.kind == OutputFormat::Kind::kYaml && std::exchange(has_printed_, true);
    return (separates ? "---\n" : "") + printer.text(true);
  }

  static std::string json_line(std::string_view type, std::string_view key,
                               std::string_view resource_version, bool initial,
                               const api::Object& object) {
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    writer.StartObject();
    base::write_text(writer, "type", type);
    base::write_text(writer, "key", key);
    base::write_text(writer, "resourceVersion", resource_version);
    writer.Key("initial");
    writer.Bool(initial);
    writer.Key("object");
    const std::string json = object.to_json();
    writer.RawValue(json.data(), json.size(), rapidjson::kObjectType);
    writer.EndObject();
    return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
  }

  const api::Resource& resource_;
  Columns columns_;
  bool json_;
  bool with_namespace_;
  const WatchFlags& flags_;
  StreamingTable table_;
  bool has_printed_ = false;
};

}  // namespace

int watch_objects(const ConnectionFlags& connection, const std::string& metrics_listen,
                  const WatchFlags& flags) {
  const Target& target = flags.selection.targets.front();
  StopSignals signals;
  const rest::Client client{connection.config()};
  const api::Resource resource = ResourceFinder(client).find(target.resource);

  informer::FactoryOptions options;
  options.resync_period = flags.resync;
  options.ns = flags.selection.namespace_of(resource, client);
  options.label_selector = flags.selection.label_selector;
  options.field_selector = flags.selection.field_selector;
  if (!target.names.empty()) {
    if (!options.field_selector.empty()) options.field_selector += ',';
    options.field_selector += "metadata.name=" + api::fields::escape_value(target.names.front());
  }
  {
    // An informer retries forever. Probe once, to report errors at startup.
    rest::ListOptions probe;
    probe.limit = 1;
    probe.label_selector = options.label_selector;
    probe.field_selector = options.field_selector;
    client.resource(resource, options.ns).list(probe);
  }

  const bool json = flags.output == "json";
  EventPrinter printer(resource, json ? Columns(resource) : Columns(resource, client), json,
                       resource.namespaced && flags.selection.all_namespaces, flags);
  informer::SharedInformerFactory factory(client, options);
  const auto informer = factory.for_resource(resource);
  std::optional<MetricsServer> metrics;
  if (!metrics_listen.empty()) metrics.emplace(metrics_listen, std::vector{informer});

  informer::HandlerRegistration registration;
  std::stop_source done;
  const auto after = [&] {
    if (!printer.good()) done.request_stop();
    if (registration.backlog() <= 1) printer.flush();
  };
  informer::EventHandler<api::Object> handler;
  handler.name = "watch";
  handler.on_add = [&](const api::Object& object, informer::Origin origin) {
    const bool initial = origin == informer::Origin::kInitialList;
    if (initial && flags.only_changes) return;
    printer.event("ADDED", object, initial);
    if (!initial) after();
  };
  handler.on_update = [&](const api::Object&, const api::Object& object) {
    printer.event("MODIFIED", object, false);
    after();
  };
  handler.on_delete = [&](const api::Object& object) {
    printer.event("DELETED", object, false);
    after();
  };
  handler.on_synced = [&] {
    printer.synced(informer->last_sync_resource_version());
    if (flags.exit_after_sync) done.request_stop();
    after();
  };
  registration = informer->add_handler(std::move(handler));
  factory.start();

  const std::stop_callback forward(signals.token(), [&] { done.request_stop(); });
  wait_for_stop(done.get_token());
  factory.shutdown();
  printer.flush();
  return flags.exit_after_sync && !registration.has_synced() ? 1 : 0;
}

void add_watch(CLI::App& app, const ConnectionFlags& connection, const std::string& metrics_listen,
               Action& action) {
  CLI::App* command = app.add_subcommand("watch", "Follow objects as they change");
  const auto flags = std::make_shared<WatchFlags>();
  flags->selection.add_to(*command)->required();
  command->add_option("-o,--output", flags->output, "table or json (one object per line)")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  flags->labels.add_to(*command);
  add_duration(*command, "--resync", flags->resync, "Show everything again this often: 10m");
  command->add_flag("--exit-after-sync", flags->exit_after_sync, "Stop after the existing objects");
  command->footer(
      "Existing objects are printed as ADDED, followed by SYNCED and then by changes, until "
      "Ctrl-C.\n"
      "If the server becomes unavailable, lookout reconnects and continues.\n\n"
      "Examples:\n"
      "  lookout watch pods -A\n"
      "  lookout watch pods -n shop -l app=web -o json | jq -c '[.type,.key]'\n"
      "  lookout watch nodes --exit-after-sync --kubeconfig ~/.kube/config");
  command->callback([flags, &connection, &metrics_listen, &action] {
    flags->selection.check();
    flags->selection.check_for_watch();
    if (!metrics_listen.empty()) parse_listen_address(metrics_listen, "--metrics-listen");
    action = [flags, &connection, &metrics_listen] {
      return watch_objects(connection, metrics_listen, *flags);
    };
  });
}

}  // namespace lookout::cmd
