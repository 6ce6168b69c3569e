#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cmd/commands.h"
#include "cmd/object_name.h"
#include "cmd/say.h"
#include "cmd/server_table.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/detail/yaml_writer.h"
#include "lookout/api/status.h"
#include "lookout/api/symbols.h"

namespace lookout::cmd {
namespace {

struct GetFlags {
  SelectionFlags selection;
  std::string output = "table";
  bool shows_managed_fields = false;
};

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// Formats objects one after another and prints them at the end, so that an error does not leave partial
/// output.
class Printer {
 public:
  Printer(api::Resource resource, const GetFlags& flags, bool list)
      : resource_(std::move(resource)),
        format_(flags.output),
        shows_managed_fields_(flags.shows_managed_fields),
        list_(list) {}

  void begin() {
    if (!list_) return;
    if (format_ == "json") add("{\n    \"apiVersion\": \"v1\",\n    \"items\": [");
    if (format_ == "yaml") add("apiVersion: v1\nitems:");
  }

  void object(const api::Object& object) {
    ++count_;
    if (format_ == "name") {
      add(name_of(resource_, object.name()) + "\n");
      return;
    }
    const api::Object shown =
        shows_managed_fields_
            ? object
            : api::with_metadata(object, {{api::sym::kManagedFields, std::monostate()}});
    if (format_ == "json") {
      json(shown);
    } else {
      yaml(shown);
    }
  }

  void end() {
    if (format_ == "json" && list_) {
      add(
          fmt::format("{}],\n    \"kind\": \"List\",\n    \"metadata\": {{\n        "
                      "\"resourceVersion\": \"\"\n    }}\n}}\n",
                      count_ == 0 ? "" : "\n    "));
    } else if (format_ == "yaml" && list_) {
      add(fmt::format("{}kind: List\nmetadata:\n  resourceVersion: \"\"\n",
                      count_ == 0 ? " []\n" : ""));
    }
    print(text_);
  }

 private:
  void add(std::string_view text) { text_ += text; }

  void json(const api::Object& object) {
    std::string text = object.to_pretty_json(4);
    if (!list_) {
      add(text + "\n");
      return;
    }
    // Strings in JSON contain no line breaks: each one starts a line to indent.
    add(count_ > 1 ? ",\n        " : "\n        ");
    add(indented(text, "        "));
  }

  void yaml(const api::Object& object) {
    const std::string text = api::detail::to_yaml(object.to_json());
    if (!list_) {
      add(text);
      return;
    }
    if (count_ == 1) add("\n");
    add("- " + indented(text.substr(0, text.size() - 1), "  ") + "\n");
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
  bool shows_managed_fields_;
  bool list_;
  std::size_t count_ = 0;
  std::string text_;
};

int run(const ConnectionFlags& connection, const GetFlags& flags) {
  const rest::Client client{connection.config()};
  const api::Resource resource = resolve_resource(client, flags.selection.resource);
  std::string ns;
  if (resource.namespaced && !flags.selection.all_namespaces) {
    ns = flags.selection.ns.empty() ? client.config().default_namespace : flags.selection.ns;
  }
  if (flags.output == "table") {
    const ServerTable table(client, resource, ns, flags.selection);
    if (table.rows().empty()) {
      say("No resources found{}.\n", ns.empty() ? "" : fmt::format(" in {} namespace", ns));
    } else {
      print(table.text());
    }
    return 0;
  }
  const rest::ResourceClient objects = client.resource(resource, ns);
  if (!flags.selection.name.empty()) {
    Printer printer(resource, flags, false);
    printer.object(objects.get(flags.selection.name));
    printer.end();
    return 0;
  }
  Printer printer(resource, flags, true);
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
  printer.end();
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
  command->add_flag("--show-managed-fields", flags->shows_managed_fields,
                    "Show managedFields in json and yaml");
  command->footer(
      "Examples:\n"
      "  lookout get pods -A\n"
      "  lookout get deploy -n shop -l 'tier in (front,back)' -o json\n"
      "  lookout get crontabs.stable.example.com my-tab -o yaml");
  command->callback([flags, &connection, &action] {
    flags->selection.check();
    const bool selects =
        !flags->selection.label_selector.empty() || !flags->selection.field_selector.empty();
    if (selects && !flags->selection.name.empty())
      throw CLI::ValidationError("NAME", "name cannot be provided when a selector is specified");
    action = [flags, &connection] { return run(connection, *flags); };
  });
}

}  // namespace lookout::cmd
