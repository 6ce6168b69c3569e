// lookout delete.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/attempts.h"
#include "cmd/commands.h"
#include "cmd/dry_run.h"
#include "cmd/duration.h"
#include "cmd/manifests.h"
#include "cmd/object_name.h"
#include "cmd/poll_until.h"
#include "cmd/say.h"
#include "cmd/selection.h"
#include "lookout/api/status.h"
#include "lookout/k8s/meta/v1.h"
#include "lookout/rest/error.h"

namespace lookout::cmd {
namespace {

struct DeleteFlags {
  SelectionFlags selection;
  FileFlags files;
  bool all = false;
  bool ignores_not_found = false;
  rest::PropagationPolicy cascade = rest::PropagationPolicy::kBackground;
  std::optional<std::int64_t> grace_period;
  /// Delete with a grace period of a second.
  bool now = false;
  /// Delete without a grace period.
  bool force = false;
  /// Wait until the objects are gone.
  bool waits = true;
  /// How long; zero: without a limit.
  std::chrono::milliseconds timeout{0};
  /// Print nothing but the names of the deleted objects.
  bool prints_names = false;
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

/// False if the answer to a deletion is the last state of the object.
bool still_exists(const api::Object& answer, bool forced) {
  if (!answer.metadata().deletion_timestamp()) return false;
  if (!answer["metadata"]["finalizers"].empty() || !answer["spec"]["finalizers"].empty())
    return true;
  // (If a pod was being deleted already, the answer to a forced deletion has the earlier grace period.)
  const auto seconds = answer.metadata().deletion_grace_period_seconds();
  return !seconds || (*seconds > 0 && !forced);
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
    if (flags_.force) {
      say("lookout: warning: an immediate deletion does not wait for confirmation that a pod has "
          "ended: it may go on running on its node\n");
    }
    if (!flags_.files.names.empty()) {
      remove_manifests();
    } else {
      for (const Target& target : flags_.selection.targets) {
        for (const api::Resource& resource : finder_.find_all(target.resource))
          remove(resource, target.names);
      }
    }
    if (count_ == 0 && !attempt_.failed() && names_nothing()) print("No resources found\n");
    if (flags_.waits) wait_for_all();
    return attempt_.failed() ? 1 : 0;
  }

 private:
  /// True if a list may select no object.
  bool names_nothing() const { return flags_.files.names.empty() && !flags_.selection.has_names(); }

  void remove_manifests() {
    const Manifests manifests = read_manifests(flags_.files);
    for (const std::string& error : manifests.errors) attempt_.report(error);
    for (const auto& [object, place] : manifests.objects) {
      attempt_(place + ": ", [&, &object = object] {
        const api::Resource resource = finder_.find(object);
        const std::string ns = namespace_of(object, resource, flags_.selection.ns, client_);
        remove(resource, ns, std::string(object.name()), flags_.ignores_not_found);
      });
    }
  }

