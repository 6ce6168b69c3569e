// lookout delete.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/commands.h"
#include "cmd/dry_run.h"
#include "cmd/object_checks.h"
#include "cmd/object_name.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::cmd {
namespace {

struct DeleteFlags {
  std::string resource;
  std::string name;
  std::string ns;
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

int run(const ConnectionFlags& connection, const DeleteFlags& flags) {
  const rest::Client client{connection.config()};
  const api::Resource resource = resolve_resource(client, flags.resource);
  std::string ns;
  if (resource.namespaced) ns = flags.ns.empty() ? client.config().default_namespace : flags.ns;
  rest::DeleteOptions options;
  options.propagation_policy = flags.cascade;
  options.grace_period_seconds = flags.grace_period;
  options.dry_run = flags.dry_run.is_set();
  const api::Object answer = client.resource(resource, ns).remove(flags.name, options);
  const std::string name = name_of(resource, flags.name);
  if (options.dry_run) {
    fmt::print("{} deleted (server dry run)\n", name);
  } else if (!answer.metadata().deletion_timestamp()) {
    fmt::print("{} deleted\n", name);
  } else {
    fmt::print("{} is being deleted{}\n", name, what_it_waits_for(answer));
  }
  return 0;
}

}  // namespace

void add_delete(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* command = app.add_subcommand("delete", "Delete an object");
  const auto flags = std::make_shared<DeleteFlags>();
  command->add_option("resource", flags->resource, "pods, deploy, crontabs.stable.example.com ...")
      ->required()
      ->type_name("RESOURCE[.GROUP]");
  command
      ->add_option("name", flags->name, "The name of the object; pods/web is the same as pods web")
      ->check(check_object_name)
      ->type_name("NAME");
  command
      ->add_option("-n,--namespace", flags->ns,
                   "Use this namespace (default: that of the context, or default)")
      ->check(check_namespace)
      ->type_name("NS");
  const std::map<std::string, rest::PropagationPolicy> policies = {
      {"background", rest::PropagationPolicy::kBackground},
      {"foreground", rest::PropagationPolicy::kForeground},
      {"orphan", rest::PropagationPolicy::kOrphan}};
  command
      ->add_option_function<std::string>(
          "--cascade",
          [flags, policies](const std::string& text) { flags->cascade = policies.at(text); },
          "The objects that it owns: background deletes them afterwards, foreground before it,\n"
          "orphan keeps them")
      ->check(CLI::IsMember({"background", "foreground", "orphan"}))
      ->type_name("POLICY")
      ->default_str("background");
  command
      ->add_option("--grace-period", flags->grace_period,
                   "Give a pod this many seconds to end (default: the pod's own grace period)")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->type_name("SECONDS");
  flags->dry_run.add_to(*command, "Let the server check the request without deleting the object");
  command->footer(
      "Does not wait until an object with finalizers or a grace period is gone; prints the "
      "reason.\n\n"
      "Examples:\n"
      "  lookout delete pods web-1 -n shop\n"
      "  lookout delete deploy web --cascade foreground\n"
      "  lookout delete websites.web.example.com home");
  command->callback([flags, &connection, &action] {
    split_type_and_name(flags->resource, flags->name);
    if (flags->name.empty()) throw CLI::RequiredError("name");
    action = [flags, &connection] { return run(connection, *flags); };
  });
}

}  // namespace lookout::cmd
