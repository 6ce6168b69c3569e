#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "cmd/commands.h"
#include "cmd/manifests.h"
#include "cmd/object_printer.h"
#include "cmd/say.h"
#include "cmd/selection.h"
#include "cmd/server_table.h"
#include "cmd/sorting.h"
#include "cmd/watch.h"
#include "lookout/api/status.h"
#include "lookout/base/error.h"
#include "lookout/rest/error.h"

namespace lookout::cmd {
namespace {

struct GetFlags {
  SelectionFlags selection;
  FileFlags files;
  std::string output = "table";
  OutputFormat format;
  bool shows_managed_fields = false;
  bool watches = false;
  bool watches_only = false;
  bool no_headers = false;
  bool shows_kind = false;
  bool ignores_not_found = false;
  LabelColumns labels;
  /// A path to request instead of objects.
  std::string raw;
  std::string sort_by;
  /// Set by check().
  std::optional<Sorting> sorting;
};

/// A resource, and the names of objects; without names, a list.
struct Query {
  api::Resource resource;
  std::vector<std::string> names;
  /// Of the objects of files; otherwise the namespace that the command line selects.
  std::optional<std::string> ns = {};
};

/// Runs the queries of a command line. Prints at the end, so that an error does not leave partial output.
class Get {
 public:
  Get(const ConnectionFlags& connection, const GetFlags& flags)
      : client_(connection.config()), flags_(flags) {}

  int run() {
    if (!flags_.raw.empty()) {
      const std::string answer = client_.get_raw(flags_.raw);
      std::fwrite(answer.data(), 1, answer.size(), stdout);
      return 0;
    }
    ResourceFinder finder(client_);
    if (!flags_.files.names.empty()) add_manifests(finder);
    for (const Target& target : flags_.selection.targets) {
      for (api::Resource& resource : finder.find_all(target.resource))
        queries_.push_back({std::move(resource), target.names});
    }
    const std::string text = flags_.format.is_table() ? tables() : objects();
    std::fwrite(text.data(), 1, text.size(), stdout);
    for (const std::string& error : errors_) say("lookout: {}\n", error);
    return errors_.empty() ? 0 : 1;
  }

 private:
  /// Objects of one resource and namespace that follow one another become one query.
  void add_manifests(ResourceFinder& finder) {
    const Manifests manifests = read_manifests(flags_.files);
    errors_ = manifests.errors;
    for (const auto& [object, place] : manifests.objects) {
      try {
        api::Resource resource = finder.find(object);
        std::string ns = namespace_of(object, resource, flags_.selection.ns, client_);
        if (queries_.empty() || queries_.back().ns != ns ||
            queries_.back().resource.gvk() != resource.gvk())
          queries_.push_back({std::move(resource), {}, std::move(ns)});
        queries_.back().names.emplace_back(object.name());
      } catch (const Error& e) {
        // The others would fail, too.
        if (rest::is_connection_refused(e) || api::is_unauthorized(e)) throw;
        errors_.push_back(fmt::format("{}: {}", place, e.what()));
      }
    }
  }

  /// Calls `request`. As in kubectl, an error of one request does not affect the others.
  template <class Request>
  void attempt(Request request) {
    try {
      request();
    } catch (const api::StatusError& e) {
      // The others would fail, too.
      if (api::is_unauthorized(e)) throw;
      if (flags_.ignores_not_found && rest::is_object_missing(e)) return;
      errors_.emplace_back(e.what());
    }
  }

  std::string ns_of(const Query& query) const {
    return query.ns ? *query.ns : flags_.selection.namespace_of(query.resource, client_);
  }

