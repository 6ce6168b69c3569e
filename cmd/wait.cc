// lookout wait.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/attempts.h"
#include "cmd/commands.h"
#include "cmd/custom_columns.h"
#include "cmd/duration.h"
#include "cmd/manifests.h"
#include "cmd/object_name.h"
#include "cmd/poll_until.h"
#include "cmd/selection.h"
#include "lookout/api/detail/json_path.h"
#include "lookout/base/ascii.h"
#include "lookout/base/error.h"

namespace lookout::cmd {
namespace {

/// Removes the quotes of a value, as kubectl does.
std::string_view without_quotes(std::string_view text) {
  while (!text.empty() && (text.front() == '\'' || text.front() == '"')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\'' || text.back() == '"')) text.remove_suffix(1);
  return text;
}

/// A scalar as kubectl compares it.
std::string compared_text(api::Value value) {
  return value.is_string() ? std::string(value.as_string()) : value.to_json();
}

/// What --for names.
class Goal {
 public:
  Goal() = default;
  /// Throws Error with the reason if the text is none.
  explicit Goal(std::string_view text) {
    constexpr std::string_view kConditions = "condition=";
    constexpr std::string_view kPaths = "jsonpath=";
    if (text == "delete") {
      kind_ = Kind::kDelete;
    } else if (text == "create") {
      kind_ = Kind::kCreate;
    } else if (text.starts_with(kConditions)) {
      read_condition(text.substr(kConditions.size()));
    } else if (text.starts_with(kPaths)) {
      read_path(text.substr(kPaths.size()));
    } else {
      throw Error(
          fmt::format("\"{}\" is not create, delete, condition=NAME[=VALUE] or "
                      "jsonpath=PATH[=VALUE]",
                      text));
    }
  }

  bool is_deletion() const { return kind_ == Kind::kDelete; }
  bool is_creation() const { return kind_ == Kind::kCreate; }

  /// `uid` is that of the object when the wait began; empty if it did not exist. Throws Error if the value
  /// at the path cannot be compared.
  bool is_reached(const api::Object& object, const std::string& uid) const {
    switch (kind_) {
      case Kind::kCreate:
        return static_cast<bool>(object);
      case Kind::kDelete:
        return !object || object.uid() != uid;
      case Kind::kCondition:
        return object && has_condition(object);
      case Kind::kPath:
        return object && has_value(object);
    }
    return false;
  }

  /// Completes "timed out": what is so instead.
  std::string what_is(const api::Object& object) const {
    if (!object) return "it does not exist";
    if (kind_ == Kind::kDelete) return "it still exists";
    std::string now = "absent";
    if (kind_ == Kind::kCondition) {
      if (const api::Value found = condition(object); found.exists()) {
        now = found["status"].as_string();
        if (is_outdated(object, found)) now += ", of an older generation";
      }
    } else if (const auto found = path_->find(object.body()); !found.empty()) {
      now = compared_text(found.front());
    }
    return fmt::format("{} is {}", name_, now);
  }

 private:
  enum class Kind { kCreate, kDelete, kCondition, kPath };

  void read_condition(std::string_view text) {
    kind_ = Kind::kCondition;
    const std::size_t equals = text.find('=');
    name_ = text.substr(0, equals);
    if (name_.empty()) throw Error("condition= needs a name: condition=Ready");
    value_ = equals == std::string_view::npos ? "true" : std::string(text.substr(equals + 1));
  }

  void read_path(std::string_view text) {
    kind_ = Kind::kPath;
    // The value comes behind the braces, or if there are none, behind the last filter.
    const std::size_t closed = text.rfind(text.starts_with('{') ? '}' : ']');
    const std::size_t equals = text.find('=', closed == std::string_view::npos ? 0 : closed);
    name_ = text.substr(0, equals);
    path_ = relaxed_path(name_);
    if (equals == std::string_view::npos) return;
    value_ = std::string(without_quotes(text.substr(equals + 1)));
    if (value_->empty()) throw Error(fmt::format("jsonpath={}= needs a value", name_));
  }

  api::Value condition(const api::Object& object) const {
    for (const api::Value each : object["status"]["conditions"].elements()) {
      if (base::equal_ignoring_case(each["type"].as_string(), name_)) return each;
    }
    return {};
  }

  /// As in kubectl: a condition of an older generation says nothing about the object.
  static bool is_outdated(const api::Object& object, api::Value found) {
    const api::Value own = found["observedGeneration"];
    const api::Value observed = own.exists() ? own : object["status"]["observedGeneration"];
    return observed.exists() && observed.as_int() < object["metadata"]["generation"].as_int();
  }

  bool has_condition(const api::Object& object) const {
    const api::Value found = condition(object);
    return found.exists() && !is_outdated(object, found) &&
           base::equal_ignoring_case(found["status"].as_string(), *value_);
  }

  bool has_value(const api::Object& object) const {
    const std::vector<api::Value> found = path_->find(object.body());
    if (found.empty()) return false;
    if (found.size() > 1) throw Error(fmt::format("{} has {} values", name_, found.size()));
    if (!value_) return true;
    if (found.front().is_object() || found.front().is_array())
      throw Error(fmt::format("{} is not a single value", name_));
    return compared_text(found.front()) == *value_;
  }

