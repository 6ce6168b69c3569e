#include "cmd/selection.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "cmd/closest.h"
#include "cmd/object_checks.h"
#include "lookout/api/labels.h"
#include "lookout/base/ascii.h"

namespace lookout::cmd {
namespace {

bool has_slash(std::string_view word) { return word.find('/') != std::string_view::npos; }

void check_name(const std::string& name) {
  const std::string problem = check_object_name(name);
  if (!problem.empty()) throw CLI::ValidationError("NAME", problem);
}

/// Reads "pods/web".
Target type_and_name(const std::string& word) {
  const auto slash = word.find('/');
  Target out{word.substr(0, slash), {word.substr(slash + 1)}};
  if (out.resource.find(',') != std::string::npos)
    throw CLI::ValidationError(word, "a name needs a single resource before it");
  check_name(out.names.front());
  return out;
}

/// Reads "pods/web services/web". Objects of one resource that follow one another become one target.
std::vector<Target> types_and_names(const std::string& first,
                                    const std::vector<std::string>& others) {
  std::vector<Target> out{type_and_name(first)};
  for (const std::string& word : others) {
    if (!has_slash(word))
      throw CLI::ValidationError(first, "this names an object already: leave out " + word);
    Target next = type_and_name(word);
    if (next.resource == out.back().resource) {
      out.back().names.push_back(std::move(next.names.front()));
    } else {
      out.push_back(std::move(next));
    }
  }
  return out;
}

/// Reads "pods,services".
std::vector<std::string> types(const std::string& word) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find(',', begin), word.size());
    std::string type = word.substr(begin, end - begin);
    if (type.empty())
      throw CLI::ValidationError("RESOURCE", fmt::format("\"{}\" has an empty name", word));
    if (std::ranges::find(out, type) == out.end()) out.push_back(std::move(type));
    begin = end + 1;
  }
  return out;
}

std::vector<Target> targets_of(const std::string& resource, const std::vector<std::string>& names) {
  if (has_slash(resource)) return types_and_names(resource, names);
  for (const std::string& name : names) {
    if (has_slash(name))
      throw CLI::ValidationError(name, "this names its resource already: leave out " + resource);
    check_name(name);
  }
  std::vector<Target> out;
  for (std::string& type : types(resource)) out.push_back({std::move(type), names});
  return out;
}

}  // namespace

CLI::Option* SelectionFlags::add_to(CLI::App& app) {
  CLI::Option* const option =
      app.add_option("resource", resource, "pods, deploy, crontabs.stable.example.com ...")
          ->type_name("RESOURCE[.GROUP]");
  app.add_option("name", names, "The names of objects; pods/web is the same as pods web")
      ->type_name("NAME");
  app.add_option("-n,--namespace", ns,
                 "Use this namespace (default: that of the context, or default)")
      ->check(check_namespace)
      ->type_name("NS");
  app.add_flag("-A,--all-namespaces", all_namespaces, "Use all namespaces");
  app.add_option("-l,--selector", label_selector,
                 "Only objects with these labels: app=web,tier!=db")
      ->type_name("SELECTOR");
  app.add_option("--field-selector", field_selector,
                 "Only objects with these fields: status.phase=Running")
      ->type_name("SELECTOR");
  return option;
}

bool SelectionFlags::has_names() const {
  return std::ranges::any_of(targets, [](const Target& target) { return !target.names.empty(); });
}

void SelectionFlags::check() {
  if (!resource.empty()) targets = targets_of(resource, names);
  if (all_namespaces && !ns.empty()) {
    throw CLI::ValidationError("-n and -A", "choose one of them");
  }
  if (all_namespaces && has_names()) {
    throw CLI::ValidationError("NAME and -A", "a name selects an object in a single namespace");
  }
  // The server would reject it, too, but with a less helpful message.
  try {
    api::labels::parse(label_selector);
  } catch (const api::SelectorError& e) {
    throw CLI::ValidationError("-l", e.what());
  }
}

void SelectionFlags::check_for_watch() const {
  if (targets.size() > 1 || targets.front().names.size() > 1)
    throw CLI::ValidationError("RESOURCE", "a watch follows one resource, or one object of it");
}

std::vector<api::Object> SelectionFlags::list(const rest::ResourceClient& objects) const {
  rest::ListOptions options;
  options.label_selector = label_selector;
  options.field_selector = field_selector;
  options.limit = page_size;
  std::vector<api::Object> out;
  for (;;) {
    rest::List<> page = objects.list(options);
    std::ranges::move(page.items, std::back_inserter(out));
    if (page.continue_token.empty()) return out;
    options.continue_token = page.continue_token;
  }
}

std::string SelectionFlags::namespace_of(const api::Resource& of,
                                         const rest::Client& client) const {
  if (!of.namespaced || all_namespaces) return {};
  return ns.empty() ? client.config().default_namespace : ns;
}

const std::vector<rest::ApiResource>& ResourceFinder::discovered() {
  if (!discovered_) discovered_ = rest::discover(client_);
  return *discovered_;
}

api::Resource ResourceFinder::find(const std::string& name) {
  // The core group is the same on every server; other resources and versions need discovery.
  const api::ResourceInfo* builtin = api::find_builtin_by_name(name);
  if (builtin != nullptr && builtin->group.empty()) return api::Resource(builtin->type());
  // As in kubectl, "Pods" and "CM" are names, too.
  for (const std::string& each : {name, base::lower_case(name)}) {
    if (const auto* found = rest::find_resource(discovered(), each)) return found->resource;
  }
  std::vector<std::string> known;
  for (const auto& resource : discovered()) {
    known.push_back(resource.resource.plural);
    known.push_back(resource.resource.qualified_name());
    known.push_back(resource.singular);
    known.insert(known.end(), resource.short_names.begin(), resource.short_names.end());
  }
  const std::string meant = closest(name, known);
  throw Error(fmt::format("the server has no resource \"{}\"{}", name,
                          meant.empty() ? ": lookout api-resources shows what it has"
                                        : fmt::format(": did you mean \"{}\"?", meant)));
}

std::vector<api::Resource> ResourceFinder::find_all(const std::string& name) {
  const api::ResourceInfo* builtin = api::find_builtin_by_name(name);
  if (builtin != nullptr && builtin->group.empty()) return {api::Resource(builtin->type())};
  std::vector<api::Resource> out;
  for (const auto& each : discovered()) {
    if (std::ranges::find(each.categories, name) == each.categories.end()) continue;
    // Another version of a resource is less preferred.
    const auto same = [&](const api::Resource& known) {
      return known.group == each.resource.group && known.plural == each.resource.plural;
    };
    if (std::ranges::none_of(out, same)) out.push_back(each.resource);
  }
  if (out.empty()) out.push_back(find(name));
  return out;
}

api::Resource ResourceFinder::find(const api::Object& object) {
  const auto* found = rest::find_resource(discovered(), object.gvk());
  if (found != nullptr) return found->resource;
  throw Error(
      fmt::format("the server has no kind {} in {}: is its CustomResourceDefinition installed?",
                  object.kind(), object.api_version()));
}

}  // namespace lookout::cmd
