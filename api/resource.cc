#include "lookout/api/resource.h"

#include "lookout/base/ascii.h"

namespace lookout::api {
namespace {

#include "api/resource_table.inc"

std::string join(std::string_view group, std::string_view version) {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

bool has_name(const ResourceInfo& info, std::string_view name) {
  if (base::equal_ignoring_case(name, info.plural) ||
      base::equal_ignoring_case(name, info.singular) ||
      base::equal_ignoring_case(name, info.kind)) {
    return true;
  }
  for (const auto short_name : split_list(info.short_names)) {
    if (name == short_name) return true;
  }
  return false;
}

}  // namespace

std::string GroupVersionKind::api_version() const { return join(group, version); }
std::string GroupVersionKind::to_string() const { return api_version() + " " + kind; }

GroupVersionKind GroupVersionKind::from(std::string_view api_version, std::string_view kind) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", std::string(api_version), std::string(kind)};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1)),
          std::string(kind)};
}

Resource::Resource(std::string group_, std::string version_, std::string kind_, std::string plural_,
                   bool namespaced_)
    : group(std::move(group_)),
      version(std::move(version_)),
      kind(std::move(kind_)),
      plural(std::move(plural_)),
      namespaced(namespaced_) {}

Resource::Resource(const ResourceType& type)
    : group(type.group),
      version(type.version),
      kind(type.kind),
      plural(type.plural),
      namespaced(type.namespaced) {}

std::string Resource::api_version() const { return join(group, version); }
std::string Resource::qualified_name() const {
  return group.empty() ? plural : plural + "." + group;
}
std::string Resource::root_path() const {
  return (group.empty() ? "/api/" : "/apis/") + join(group, version);
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    out.push_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return out;
}

std::string_view schema_version() { return kSchemaVersion; }
std::span<const ResourceInfo> builtin_resources() { return kBuiltinResources; }

const ResourceInfo* find_builtin(std::string_view group, std::string_view version,
                                 std::string_view kind) {
  for (const auto& info : kBuiltinResources) {
    if (info.group == group && info.version == version && info.kind == kind) return &info;
  }
  return nullptr;
}

const ResourceInfo* find_builtin_by_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  const std::string_view resource = name.substr(0, dot);
  std::string_view group =
      dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1);
  for (const auto& info : kBuiltinResources) {
    if (!has_name(info, resource)) continue;
    if (dot == std::string_view::npos || info.group == group) return &info;
    // "deployments.v1.apps"; the core group may be left out: "pods.v1", "pods.v1."
    const std::string versioned = std::string(info.version) + "." + std::string(info.group);
    if (group == versioned || (info.group.empty() && group == info.version)) return &info;
  }
  return nullptr;
}

}  // namespace lookout::api