  Kind kind_ = Kind::kCreate;
  /// Of a condition, or a path as the user wrote it.
  std::string name_;
  /// None: any value.
  std::optional<std::string> value_;
  std::optional<api::detail::JsonPath> path_;
};

struct WaitFlags {
  SelectionFlags selection;
  FileFlags files;
  bool all = false;
  std::string goal_text;
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};
  /// Set by check().
  Goal goal;
};

/// Waits for what a command line selects. As in kubectl, an error of one object does not affect the others.
class Wait {
 public:
  Wait(const ConnectionFlags& connection, const WaitFlags& flags)
      : client_(connection.config()),
        finder_(client_),
        flags_(flags),
        deadline_(std::chrono::steady_clock::now() + flags.timeout) {}

  int run() {
    if (!flags_.files.names.empty()) {
      wait_for_manifests();
    } else {
      for (const Target& target : flags_.selection.targets) {
        for (const api::Resource& resource : finder_.find_all(target.resource))
          wait(resource, target.names);
      }
    }
    if (count_ == 0 && !attempt_.failed() && !flags_.goal.is_deletion()) {
      throw Error(fmt::format("no object matches{}", flags_.goal.is_creation()
                                                         ? ": name the object that is to be created"
                                                         : ""));
    }
    return attempt_.failed() ? 1 : 0;
  }

 private:
  void wait_for_manifests() {
    const Manifests manifests = read_manifests(flags_.files);
    for (const std::string& error : manifests.errors) attempt_.report(error);
    for (const auto& [object, place] : manifests.objects) {
      ++count_;
      attempt_(place + ": ", [&, &object = object] {
        const api::Resource resource = finder_.find(object);
        const std::string ns = namespace_of(object, resource, flags_.selection.ns, client_);
        wait(resource, ns, std::string(object.name()));
      });
    }
  }

  void wait(const api::Resource& resource, const std::vector<std::string>& names) {
    const std::string ns = flags_.selection.namespace_of(resource, client_);
    count_ += names.size();
    for (const std::string& name : names) attempt_("", [&] { wait(resource, ns, name); });
    if (!names.empty()) return;
    attempt_("", [&] {
      const auto objects = flags_.selection.list(client_.resource(resource, ns));
      count_ += objects.size();
      for (const api::Object& object : objects) {
        attempt_("", [&] { wait(resource, std::string(object.ns()), std::string(object.name())); });
      }
    });
  }

  /// Throws Error at the deadline, and if the object does not exist but should.
  void wait(const api::Resource& resource, const std::string& ns, const std::string& name) {
    const Goal& goal = flags_.goal;
    const rest::ResourceClient objects = client_.resource(resource, ns);
    api::Object object =
        goal.is_creation() || goal.is_deletion() ? objects.find(name) : objects.get(name);
    // As in kubectl.
    if (!object && goal.is_deletion()) return;
    const std::string uid(object ? object.uid() : std::string_view());
    bool is_first = true;
    const bool reached = poll_until(deadline_, [&] {
      if (!std::exchange(is_first, false)) object = objects.find(name);
      return goal.is_reached(object, uid);
    });
    const std::string shown = name_of(resource, name);
    if (!reached) throw Error(fmt::format("{}: timed out: {}", shown, goal.what_is(object)));
    const std::string line = shown + " condition met\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }

  rest::Client client_;
  ResourceFinder finder_;
  const WaitFlags& flags_;
  Deadline deadline_;
  std::size_t count_ = 0;
  Attempts attempt_;
};

/// Throws CLI::ParseError.
void check(WaitFlags& flags) {
  try {
    flags.goal = Goal(flags.goal_text);
  } catch (const Error& e) {
    throw CLI::ValidationError("--for", e.what());
  }
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
  if (lists && selection.has_names()) {
    throw CLI::ValidationError("NAME",
                               "name cannot be provided when a selector or --all is specified");
  }
  if (!lists && !selection.has_names())
    throw CLI::ValidationError("NAME", "name is required, or -l, --field-selector or --all");
}

}  // namespace

void add_wait(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* command = app.add_subcommand("wait", "Wait until objects are in a state");
  const auto flags = std::make_shared<WaitFlags>();
  flags->selection.add_to(*command);
  flags->files.add_to(
      *command,
      "Wait for the objects in these files: YAML or JSON, or a folder of such files;\n"
      "-: standard input; can be repeated");
  command->add_flag("--all", flags->all, "Wait for all objects of the resources");
  command
      ->add_option("--for", flags->goal_text,
                   "create, delete, condition=NAME[=VALUE] (the default value is true) or\n"
                   "jsonpath=PATH[=VALUE] (default: any value)")
      ->type_name("GOAL")
      ->required();
  add_duration(*command, "--timeout", flags->timeout,
               "Fail after this time, 30s by default; 0: look only once");
  command->footer(
      "Prints each object that is in the state. If one is not before the timeout, the exit status "
      "is\n"
      "1. The timeout is for all objects together.\n\n"
      "Examples:\n"
      "  lookout wait pod/web-1 --for=condition=Ready --timeout 5m\n"
      "  lookout wait deploy --all -n shop --for=condition=Available\n"
      "  lookout wait crd crontabs.stable.example.com --for condition=Established\n"
      "  lookout wait pods -l app=web --for=jsonpath='{.status.phase}'=Running\n"
      "  lookout wait pods -l app=old --for=delete");
  command->callback([flags, &connection, &action] {
    check(*flags);
    action = [flags, &connection] { return Wait(connection, *flags).run(); };
  });
}

}  // namespace lookout::cmd
