// lookout api-resources.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cmd/columns.h"
#include "cmd/commands.h"
#include "cmd/say.h"
#include "lookout/rest/discovery.h"

namespace lookout::cmd {
namespace {

struct ApiResourcesFlags {
  std::optional<bool> namespaced;
  std::optional<std::string> group;
  std::string output;
  bool no_headers = false;
};

/// The preferred version of each resource, in the order of groups and names.
std::vector<rest::ApiResource> preferred(std::vector<rest::ApiResource> resources) {
  std::set<std::pair<std::string, std::string>> seen;
  std::erase_if(resources, [&](const rest::ApiResource& each) {
    return each.verbs.empty() || !seen.emplace(each.resource.group, each.resource.plural).second;
  });
  std::ranges::sort(resources, [](const rest::ApiResource& a, const rest::ApiResource& b) {
    return std::tie(a.resource.group, a.resource.plural) <
           std::tie(b.resource.group, b.resource.plural);
  });
  return resources;
}

int list_api_resources(const ConnectionFlags& connection, const ApiResourcesFlags& flags) {
  const rest::Client client{connection.config()};
  const bool wide = flags.output == "wide";
  std::vector<Row> rows;
  std::string names;
  for (const rest::ApiResource& each : preferred(rest::discover(client))) {
    const api::Resource& resource = each.resource;
    if (flags.namespaced && *flags.namespaced != resource.namespaced) continue;
    if (flags.group && *flags.group != resource.group) continue;
    names += resource.qualified_name() + "\n";
    Row row{resource.plural, fmt::format("{}", fmt::join(each.short_names, ",")),
            resource.api_version(), resource.namespaced ? "true" : "false", resource.kind};
    if (wide) {
      row.push_back(fmt::format("{}", fmt::join(each.verbs, ",")));
      row.push_back(fmt::format("{}", fmt::join(each.categories, ",")));
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    say("No resources found.\n");
    return 0;
  }
  if (!flags.no_headers) {
    Row headers{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"};
    if (wide) headers.insert(headers.end(), {"VERBS", "CATEGORIES"});
    rows.insert(rows.begin(), std::move(headers));
  }
  const std::string text = flags.output == "name" ? names : align(std::move(rows));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

void add_api_resources(CLI::App& app, const ConnectionFlags& connection, Action& action) {
  CLI::App* command = app.add_subcommand("api-resources", "Show the resources of the server");
  const auto flags = std::make_shared<ApiResourcesFlags>();
  command->add_flag_function(
      "--namespaced", [flags](std::int64_t count) { flags->namespaced = count > 0; },
      "Only resources with namespaces; --namespaced=false: only those without");
  command
      ->add_option_function<std::string>(
          "--api-group", [flags](const std::string& group) { flags->group = group; },
          "Only resources of this group; \"\": the core group")
      ->type_name("GROUP");
  command->add_option("-o,--output", flags->output, "wide (with verbs and categories) or name")
      ->check(CLI::IsMember({"wide", "name"}))
      ->type_name("FORMAT");
  command->add_flag("--no-headers", flags->no_headers, "Leave out the names of the columns");
  command->footer(
      "Each resource is shown in its preferred version.\n\n"
      "Examples:\n"
      "  lookout api-resources\n"
      "  lookout api-resources --namespaced=false -o wide\n"
      "  lookout api-resources -o name | grep '[.]shop[.]example[.]com'");
  on_chosen(*command, action,
            [flags, &connection] { return list_api_resources(connection, *flags); });
}

}  // namespace lookout::cmd
