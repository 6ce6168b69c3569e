#include "lookout/rest/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lookout/api/detail/texts.h"
#include "lookout/base/ascii.h"
#include "lookout/base/detail/log.h"
#include "lookout/k8s/meta/v1.h"
#include "rest/request.h"

namespace lookout::rest {
namespace {

using api::detail::texts_of;

constexpr std::string_view kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// An APIGroupDiscoveryList: all groups, versions and resources in one response.
void add_aggregated(const api::Object& list, std::vector<ApiResource>& out) {
  for (const api::Value group : list["items"].elements()) {
    const std::string name(group["metadata"]["name"].as_string());
    for (const api::Value version : group["versions"].elements()) {
      // The group's server does not respond, so its resources are out of date (client-go:
      // StaleGroupVersionError).
      if (version["freshness"].as_string() == "Stale") {
        log::warn("discovery of {}/{}: its server does not answer", name,
                  version["version"].as_string());
        continue;
      }
      for (const api::Value r : version["resources"].elements()) {
        // Only its subresources are served (client-go: "missing GVK"). Another group may serve a
        // resource of this name.
        if (r["responseKind"]["kind"].as_string().empty()) continue;
        api::Resource resource(name, std::string(version["version"].as_string()),
                               std::string(r["responseKind"]["kind"].as_string()),
                               std::string(r["resource"].as_string()),
                               r["scope"].as_string() == "Namespaced");
        out.push_back({std::move(resource), std::string(r["singularResource"].as_string()),
                       texts_of(r["shortNames"]), texts_of(r["verbs"]), texts_of(r["categories"])});
      }
    }
  }
}

/// An APIResourceList: the resources of one group and version.
void add_legacy(const k8s::meta::v1::APIResourceList& list, std::vector<ApiResource>& out) {
  const auto in = api::GroupVersionKind::from(list.group_version(), "");
  for (const auto r : list.resources()) {
    if (r.name().find('/') != std::string_view::npos) continue;
    const api::Value raw = r.as_value();
    out.push_back({api::Resource(in.group, in.version, std::string(r.kind()), std::string(r.name()),
                                 r.namespaced()),
                   std::string(r.singular_name()), texts_of(raw["shortNames"]),
                   texts_of(raw["verbs"]), texts_of(raw["categories"])});
  }
}

/// Whether the failure affects only this group.
bool is_of_one_group(const Error& e) {
  if (dynamic_cast<const TransportError*>(&e) != nullptr) return !is_cancelled(e);
  return dynamic_cast<const api::StatusError*>(&e) != nullptr ||
         dynamic_cast<const api::DecodeError*>(&e) != nullptr;
}

bool has_name(const ApiResource& r, std::string_view name) {
  return base::equal_ignoring_case(name, r.resource.plural) ||
         base::equal_ignoring_case(name, r.singular) ||
         base::equal_ignoring_case(name, r.resource.kind) ||
         std::find(r.short_names.begin(), r.short_names.end(), name) != r.short_names.end();
}

}  // namespace

bool ApiResource::has_verb(std::string_view verb) const {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

api::Object get_json(const Client& client, const std::string& path, const CallOptions& call,
                     const std::string& accept) {
  const std::string body = client.get_raw(path, call, accept);
  api::Object object;
  try {
    object = api::Object::parse(body);
  } catch (const api::DecodeError& e) {
    throw api::DecodeError(fmt::format("get {}: the answer is not JSON: {}; {}", path, e.what(),
                                       detail::beginning_of_answer(body)));
  }
  detail::throw_if_failure(object);
  return object;
}

std::vector<ApiResource> discover(const Client& client, const CallOptions& call) {
  std::vector<ApiResource> out;
  const auto fetch = [&](const std::string& path) {
    return get_json(client, path, call, std::string(kAggregated));
  };
  const auto add_group_version = [&](const std::string& path) {
    try {
      add_legacy(k8s::meta::v1::APIResourceList(fetch(path)), out);
    } catch (const Error& e) {
      if (!is_of_one_group(e)) throw;
      log::warn("discovery of {}: {}", path, e.what());
    }
  };
  const api::Object core = [&] {
    try {
      return fetch("/api");
    } catch (const api::StatusError& e) {
      // A server with only aggregated APIs has no core group (client-go: downloadLegacy).
      if (e.code() != 404) throw;
      return api::Object();
    }
  }();
  if (core.kind() == "APIGroupDiscoveryList") {
    add_aggregated(core, out);
  } else {
    for (const api::Value version : core["versions"].elements()) {
      add_group_version("/api/" + std::string(version.as_string()));
    }
  }
  const api::Object groups = fetch("/apis");
  if (groups.kind() == "APIGroupDiscoveryList") {
    add_aggregated(groups, out);
    return out;
  }
  for (const api::Value group : groups["groups"].elements()) {
    const std::string preferred(group["preferredVersion"]["groupVersion"].as_string());
    if (!preferred.empty()) add_group_version("/apis/" + preferred);
    for (const api::Value version : group["versions"].elements()) {
      const std::string name(version["groupVersion"].as_string());
      if (name != preferred) add_group_version("/apis/" + name);
    }
  }
  return out;
}

const ApiResource* find_resource(std::span<const ApiResource> resources, std::string_view name) {
  const std::size_t dot = name.find('.');
  const std::string_view resource = name.substr(0, dot);
  const std::string_view group = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  for (const auto& r : resources) {
    if (!has_name(r, resource)) continue;
    if (dot == std::string_view::npos || group == r.resource.group) return &r;
    const std::string versioned = r.resource.version + "." + r.resource.group;
    if (group == versioned || (r.resource.group.empty() && group == r.resource.version)) return &r;
  }
  return nullptr;
}

const ApiResource* find_resource(std::span<const ApiResource> resources,
                                 const api::GroupVersionKind& kind) {
  const auto found = std::find_if(resources.begin(), resources.end(),
                                  [&](const ApiResource& r) { return r.resource.gvk() == kind; });
  return found == resources.end() ? nullptr : &*found;
}

}  // namespace lookout::rest
