// lookout registry: announcing and finding services by hand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/commands.h"
#include "cmd/registry/dubbo_commands.h"
#include "cmd/registry/flags.h"
#include "cmd/registry/instance_commands.h"

namespace lookout::cmd {
namespace {

using registry_cmd::Flags;

void add_common(CLI::App& command, Flags& flags, std::vector<std::string> styles) {
  command.add_option("--style", flags.style, "How services announce themselves")
      ->check(CLI::IsMember(std::move(styles)))
      ->capture_default_str();
}

void add_scope(CLI::App& command, Flags& flags) {
  auto* ns = command.add_option("-n,--namespace", flags.ns, "Look in this namespace");
  command.add_flag("-A,--all-namespaces", flags.all_namespaces, "Look in all namespaces")
      ->excludes(ns);
  command.add_option("-l,--selector", flags.label_selector, "Only pods with these labels, too");
  command.add_flag("--include-unready", flags.include_unready,
                   "Instances that are not ready or on their way out, too");
}

void add_output(CLI::App& command, Flags& flags) {
  command.add_option("-o,--output", flags.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

void add_pod(CLI::App& command, Flags& flags) {
  command.add_option("-n,--namespace", flags.ns,
                     "The pod's namespace; default: that of the pod this runs in");
  command.add_option("--pod", flags.pod, "The pod to write to; default: the one this runs in");
}

}  // namespace

void add_registry(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* group = app.add_subcommand("registry", "Announce services, and find them");
  group->require_subcommand(1);
  group->fallthrough();
  const auto flags = std::make_shared<Flags>();
  const auto run = [&connection, &action, flags](auto kratos, auto dubbo) {
    return [&connection, &action, flags, kratos, dubbo] {
      action = [&connection, flags, kratos, dubbo] {
        return flags->style == "dubbo" ? dubbo(connection, *flags) : kratos(connection, *flags);
      };
    };
  };

  CLI::App* add = group->add_subcommand("register", "Announce a service on a pod");
  add->add_option("NAME", flags->name, "The service; for dubbo, a key")->required();
  add_common(*add, *flags, {"kratos", "dubbo"});
  add_pod(*add, *flags);
  add->add_option("--id", flags->id, "kratos: the id of the instance");
  add->add_option("--service-version", flags->version, "kratos: the version of the service");
  add->add_option("--metadata", flags->metadata, "kratos: KEY=VALUE, any number of times")
      ->type_name("KEY=VALUE");
  add->add_option("--endpoint", flags->endpoints,
                  "kratos: protocol://host:port, any number of times")
      ->type_name("URL");
  add->add_option("--value", flags->value, "dubbo: the value of the key");
  add->footer(
      "Examples:\n"
      "  lookout registry register web --pod web-1 --id 1 --service-version v3.5.0 \\\n"
      "      --metadata zone=sh001 --endpoint http://0.0.0.0:80\n"
      "  lookout registry register --style dubbo --pod web-1 /dubbo/com.example.User/providers");
  add->callback(run(registry_cmd::register_instance, registry_cmd::dubbo_register));

  CLI::App* remove = group->add_subcommand("deregister", "Take an announcement back");
  remove->add_option("NAME", flags->name, "dubbo: the key");
  add_common(*remove, *flags, {"kratos", "dubbo"});
  add_pod(*remove, *flags);
  remove->callback(run(registry_cmd::deregister_instance, registry_cmd::dubbo_deregister));

  CLI::App* get = group->add_subcommand("get", "The instances of a service");
  get->add_option("NAME", flags->name, "The service; for dubbo, a prefix of keys")->required();
  add_common(*get, *flags, {"kratos", "dubbo", "services"});
  add_scope(*get, *flags);
  add_output(*get, *flags);
  get->callback(run(registry_cmd::get_service, registry_cmd::dubbo_get));

  CLI::App* list = group->add_subcommand("ls", "All services, with their instances");
  add_common(*list, *flags, {"kratos", "dubbo", "services"});
  add_scope(*list, *flags);
  add_output(*list, *flags);
  list->callback(run(registry_cmd::list_services, registry_cmd::dubbo_list));

  CLI::App* watch = group->add_subcommand("watch", "Follow the instances of a service");
  watch->add_option("NAME", flags->name, "The service; for dubbo, a prefix of keys")->required();
  add_common(*watch, *flags, {"kratos", "dubbo", "services"});
  add_scope(*watch, *flags);
  add_output(*watch, *flags);
  watch->callback(run(registry_cmd::watch_service, registry_cmd::dubbo_watch));

  group->footer(
      "Styles: kratos and dubbo are those of the Go libraries; services are plain Kubernetes\n"
      "services.\n\n"
      "Examples:\n"
      "  lookout registry ls -A\n"
      "  lookout registry get web -n shop -o json\n"
      "  lookout registry watch web -n shop\n"
      "  lookout registry get --style dubbo /dubbo/com.example.User/providers");
}

}  // namespace lookout::cmd
