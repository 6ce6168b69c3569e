// lookout delete.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/commands.h"
#include "cmd/dry_run.h"
#include "cmd/manifests.h"
#include "cmd/object_name.h"
#include "cmd/say.h"
#include "cmd/selection.h"
#include "lookout/api/status.h"
#include "lookout/k8s/meta/v1.h"
#include "lookout/rest/error.h"

namespace lookout::cmd {
namespace {

struct DeleteFlags {
  SelectionFlags selection;
  std::vector<std::string> files;
  bool all = false;
  bool ignores_not_found = false;
  rest::PropagationPolicy cascade = rest::PropagationPolicy::kBackground;
  std::optional<std::int64_t> grace_period;
  DryRunFlag dry_run;
};

/// The reason why an object still exists after its deletion; completes the message.
std::string what_it_waits_for(const api::Object& object) {
  std::vector<std::string> finalizers;
  for (const auto finalizer : object.metadata().finalizers()) finalizers.emplace_back(finalizer);
  if (!finalizers.empty())
    return fmt::format(": it waits for finalizers {}", fmt::join(finalizers, ", "));
  // The finalizers of a namespace.
  if (!object["spec"]["finalizers"].empty()) return ": it waits until its contents are deleted";
  const auto seconds = object.metadata().deletion_grace_period_seconds();
  return seconds ? fmt::format(": it waits for its grace period of {} s", *seconds) : "";
}

/// Deletes what a command line selects. As in kubectl, an error of one object does not affect the others.
class Deletion {
 public:
  Deletion(const ConnectionFlags& connection, const DeleteFlags& flags)
      : client_(connection.config()), finder_(client_), flags_(flags) {
    options_.propagation_policy = flags.cascade;
    options_.grace_period_seconds = flags.grace_period;
    options_.dry_run = flags.dry_run.is_set();
  }

  int run() {
    if (!flags_.files.empty()) {
      remove_manifests();
    } else {
      for (const Target& target : flags_.selection.targets) {
        for (const api::Resource& resource : finder_.find_all(target.resource))
          remove(resource, target.names);
      }
    }
    if (count_ == 0 && !failed_ && names_nothing()) print("No resources found\n");
    return failed_ ? 1 : 0;
  }

 private:
  /// True if a list may select no object.
  bool names_nothing() const { return flags_.files.empty() && !flags_.selection.has_names(); }

  /// Calls `request`; says why it fails. `place` is the prefix of the message.
  template <class Request>
  void attempt(const std::string& place, Request request) {
    try {
      request();
    } catch (const std::exception& e) {
      // The others would fail, too.
      if (rest::is_connection_refused(e) || api::is_unauthorized(e)) throw;
      say("lookout: {}{}\n", place, e.what());
      failed_ = true;
    }
  }

  void remove_manifests() {
    const Manifests manifests = read_manifests(flags_.files);
    for (const std::string& error : manifests.errors) say("lookout: {}\n", error);
    failed_ = !manifests.errors.empty();
    for (const auto& [object, place] : manifests.objects) {
      attempt(place + ": ", [&, &object = object] {
        const api::Resource resource = finder_.find(object);
        const std::string ns = namespace_of(object, resource, flags_.selection.ns, client_);
        remove(resource, ns, std::string(object.name()), flags_.ignores_not_found);
      });
    }
  }

  void remove(const api::Resource& resource, const std::vector<std::string>& names) {
    const std::string ns = flags_.selection.namespace_of(resource, client_);
    for (const std::string& name : names)
      attempt("", [&] { remove(resource, ns, name, flags_.ignores_not_found); });
    if (!names.empty()) return;
    attempt("", [&] {
      for (const api::Object& object : flags_.selection.list(client_.resource(resource, ns))) {
        // Another client may delete it first.
        attempt("", [&] {
          remove(resource, std::string(object.ns()), std::string(object.name()), true);
        });
      }
    });
  }

