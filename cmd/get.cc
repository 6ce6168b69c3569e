#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cmd/columns.h"
#include "cmd/commands.h"
#include "cmd/yaml.h"
#include "lookout/api/status.h"

namespace lookout::cmd {
namespace {

struct GetFlags {
  SelectionFlags selection;
  std::string output = "table";
};

// kubectl's --chunk-size.
constexpr std::int64_t kPageSize = 500;

api::Time now() {
  return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// "pod/web-1", "deployment.apps/web".
std::string name_of(const api::Resource& resource, const api::Object& object) {
  std::string kind = resource.kind;
  for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("{}{}{}/{}", kind, resource.group.empty() ? "" : ".", resource.group,
                     object.name());
}

/// Prints objects one after another, in one of the formats.
class Printer {
 public:
  Printer(api::Resource resource, std::string format, bool list, bool with_namespace)
      : resource_(std::move(resource)),
        format_(std::move(format)),
        list_(list),
        with_namespace_(with_namespace) {}

  void begin() {
    if (!list_) return;
    if (format_ == "json") print("{\n    \"apiVersion\": \"v1\",\n    \"items\": [");
    if (format_ == "yaml") print("apiVersion: v1\nitems:");
  }

  void object(const api::Object& object) {
    ++count_;
    if (format_ == "name") {
      print(name_of(resource_, object) + "\n");
    } else if (format_ == "json") {
      json(object);
    } else if (format_ == "yaml") {
      yaml(object);
    } else {
      Row row = column_values(resource_, object, now());
      if (with_namespace_) row.insert(row.begin(), std::string(object.ns()));
      rows_.push_back(std::move(row));
    }
  }

  void end(const std::string& where) {
    if (format_ == "json" && list_) {
      print(
          fmt::format("{}],\n    \"kind\": \"List\",\n    \"metadata\": {{\n        "
                      "\"resourceVersion\": \"\"\n    }}\n}}\n",
                      count_ == 0 ? "" : "\n    "));
    } else if (format_ == "yaml" && list_) {
      print(fmt::format("{}kind: List\nmetadata:\n  resourceVersion: \"\"\n",
                        count_ == 0 ? " []\n" : ""));
    } else if (format_ == "table" && count_ == 0) {
      fmt::print(stderr, "No resources found{}.\n", where);
    } else if (format_ == "table") {
      Row names = column_names(resource_);
      if (with_namespace_) names.insert(names.begin(), "NAMESPACE");
      rows_.insert(rows_.begin(), std::move(names));
      print(align(rows_));
    }
  }

 private:
  void json(const api::Object& object) const {
    std::string text = object.to_pretty_json(4);
    if (!list_) {
      print(text + "\n");
      return;
    }
    // No string in JSON has a line break of its own: every one starts a line to indent.
    print(count_ > 1 ? ",\n        " : "\n        ");
    print(indented(text, "        "));
  }

  void yaml(const api::Object& object) const {
    const std::string text = to_yaml(object.body());
    if (!list_) {
      print(text);
      return;
    }
    if (count_ == 1) print("\n");
    print("- " + indented(text.substr(0, text.size() - 1), "  ") + "\n");
  }

  static std::string indented(std::string_view text, std::string_view indent) {
    std::string out;
    for (const char c : text) {
      out += c;
      if (c == '\n') out += indent;
    }
    return out;
  }

  api::Resource resource_;
  std::string format_;
  bool list_;
  bool with_namespace_;
  std::size_t count_ = 0;
  std::vector<Row> rows_;
};

int run(const ConnectionFlags& connection, const GetFlags& flags) {
  const rest::Client client{connection.config()};
  const api::Resource resource = resolve_resource(client, flags.selection.resource);
  std::string ns;
  if (resource.namespaced && !flags.selection.all_namespaces) {
    ns = flags.selection.ns.empty() ? client.config().default_namespace : flags.selection.ns;
  }
  const rest::ResourceClient objects = client.resource(resource, ns);
  const bool with_namespace = resource.namespaced && flags.selection.all_namespaces;

  if (!flags.selection.name.empty()) {
    Printer printer(resource, flags.output, false, with_namespace);
    printer.object(objects.get(flags.selection.name));
    printer.end("");
    return 0;
  }
  Printer printer(resource, flags.output, true, with_namespace);
  rest::ListOptions options;
  options.label_selector = flags.selection.label_selector;
  options.field_selector = flags.selection.field_selector;
  options.limit = kPageSize;
  rest::List<> page = objects.list(options);
  printer.begin();
  for (;;) {
    for (const auto& object : page.items) printer.object(object);
    if (page.continue_token.empty()) break;
    options.continue_token = page.continue_token;
    page = objects.list(options);
  }
  printer.end(ns.empty() ? "" : fmt::format(" in {} namespace", ns));
  return 0;
}

}  // namespace

void add_get(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* command = app.add_subcommand("get", "Show objects");
  const auto flags = std::make_shared<GetFlags>();
  flags->selection.add_to(*command);
  command->add_option("-o,--output", flags->output, "table, json, yaml or name")
      ->check(CLI::IsMember({"table", "json", "yaml", "name"}))
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  lookout get pods -A\n"
      "  lookout get deploy -n shop -l 'tier in (front,back)' -o json\n"
      "  lookout get crontabs.stable.example.com my-tab -o yaml");
  command->callback([flags, &connection, &action] {
    flags->selection.check();
    action = [flags, &connection] { return run(connection, *flags); };
  });
}

}  // namespace lookout::cmd
