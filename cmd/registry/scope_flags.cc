#include "cmd/registry/scope_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "cmd/object_checks.h"
#include "lookout/api/labels.h"

namespace lookout::cmd::registry_cmd {

void add_style(CLI::App& command, Flags& flags, std::vector<std::string> styles) {
  command.add_option("--style", flags.style, "How services announce themselves")
      ->check(CLI::IsMember(std::move(styles)))
      ->type_name("STYLE")
      ->capture_default_str();
}

void add_scope(CLI::App& command, Flags& flags) {
  add_style(command, flags, {"kratos", "dubbo", "services"});
  command
      .add_option("-n,--namespace", flags.ns,
                  "Use this namespace (default: that of the context, or default)")
      ->check(check_namespace)
      ->type_name("NS");
  command.add_flag("-A,--all-namespaces", flags.all_namespaces, "Use all namespaces");
  command
      .add_option("-l,--selector", flags.label_selector,
                  "Only pods with these labels; with --style services: EndpointSlices")
      ->type_name("SELECTOR");
}

void check_scope(const Flags& flags) {
  if (flags.all_namespaces && !flags.ns.empty()) {
    throw CLI::ValidationError("-n and -A", "choose one of them");
  }
  try {
    api::labels::parse(flags.label_selector);
  } catch (const api::SelectorError& e) {
    throw CLI::ValidationError("-l", e.what());
  }
}

}  // namespace lookout::cmd::registry_cmd
