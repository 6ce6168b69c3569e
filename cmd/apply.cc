// lookout apply: server-side apply of manifests.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "cmd/commands.h"
#include "cmd/dry_run.h"
#include "cmd/manifests.h"
#include "cmd/object_checks.h"
#include "cmd/object_name.h"
#include "cmd/object_printer.h"
#include "cmd/say.h"
#include "lookout/api/status.h"
#include "lookout/rest/discovery.h"

namespace lookout::cmd {
namespace {

struct ApplyFlags {
  FileFlags files;
  std::string ns;
  std::string output;
  bool server_side = true;
  std::string field_manager = "lookout";
  bool force = false;
  DryRunFlag dry_run;
};

/// How long the server may take to serve a kind whose definition was just applied.
constexpr std::chrono::seconds kEstablishing{10};
constexpr std::chrono::milliseconds kPause{100};

/// The resources of the server by kind. Discovers them again while a definition is new.
class Kinds {
 public:
  explicit Kinds(const rest::Client& client) : client_(client) {}

  /// Expects new kinds to appear soon.
  void expect_more() { deadline_ = std::chrono::steady_clock::now() + kEstablishing; }

  /// Empty if the server has no such kind. Throws what discovery throws.
  std::optional<api::Resource> find(const api::Object& object) {
    const api::GroupVersionKind kind = object.gvk();
    for (;;) {
      if (resources_.empty()) resources_ = rest::discover(client_);
      for (const rest::ApiResource& one : resources_) {
        const api::Resource& resource = one.resource;
        if (resource.group == kind.group && resource.version == kind.version &&
            resource.kind == kind.kind && one.has_verb("patch"))
          return resource;
      }
      if (std::chrono::steady_clock::now() > deadline_) return std::nullopt;
      std::this_thread::sleep_for(kPause);
      resources_.clear();
    }
  }

 private:
  const rest::Client& client_;
  std::vector<rest::ApiResource> resources_;
  std::chrono::steady_clock::time_point deadline_;
};

/// Unlike fmt::print(), does not throw on a closed pipe: objects have been applied.
void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int run(const ConnectionFlags& connection, const ApplyFlags& flags) {
  const Manifests manifests = read_manifests(flags.files);
  const rest::Client client{connection.config()};
  Kinds kinds(client);
  rest::ApplyOptions options;
  options.field_manager = flags.field_manager;
  options.force = flags.force;
  options.dry_run = flags.dry_run.is_set();
  for (const std::string& error : manifests.errors) say("lookout: {}\n", error);
  bool failed = !manifests.errors.empty();
  bool conflicted = false;
  std::optional<ObjectPrinter> printer;
  if (!flags.output.empty()) printer.emplace(OutputFormat::parse(flags.output), false, true);
  std::size_t count = 0;
  for (const auto& [object, place] : manifests.objects) {
    // If discovery fails, applying other objects would fail, too.
    const std::optional<api::Resource> found = kinds.find(object);
    try {
      if (!found) {
        throw Error(fmt::format(
            "the server has no kind {} in {}: is its CustomResourceDefinition installed?",
            object.kind(), object.api_version()));
      }
      const api::Resource& resource = *found;
      const std::string ns = namespace_of(object, resource, flags.ns, client);
      const api::Object applied = client.resource(resource, ns).apply(object, options);
      ++count;
      if (printer) {
        printer->add(resource, applied);
      } else {
        print(fmt::format("{} serverside-applied{}\n", name_of(resource, object.name()),
                          options.dry_run ? " (server dry run)" : ""));
      }
      if (!options.dry_run && resource.kind == "CustomResourceDefinition") kinds.expect_more();
    } catch (const std::exception& e) {
      // Other objects would fail, too.
      if (rest::is_connection_refused(e) || api::is_unauthorized(e)) throw;
      say("lookout: {}: {}\n", place, e.what());
      failed = true;
      conflicted = conflicted || api::is_conflict(e);
    }
  }
  if (count > 0 && printer) print(printer->text(count == 1));
  if (conflicted && !flags.force) {
    say("lookout: other managers own these fields: leave the fields out, or take them over "
        "with --force-conflicts\n");
  }
  return failed ? 1 : 0;
}

}  // namespace

void add_apply(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* command = app.add_subcommand(
      "apply", "Create objects, or change them to match manifests (server-side apply)");
  const auto flags = std::make_shared<ApplyFlags>();
  flags->files
      .add_to(*command,
              "YAML or JSON, or a folder of such files; -: standard input; can be repeated")
      ->required();
  command
      ->add_option("-n,--namespace", flags->ns,
                   "The namespace of objects that name none (default: that of the context, or\n"
                   "default); an object with another namespace is an error")
      ->check(check_namespace)
      ->type_name("NS");
  command
      ->add_option("--field-manager", flags->field_manager,
                   "The owner of the fields that the manifests set")
      ->check(check_not_empty)
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag("--force-conflicts", flags->force, "Take over fields that other managers own");
  command->add_option("-o,--output", flags->output, "Print the applied objects: name, json or yaml")
      ->check(CLI::IsMember({"name", "json", "yaml"}))
      ->type_name("FORMAT");
  command
      ->add_flag("--server-side", flags->server_side,
                 "The default, and the only way: accepted as kubectl has it")
      ->check([](const std::string& text) -> std::string {
        return text == "false" ? "lookout always applies on the server: leave the option out" : "";
      });
  flags->dry_run.add_to(*command, "Let the server check the objects without storing them");
  command->footer(
      "Fields that this manager applied before and that are missing now are removed. Objects are\n"
      "applied in the order of the files. If one is malformed or the server refuses it, the "
      "others\n"
      "are still applied. The rest of a file after a document that is not YAML is skipped.\n\n"
      "Examples:\n"
      "  lookout apply -f web.yaml\n"
      "  lookout apply -f config/ -R -n shop --dry-run\n"
      "  lookout apply -f web.yaml -o yaml\n"
      "  kubectl create deployment web --image=web:2 --dry-run=client -o yaml | lookout apply -f "
      "-");
  on_chosen(*command, action, [flags, &connection] { return run(connection, *flags); });
}

}  // namespace lookout::cmd
