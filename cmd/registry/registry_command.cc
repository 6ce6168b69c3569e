// lookout registry: registers, finds and shows services.
#include "cmd/registry/registry_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/listen_address.h"
#include "cmd/object_checks.h"
#include "cmd/programs.h"
#include "cmd/registry/dubbo_commands.h"
#include "cmd/registry/flags.h"
#include "cmd/registry/instance_commands.h"
#include "cmd/registry/scope_flags.h"
#include "cmd/registry/serve_command.h"
#include "cmd/registry/xds_flags.h"

namespace lookout::cmd {
namespace {

using registry_cmd::add_scope;
using registry_cmd::add_style;
using registry_cmd::add_xds;
using registry_cmd::check_scope;
using registry_cmd::Flags;

void add_unready(CLI::App& command, Flags& flags) {
  command.add_flag("--include-unready", flags.include_unready,
                   "Include instances that are not ready or are terminating");
}

void add_output(CLI::App& command, Flags& flags) {
  command.add_option("-o,--output", flags.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->type_name("FORMAT")
      ->capture_default_str();
}

/// Adds the arguments of the commands that show one service.
void add_lookup(CLI::App& command, Flags& flags) {
  command
      .add_option("NAME", flags.name, "The service; for dubbo also a prefix of keys: /dubbo/...")
      ->required()
      ->check(check_not_empty);
  add_scope(command, flags);
  add_unready(command, flags);
  add_output(command, flags);
}

void add_pod(CLI::App& command, Flags& flags) {
  command
      .add_option("-n,--namespace", flags.ns,
                  "The pod's namespace; default: that of the pod that lookout runs in")
      ->check(check_namespace)
      ->type_name("NS");
  command.add_option("--pod", flags.pod, "The pod to change; default: the one lookout runs in")
      ->type_name("NAME");
}

/// Rejects options that the other style would ignore.
void refuse(const CLI::App& command, const Flags& flags, const std::string& style,
            std::initializer_list<const char*> options) {
  if (flags.style == style) return;
  for (const char* option : options) {
    if (command.count(option) > 0) {
      throw CLI::ValidationError(option, "only --style " + style + " has it");
    }
  }
}

/// Rejects options for instances when keys are requested.
void refuse_for_keys(const CLI::App& command) {
  for (const char* option : {"--selector", "--include-unready"}) {
    if (command.count(option) > 0) {
      throw CLI::ValidationError(option, "keys are looked up on all participating pods");
    }
  }
}

/// The parts of a record or an instance.
void add_service(CLI::App& command, Flags& flags) {
  command.add_option("--service-version", flags.version, "The version of the service")
      ->type_name("VERSION");
  command
      .add_option("--metadata", flags.metadata,
                  "Metadata of the instance; for dubbo, a parameter of the URL; can be repeated")
      ->type_name("KEY=VALUE");
  command.add_option("--endpoint", flags.endpoints, "protocol://host:port; can be repeated")
      ->type_name("URL");
}

/// Rejects a key together with the options that a key is built from.
void refuse_for_a_key(const CLI::App& command) {
  for (const char* option : {"--service-version", "--metadata", "--endpoint"}) {
    if (command.count(option) > 0)
      throw CLI::ValidationError(option, "a key already contains this; give the interface as NAME");
  }
}

}  // namespace

void add_registry(CLI::App& app, const CommonFlags& common, Action& action) {
  CLI::App* group = app.add_subcommand(kRegistry.command, kRegistry.description);
  // The callback checks for a missing command: CLI11 would report a misspelt one as missing.
  group->require_subcommand(0, 1);
  group->fallthrough();
  const auto flags = std::make_shared<Flags>();
  using Command = int (*)(const ConnectionFlags&, const Flags&);
  const auto choose = [&common, &action, flags](Command command) {
    action = [&common, flags, command] { return command(common.connection, *flags); };
  };
  // With dubbo, a NAME that begins with a slash is a key, not a service.
  const auto means_keys = [flags] {
    return flags->style == "dubbo" && flags->name.starts_with('/');
  };
  const auto look_up = [=](const CLI::App& command, Command keys, Command service) {
    check_scope(*flags);
    if (means_keys()) refuse_for_keys(command);
    choose(means_keys() ? keys : service);
  };

  // dubbo needs either a key or the parts of a key.
  const auto check_record = [flags, means_keys](const CLI::App& command) {
    if (means_keys()) refuse_for_a_key(command);
    if (flags->style == "dubbo" && !means_keys() && flags->endpoints.empty())
      throw CLI::RequiredError("--endpoint (or, as the NAME, a key: /dubbo/...)");
  };

  CLI::App* add = group->add_subcommand("register", "Announce a service on a pod");
  add->add_option("NAME", flags->name,
                  "The service; for dubbo, the interface or a key (/dubbo/...)")
      ->required()
      ->check(check_not_empty);
  add_style(*add, *flags, {"kratos", "dubbo"});
  add_pod(*add, *flags);
  add->add_option("--id", flags->id, "kratos: the id of the instance");
  add_service(*add, *flags);
  add->add_option("--value", flags->value, "dubbo: the value of the key");
  add->add_option(
         "--generation", flags->generation,
         "dubbo: the dubbo-go version of the consumers; detect: from the other pods' labels")
      ->check(CLI::IsMember({"detect", "1.4", "1.5"}))
      ->type_name("VERSION")
      ->capture_default_str();
  add->footer(
      "Examples:\n"
      "  lookout registry register web --pod web-1 --id 1 --service-version v3.5.0 \\\n"
      "      --metadata zone=sh001 --endpoint http://0.0.0.0:80\n"
      "  lookout registry register com.example.User --style dubbo --pod user-1 \\\n"
      "      --service-version 1.0 --metadata weight=200 --endpoint dubbo://10.0.0.1:20000\n"
      "  lookout registry register --style dubbo --pod user-1 \\\n"
      "      /dubbo/com.example.User/providers/dubbo%3A%2F%2F10.0.0.1%3A20000%2FUser");
  add->callback([=] {
    refuse(*add, *flags, "kratos", {"--id"});
    refuse(*add, *flags, "dubbo", {"--value", "--generation"});
    check_record(*add);
    registry_cmd::metadata_of(*flags);
    choose(flags->style == "dubbo" ? registry_cmd::dubbo_register
                                   : registry_cmd::register_instance);
  });

  CLI::App* remove = group->add_subcommand("deregister", "Withdraw an announcement");
  remove
      ->add_option("NAME", flags->name,
                   "kratos: fail if the pod announces another service; for dubbo, the interface "
                   "or a key (/dubbo/...)")
      ->check(check_not_empty);
  add_style(*remove, *flags, {"kratos", "dubbo"});
  add_pod(*remove, *flags);
  add_service(*remove, *flags);
  remove->footer(
      "For dubbo, the options must be those that the service was registered with.\n\n"
      "Examples:\n"
      "  lookout registry deregister --pod web-1\n"
      "  lookout registry deregister com.example.User --style dubbo --pod user-1 \\\n"
      "      --service-version 1.0 --metadata weight=200 --endpoint dubbo://10.0.0.1:20000\n"
      "  lookout registry deregister --style dubbo --pod user-1 \\\n"
      "      /dubbo/com.example.User/providers/dubbo%3A%2F%2F10.0.0.1%3A20000%2FUser");
  remove->callback([=] {
    refuse(*remove, *flags, "dubbo", {"--service-version", "--metadata", "--endpoint"});
    if (flags->style == "dubbo" && flags->name.empty()) {
      throw CLI::RequiredError("NAME (with --style dubbo: the interface or a key)");
    }
    check_record(*remove);
    registry_cmd::metadata_of(*flags);
    choose(flags->style == "dubbo" ? registry_cmd::dubbo_deregister
                                   : registry_cmd::deregister_instance);
  });

  CLI::App* get = group->add_subcommand("get", "Show the instances of a service");
  add_lookup(*get, *flags);
  get->footer(
      "Examples:\n"
      "  lookout registry get web -n shop\n"
      "  lookout registry get web -n shop --include-unready -o json\n"
      "  lookout registry get --style dubbo com.example.User:1.0\n"
      "  lookout registry get --style dubbo /dubbo/com.example.User/providers\n"
      "  lookout registry get --style services -n kube-system kube-dns");
  get->callback([=] { look_up(*get, registry_cmd::dubbo_get, registry_cmd::get_service); });

  CLI::App* list = group->add_subcommand("ls", "List all services and their instances");
  add_scope(*list, *flags);
  add_output(*list, *flags);
  list->footer(
      "Examples:\n"
      "  lookout registry ls -A\n"
      "  lookout registry ls -n shop -l env=prod -o json\n"
      "  lookout registry ls -A --style services");
  list->callback([=] {
    check_scope(*flags);
    choose(registry_cmd::list_services);
  });

  CLI::App* watch = group->add_subcommand("watch", "Follow the instances of a service");
  add_lookup(*watch, *flags);
  watch->footer(
      "On a terminal, shows a table and updates it until Ctrl-C. Otherwise, and with -o json, "
      "prints\n"
      "the set again after each change.\n\n"
      "Examples:\n"
      "  lookout registry watch web -n shop\n"
      "  lookout registry watch web -n shop -o json\n"
      "  lookout registry watch --style dubbo /dubbo/com.example.User");
  watch->callback([=] { look_up(*watch, registry_cmd::dubbo_watch, registry_cmd::watch_service); });

  CLI::App* serve = group->add_subcommand("serve", "Serve a live web page of all services");
  add_scope(*serve, *flags);
  serve
      ->add_option("--listen", flags->listen,
                   "The address to listen on; port 0: any free port. There are no passwords:\n"
                   "anybody who can reach the address can read what services announce")
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  serve
      ->add_option("--allow-host", flags->allowed_hosts,
                   "Accept requests for this host name, besides addresses and localhost; can be\n"
                   "repeated")
      ->type_name("NAME");
  serve->add_flag("--scrape", flags->scrape,
                  "Also show picks, errors and ejections: scrapes the metrics of pods that have\n"
                  "the annotations prometheus.io/scrape, port and path every ten seconds");
  serve->footer(
      "The page only reads. /api/services and /api/services/NAME serve the same data as JSON.\n\n"
      "Examples:\n"
      "  lookout registry serve -n shop --scrape\n"
      "  lookout registry serve -A\n"
      "  lookout registry serve -n shop --listen 127.0.0.1:0\n"
      "  lookout registry serve -A --listen :8002 --allow-host services.example.com");
  serve->callback([=] {
    check_scope(*flags);
    parse_listen_address(flags->listen);
    if (flags->scrape && flags->style == "services") {
      throw CLI::ValidationError("--scrape", "only --style kratos and dubbo have pods to scrape");
    }
    choose(registry_cmd::serve_page);
  });

  add_xds(*group, flags,
          [&common, &action] { action = [&common]() -> int { start(kXds, common.arguments); }; });

  group->callback([group] {
    if (group->get_subcommands().empty()) {
      throw CLI::RequiredError("One of register, deregister, get, ls, watch, serve and xds");
    }
  });
  group->footer(
      "Styles: kratos and dubbo are the formats of the Go libraries; services are plain "
      "Kubernetes\n"
      "Services.\n\n"
      "Examples:\n"
      "  lookout registry ls -A\n"
      "  lookout registry get web -n shop -o json\n"
      "  lookout registry watch web -n shop\n"
      "  lookout registry serve -A\n"
      "  lookout registry xds -n shop\n"
      "  lookout registry get --style dubbo com.example.User:1.0");
}

}  // namespace lookout::cmd