  void remove(const api::Resource& resource, const std::vector<std::string>& names) {
    const std::string ns = flags_.selection.namespace_of(resource, client_);
    for (const std::string& name : names)
      attempt_("", [&] { remove(resource, ns, name, flags_.ignores_not_found); });
    if (!names.empty()) return;
    attempt_("", [&] {
      for (const api::Object& object : flags_.selection.list(client_.resource(resource, ns))) {
        // Another client may delete it first.
        attempt_("", [&] {
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
    const bool exists = !options_.dry_run && still_exists(answer, flags_.force);
    if (exists) {
      waiting_.push_back({shown, client_.resource(resource, ns), name, std::string(answer.uid())});
    }
    if (flags_.prints_names) {
      print(shown + "\n");
    } else if (exists) {
      print(fmt::format("{} is being deleted{}\n", shown, what_it_waits_for(answer)));
    } else {
      print_deleted(shown);
    }
  }

  void print_deleted(const std::string& shown) const {
    print(fmt::format("{} {}{}\n", shown, flags_.force ? "force deleted" : "deleted",
                      options_.dry_run ? " (server dry run)" : ""));
  }

  /// An object that still existed after its deletion.
  struct Waiting {
    std::string shown;
    rest::ResourceClient objects;
    std::string name;
    std::string uid;
  };

  void wait_for_all() {
    Deadline deadline;
    if (flags_.timeout.count() > 0) deadline = std::chrono::steady_clock::now() + flags_.timeout;
    for (const Waiting& each : waiting_) attempt_(each.shown + ": ", [&] { wait(each, deadline); });
  }

  /// Throws Error at the deadline.
  void wait(const Waiting& object, const Deadline& deadline) const {
    api::Object found;
    const auto is_gone = [&] {
      try {
        found = object.objects.find(object.name);
      } catch (const api::StatusError& e) {
        // The resource of a custom object may be gone, too.
        if (!api::is_not_found(e)) throw;
        return true;
      }
      return !found || found.uid() != object.uid;
    };
    try {
      if (!poll_until(deadline, is_gone))
        throw Error("timed out while it is being deleted" + what_it_waits_for(found));
    } catch (const api::StatusError& e) {
      // As in kubectl: who may delete an object may not be allowed to read it.
      if (api::is_forbidden(e) || api::is_method_not_supported(e)) return;
      throw;
    }
    if (!flags_.prints_names) print_deleted(object.shown);
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
  std::vector<Waiting> waiting_;
  std::size_t count_ = 0;
  Attempts attempt_;
};

/// As in kubectl: without --force, a pod has at least a second. Throws CLI::ValidationError.
void check_grace_period(DeleteFlags& flags) {
  if (flags.now && flags.grace_period)
    throw CLI::ValidationError("--now", "is --grace-period=1: choose one of them");
  if (flags.now) flags.grace_period = 1;
  if (flags.force && flags.grace_period.value_or(0) > 0) {
    throw CLI::ValidationError("--force",
                               fmt::format("leaves no grace period: leave out {}",
                                           flags.now ? "--now" : "--grace-period, or make it 0"));
  }
  if (flags.force) {
    flags.grace_period = 0;
  } else if (flags.grace_period == 0) {
    flags.grace_period = 1;
  }
}

/// Throws CLI::ParseError.
void check(DeleteFlags& flags) {
  check_grace_period(flags);
  SelectionFlags& selection = flags.selection;
  selection.check();
  const bool lists = flags.all || selection.has_selector();
  if (!flags.files.names.empty()) {
    if (!selection.resource.empty() || lists || selection.all_namespaces) {
      throw CLI::ValidationError(
          "-f", "the files name the objects: leave out resources, selectors, --all and -A");
    }
    return;
  }
  if (flags.files.recursive) throw CLI::ValidationError("-R", "needs a folder: -f FOLDER");
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
  flags->files.add_to(
      *command,
      "Delete the objects in these files: YAML or JSON, or a folder of such files;\n"
      "-: standard input; can be repeated");
  command->add_flag("--all", flags->all, "Delete all objects of the resources");
  command->add_flag("--ignore-not-found", flags->ignores_not_found,
                    "Succeed if an object does not exist");
  add_cascade(*command, flags->cascade);
  command
      ->add_option("--grace-period", flags->grace_period,
                   "Give a pod this many seconds to end (default: the pod's own grace period);\n"
                   "0 means 1 without --force")
      ->check([](const std::string& text) -> std::string {
        return text.starts_with('-') ? "a grace period is not negative" : "";
      })
      ->type_name("SECONDS");
  command->add_flag("--now", flags->now, "The same as --grace-period=1");
  command->add_flag("--force", flags->force,
                    "Remove a pod at once, without waiting until its node has ended it");
  command->add_flag("--wait", flags->waits,
                    "Wait until the objects are gone (the default); --wait=false: do not wait");
  add_duration(*command, "--timeout", flags->timeout,
               "Fail if an object still exists after this time: 30s (default: no limit)");
  command
      ->add_option_function<std::string>(
          "-o,--output", [flags](const std::string&) { flags->prints_names = true; },
          "name: print only the names of the deleted objects")
      ->check(CLI::IsMember({"name"}))
      ->type_name("FORMAT");
  flags->dry_run.add_to(*command, "Let the server check the requests without deleting objects");
  command->footer(
      "If an object has finalizers or a grace period, prints what it waits for, and waits until "
      "it is\n"
      "gone. Ctrl-C ends the wait; the deletion goes on. If one object cannot be deleted, the "
      "others\n"
      "still are, and the exit status is 1.\n\n"
      "Examples:\n"
      "  lookout delete pods web-1 web-2 -n shop\n"
      "  lookout delete pods,services -l app=web\n"
      "  lookout delete configmaps --all -n shop\n"
      "  lookout delete pod web-1 --force                   # its node is gone\n"
      "  lookout delete namespace shop --wait=false\n"
      "  lookout delete deploy web --cascade foreground\n"
      "  lookout delete -f web.yaml --ignore-not-found");
  command->callback([flags, &connection, &action] {
    check(*flags);
    action = [flags, &connection] { return Deletion(connection, *flags).run(); };
  });
}

}  // namespace lookout::cmd