  std::string tables() {
    const bool several = std::ranges::any_of(queries_, [&](const Query& query) {
      return query.resource.gvk() != queries_.front().resource.gvk();
    });
    std::string out;
    for (const Query& query : queries_) {
      ServerTable table(
          client_, query.resource, ns_of(query),
          {.with_namespace = query.resource.namespaced && flags_.selection.all_namespaces,
           .with_kind = several || flags_.shows_kind,
           .wide = flags_.format.kind == OutputFormat::Kind::kWideTable,
           .no_headers = flags_.no_headers,
           .page_size = flags_.selection.page_size,
           .labels = flags_.labels,
           .sorting = flags_.sorting ? &*flags_.sorting : nullptr});
      if (query.names.empty()) {
        attempt([&] {
          table.add_list(flags_.selection.label_selector, flags_.selection.field_selector);
        });
      }
      for (const std::string& name : query.names) attempt([&] { table.add_one(name); });
      if (!table.rows().empty()) out += (out.empty() ? "" : "\n") + table.text();
    }
    if (out.empty() && errors_.empty() && !flags_.ignores_not_found) say_nothing_found();
    return out;
  }

  void say_nothing_found() const {
    const bool namespaced =
        std::ranges::all_of(queries_, [](const Query& query) { return query.resource.namespaced; });
    const std::string ns = namespaced ? ns_of(queries_.front()) : "";
    say("No resources found{}.\n", ns.empty() ? "" : fmt::format(" in {} namespace", ns));
  }

  /// An object and its resource.
  struct Found {
    const api::Resource* resource;
    api::Object object;
  };

  std::vector<Found> sorted(std::vector<Found> found) const {
    if (!flags_.sorting) return found;
    std::vector<SortKey> keys;
    for (const Found& each : found) keys.push_back(flags_.sorting->key(each.object.body()));
    std::vector<Found> out;
    for (const std::size_t i : flags_.sorting->order(keys)) out.push_back(std::move(found[i]));
    return out;
  }

  std::string objects() {
    std::vector<Found> found;
    for (const Query& query : queries_) {
      const rest::ResourceClient objects = client_.resource(query.resource, ns_of(query));
      if (query.names.empty()) {
        attempt([&] {
          for (const api::Object& object : flags_.selection.list(objects))
            found.push_back({&query.resource, object});
        });
      }
      for (const std::string& name : query.names)
        attempt([&] { found.push_back({&query.resource, objects.get(name)}); });
    }
    ObjectPrinter printer(flags_.format, flags_.shows_managed_fields, flags_.no_headers);
    for (const Found& each : sorted(std::move(found))) printer.add(*each.resource, each.object);
    if (printer.empty() && (!errors_.empty() || flags_.ignores_not_found)) return {};
    return printer.text(queries_.size() == 1 && queries_.front().names.size() == 1);
  }