  void remove(const api::Resource& resource, const std::string& ns, const std::string& name,
              bool ignores_not_found) {
    api::Object answer;
    try {
      answer = client_.resource(resource, ns).remove(name, options_);
    } catch (const api::StatusError& e) {
      if (ignores_not_found && api::is_not_found(e)) return;
      throw;
    }
    ++count_;
    const std::string shown = name_of(resource, name);
    std::string line;
    if (options_.dry_run) {
      line = shown + " deleted (server dry run)\n";
    } else if (!answer.metadata().deletion_timestamp()) {
      line = shown + " deleted\n";
    } else {
      line = fmt::format("{} is being deleted{}\n", shown, what_it_waits_for(answer));
    }
    print(line);
  }

  /// Unlike fmt::print(), does not throw on a closed pipe: objects have been deleted.
  static void print(const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }

  rest::Client client_;
  ResourceFinder finder_;
  const DeleteFlags& flags_;
  rest::DeleteOptions options_;
  std::size_t count_ = 0;
  bool failed_ = false;
};

/// Throws CLI::ParseError.
void check(DeleteFlags& flags) {
  SelectionFlags& selection = flags.selection;
  selection.check();
  const bool lists = flags.all || selection.has_selector();
  if (!flags.files.empty()) {
    if (!selection.resource.empty() || lists || selection.all_namespaces) {
      throw CLI::ValidationError(
          "-f", "the files name the objects: leave out resources, selectors, --all and -A");
    }
    return;
  }
  if (selection.resource.empty()) throw CLI::RequiredError("resource or -f");
  if (flags.all && selection.has_selector())
    throw CLI::ValidationError("--all", "cannot be combined with a selector");
  if (lists && selection.has_names()) {
    throw CLI::ValidationError("NAME",
                               "name cannot be provided when a selector or --all is specified");
  }
  if (!lists && !selection.has_names())
    throw CLI::ValidationError("NAME", "name is required, or -l, --field-selector or --all");
}

void add_cascade(CLI::App& command, rest::PropagationPolicy& cascade) {
  static const std::map<std::string, rest::PropagationPolicy> kPolicies = {
      {"background", rest::PropagationPolicy::kBackground},
      {"foreground", rest::PropagationPolicy::kForeground},
      {"orphan", rest::PropagationPolicy::kOrphan}};
  command
      .add_option_function<std::string>(
          "--cascade", [&cascade](const std::string& text) { cascade = kPolicies.at(text); },
          "Objects that the deleted object owns: background deletes them afterwards, foreground\n"
          "before it, orphan keeps them")
      ->check(CLI::IsMember({"background", "foreground", "orphan"}))
      ->type_name("POLICY")
      ->default_str("background");
}

}  // namespace

void add_delete(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* command = app.add_subcommand("delete", "Delete objects");
  const auto flags = std::make_shared<DeleteFlags>();
  flags->selection.add_to(*command);
  command
      ->add_option("-f,--filename", flags->files,
                   "Delete the objects in these files: YAML or JSON, or a folder of such files;\n"
                   "-: standard input; can be repeated")
      ->type_name("FILE");
  command->add_flag("--all", flags->all, "Delete all objects of the resources");
  command->add_flag("--ignore-not-found", flags->ignores_not_found,
                    "Succeed if an object does not exist");
  add_cascade(*command, flags->cascade);
  command
      ->add_option("--grace-period", flags->grace_period,
                   "Give a pod this many seconds to end (default: the pod's own grace period)")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->type_name("SECONDS");
  flags->dry_run.add_to(*command, "Let the server check the requests without deleting objects");
  command->footer(
      "Does not wait until an object with finalizers or a grace period is gone; prints the "
      "reason.\n"
      "If one object cannot be deleted, the others still are, and the exit status is 1.\n\n"
      "Examples:\n"
      "  lookout delete pods web-1 web-2 -n shop\n"
      "  lookout delete pods,services -l app=web\n"
      "  lookout delete configmaps --all -n shop\n"
      "  lookout delete deploy web --cascade foreground\n"
      "  lookout delete -f web.yaml --ignore-not-found");
  command->callback([flags, &connection, &action] {
    check(*flags);
    action = [flags, &connection] { return Deletion(connection, *flags).run(); };
  });
}

}  // namespace lookout::cmd