  rest::Client client_;
  const GetFlags& flags_;
  std::vector<Query> queries_;
  std::vector<std::string> errors_;
};

/// Throws CLI::ParseError.
void check(GetFlags& flags) {
  if (!flags.raw.empty()) {
    if (!flags.selection.resource.empty())
      throw CLI::ValidationError("--raw", "requests a path: leave out " + flags.selection.resource);
    if (!flags.raw.starts_with('/'))
      throw CLI::ValidationError("--raw", "needs a path such as /readyz");
    return;
  }
  if (flags.selection.resource.empty() && flags.files.names.empty())
    throw CLI::RequiredError("A resource such as pods, or -f");
  if (flags.files.recursive && flags.files.names.empty())
    throw CLI::ValidationError("-R", "needs a folder: -f FOLDER");
  flags.watches = flags.watches || flags.watches_only;
  // (Not while the options are parsed: a file may be readable only once.)
  try {
    flags.format = OutputFormat::parse(flags.output);
  } catch (const Error& e) {
    throw CLI::ValidationError("-o", e.what());
  }
  try {
    if (!flags.sort_by.empty()) flags.sorting.emplace(flags.sort_by);
  } catch (const Error& e) {
    throw CLI::ValidationError("--sort-by", e.what());
  }
  SelectionFlags& selection = flags.selection;
  selection.check();
  if (!flags.files.names.empty() && (!selection.resource.empty() || selection.has_selector() ||
                                     selection.all_namespaces || flags.watches))
    throw CLI::ValidationError(
        "-f", "the files name the objects: leave out resources, selectors, -A and -w");
  if (selection.has_selector() && selection.has_names())
    throw CLI::ValidationError("NAME", "name cannot be provided when a selector is specified");
  if (!flags.watches) return;
  selection.check_for_watch();
  if (flags.format.kind == OutputFormat::Kind::kWideTable) {
    throw CLI::ValidationError(
        "-w", "shows no wide table: leave out -o wide, or use -o custom-columns=SPEC");
  }
}

}  // namespace

void add_get(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* command = app.add_subcommand("get", "Show objects");
  const auto flags = std::make_shared<GetFlags>();
  flags->selection.add_to(*command);
  flags->files.add_to(*command,
                      "Show the objects in these files: YAML or JSON, or a folder of such files;\n"
                      "-: standard input; can be repeated");
  command
      ->add_option("-o,--output", flags->output,
                   "table, wide, json, yaml, name, jsonpath=TEMPLATE, custom-columns=SPEC\n"
                   "or custom-columns-file=FILE")
      ->type_name("FORMAT")
      ->capture_default_str();
  command->add_flag("-w,--watch", flags->watches,
                    "Also show changes, until Ctrl-C (see lookout watch)");
  command->add_flag("--watch-only", flags->watches_only, "Show only changes, until Ctrl-C");
  command->add_flag("--no-headers", flags->no_headers, "Leave out the names of the columns");
  flags->labels.add_to(*command);
  command->add_flag("--show-kind", flags->shows_kind, "Show names with their kinds: pod/web");
  command
      ->add_option("--sort-by", flags->sort_by,
                   "Sort by the value at a path, such as .metadata.creationTimestamp")
      ->type_name("PATH");
  command->add_flag("--show-managed-fields", flags->shows_managed_fields,
                    "Show managedFields in json and yaml");
  command->add_flag("--ignore-not-found", flags->ignores_not_found,
                    "Succeed, and print nothing, if an object does not exist");
  command
      ->add_option("--chunk-size", flags->selection.page_size,
                   "Read long lists in pages of this many objects; 0: at once")
      ->check([](const std::string& text) -> std::string {
        return text.starts_with('-') ? "a number of objects is not negative" : "";
      })
      ->type_name("NUMBER")
      ->capture_default_str();
  command
      ->add_option("--raw", flags->raw, "Print the server's answer for this path: /readyz?verbose")
      ->type_name("PATH");
  command->footer(
      "Separate several resources with commas. A category of the server, such as all, selects all\n"
      "of its resources. Templates are those of kubectl: paths, \"\\n\" and range ... end in "
      "braces.\n"
      "If an object is not found, the others are still shown, and the exit status is 1. --sort-by\n"
      "sorts numbers and quantities by their amount, and objects without the value first.\n\n"
      "Examples:\n"
      "  lookout get pods -A -o wide\n"
      "  lookout get pods,services -n shop\n"
      "  lookout get pods/web-1 deploy/web\n"
      "  lookout get deploy -n shop -l 'tier in (front,back)' -o json\n"
      "  lookout get crontabs.stable.example.com my-tab -o yaml\n"
      "  lookout get pods -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'\n"
      "  lookout get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName --no-headers\n"
      "  lookout get pods --sort-by=.metadata.creationTimestamp\n"
      "  lookout get pods -L app,tier\n"
      "  lookout get -f config/\n"
      "  lookout get --raw /readyz?verbose");
  command->callback([flags, &connection, &action] {
    check(*flags);
    action = [flags, &connection] {
      if (!flags->watches) return Get(connection, *flags).run();
      // As in kubectl.
      if (flags->sorting) say("lookout: warning: with -w, --sort-by is ignored\n");
      return watch_objects(connection, "",
                           {.selection = flags->selection,
                            .shows_events = false,
                            .shows_headers = !flags->no_headers,
                            .labels = flags->labels,
                            .only_changes = flags->watches_only,
                            .format = flags->format,
                            .shows_managed_fields = flags->shows_managed_fields});
    };
  });
}

}  // namespace lookout::cmd
