#include "apiserver/endpoints/discovery.h"

#include <fmt/format.h>
#include <openssl/sha.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/content_hash.h"
#include "apiserver/endpoints/caching.h"
#include "apiserver/endpoints/discovery_protobuf.h"
#include "apiserver/endpoints/negotiation.h"
#include "apiserver/endpoints/protobuf_output.h"
#include "apiserver/json.h"
#include "apiserver/names.h"
#include "lookout/api/detail/json_values.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/status.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::endpoints {
namespace {

using resources::ResourceTable;
using resources::ServedGroup;
using resources::ServedResource;
using resources::ServedResourcePtr;
using resources::Subresource;

std::string to_text(const Document& document) { return json::to_json(document) + "\n"; }

json::Value array(const std::vector<std::string>& texts, Allocator& allocator) {
  json::Value out(rapidjson::kArrayType);
  for (const auto& text : texts) out.PushBack(json::copy_text(text, allocator), allocator);
  return out;
}

void set_if_any(json::Value& object, std::string_view name, const std::vector<std::string>& texts,
                Allocator& allocator) {
  if (!texts.empty()) json::set(object, name, array(texts, allocator), allocator);
}

std::string group_version(std::string_view group, std::string_view version) {
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

/// Kubernetes 1.36 stores these in v1beta1, which this server does not serve.
bool is_kept_as_beta(const ServedResource& resource) {
  const std::string_view plural = resource.type.plural;
  return !resource.custom &&
         (plural == "customresourcedefinitions" || plural == "mutatingadmissionpolicies" ||
          plural == "mutatingadmissionpolicybindings");
}

/// Lets clients detect changes of a resource's storage version.
std::string storage_version_hash(const ServedResource& resource) {
  const auto stored = api::GroupVersionKind::from(resource.storage_version, resource.type.kind);
  const std::string_view version =
      is_kept_as_beta(resource) ? std::string_view("v1beta1") : std::string_view(stored.version);
  const std::string text = fmt::format("{}/{}/{}", stored.group, version, stored.kind);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return encode_base64({reinterpret_cast<const char*>(digest.data()), 8});
}

/// The verbs in discovery. (While a definition is being deleted, its instances can still be changed,
/// so that their finalizers can be removed.)
std::vector<std::string> announced_verbs(const ServedResource& resource) {
  std::vector<std::string> out = resource.verbs;
  if (resource.terminating) {
    std::erase_if(out, [](const std::string& verb) {
      return verb == "create" || verb == "patch" || verb == "update";
    });
  }
  return out;
}

// --- the old form: a request for each group and version

Document resource_list(const ResourceTable& table, std::string_view group,
                       std::string_view version) {
  Document out(rapidjson::kObjectType);
  auto& allocator = out.GetAllocator();
  json::set(out, "kind", "APIResourceList", allocator);
  // The core group is older than this field.
  if (!group.empty()) json::set(out, "apiVersion", "v1", allocator);
  json::set(out, "groupVersion", group_version(group, version), allocator);
  json::Value resources(rapidjson::kArrayType);
  for (const ServedResourcePtr& resource : table.resources()) {
    if (resource->type.group != group || resource->type.version != version) continue;
    json::Value entry(rapidjson::kObjectType);
    json::set(entry, "name", resource->type.plural, allocator);
    json::set(entry, "singularName", resource->singular, allocator);
    json::set(entry, "namespaced", json::Value(resource->type.namespaced), allocator);
    json::set(entry, "kind", resource->type.kind, allocator);
    json::set(entry, "verbs", array(announced_verbs(*resource), allocator), allocator);
    set_if_any(entry, "shortNames", resource->short_names, allocator);
    set_if_any(entry, "categories", resource->categories, allocator);
    if (resource->storage != nullptr)
      json::set(entry, "storageVersionHash", storage_version_hash(*resource), allocator);
    resources.PushBack(entry, allocator);
    for (const Subresource& subresource : resource->subresources) {
      json::Value part(rapidjson::kObjectType);
      json::set(part, "name", resource->type.plural + "/" + subresource.name, allocator);
      json::set(part, "singularName", "", allocator);
      json::set(part, "namespaced", json::Value(resource->type.namespaced), allocator);
      if (subresource.kind.api_version() != resource->type.api_version()) {
        json::set(part, "group", subresource.kind.group, allocator);
        json::set(part, "version", subresource.kind.version, allocator);
      }
      json::set(part, "kind", subresource.kind.kind, allocator);
      json::set(part, "verbs", array(subresource.verbs, allocator), allocator);
      resources.PushBack(part, allocator);
    }
  }
  json::set(out, "resources", std::move(resources), allocator);
  return out;
}

json::Value group_entry(const ServedGroup& group, Allocator& allocator) {
  const auto version_entry = [&](const std::string& version) {
    json::Value out(rapidjson::kObjectType);
    json::set(out, "groupVersion", group_version(group.name, version), allocator);
    json::set(out, "version", version, allocator);
    return out;
  };
  json::Value out(rapidjson::kObjectType);
  json::set(out, "name", group.name, allocator);
  json::Value versions(rapidjson::kArrayType);
  for (const std::string& version : group.versions)
    versions.PushBack(version_entry(version), allocator);
  json::set(out, "versions", std::move(versions), allocator);
  json::set(out, "preferredVersion", version_entry(group.versions.front()), allocator);
  return out;
}

Document group_list(const ResourceTable& table) {
  Document out(rapidjson::kObjectType);
  auto& allocator = out.GetAllocator();
  json::set(out, "kind", "APIGroupList", allocator);
  json::set(out, "apiVersion", "v1", allocator);
  json::Value groups(rapidjson::kArrayType);
  for (const ServedGroup& group : table.groups()) {
    if (!group.name.empty()) groups.PushBack(group_entry(group, allocator), allocator);
  }
  json::set(out, "groups", std::move(groups), allocator);
  return out;
}

Document one_group(const ServedGroup& group) {
  Document out(rapidjson::kObjectType);
  auto& allocator = out.GetAllocator();
  json::Value entry = group_entry(group, allocator);
  json::set(out, "kind", "APIGroup", allocator);
  json::set(out, "apiVersion", "v1", allocator);
  for (auto& member : entry.GetObject())
    out.AddMember(std::move(member.name), std::move(member.value), allocator);
  return out;
}

Document legacy_versions(const std::string& server_address) {
  Document out(rapidjson::kObjectType);
  auto& allocator = out.GetAllocator();
  json::set(out, "kind", "APIVersions", allocator);
  json::set(out, "versions", array({"v1"}, allocator), allocator);
  json::Value address(rapidjson::kObjectType);
  json::set(address, "clientCIDR", "0.0.0.0/0", allocator);
  json::set(address, "serverAddress", server_address, allocator);
  json::Value addresses(rapidjson::kArrayType);
  addresses.PushBack(address, allocator);
  json::set(out, "serverAddressByClientCIDRs", std::move(addresses), allocator);
  return out;
}

// --- the aggregated form

json::Value response_kind(const ServedResource& resource, const api::GroupVersionKind& kind,
                          Allocator& allocator) {
  // As in kube-apiserver, empty if they are the resource's group and version.
  const bool own = !resource.custom && kind.api_version() == resource.type.api_version();
  json::Value out(rapidjson::kObjectType);
  json::set(out, "group", own ? std::string_view{} : std::string_view(kind.group), allocator);
  json::set(out, "version", own ? std::string_view{} : std::string_view(kind.version), allocator);
  json::set(out, "kind", kind.kind, allocator);
  return out;
}

json::Value aggregated_resource(const ServedResource& resource, Allocator& allocator) {
  json::Value out(rapidjson::kObjectType);
  json::set(out, "resource", resource.type.plural, allocator);
  json::set(out, "responseKind", response_kind(resource, resource.type.gvk(), allocator),
            allocator);
  json::set(out, "scope", resource.type.namespaced ? "Namespaced" : "Cluster", allocator);
  json::set(out, "singularResource", resource.singular, allocator);
  json::set(out, "verbs", array(announced_verbs(resource), allocator), allocator);
  set_if_any(out, "shortNames", resource.short_names, allocator);
  set_if_any(out, "categories", resource.categories, allocator);
  json::Value subresources(rapidjson::kArrayType);
  for (const Subresource& subresource : resource.subresources) {
    json::Value entry(rapidjson::kObjectType);
    json::set(entry, "subresource", subresource.name, allocator);
    json::set(entry, "responseKind", response_kind(resource, subresource.kind, allocator),
              allocator);
    json::set(entry, "verbs", array(subresource.verbs, allocator), allocator);
    subresources.PushBack(entry, allocator);
  }
  if (!subresources.Empty()) json::set(out, "subresources", std::move(subresources), allocator);
  return out;
}

Document aggregated(const ResourceTable& table, bool core) {
  Document out(rapidjson::kObjectType);
  auto& allocator = out.GetAllocator();
  json::set(out, "kind", "APIGroupDiscoveryList", allocator);
  json::set(out, "apiVersion", "apidiscovery.k8s.io/v2", allocator);
  json::child(out, "metadata", allocator);
  json::Value items(rapidjson::kArrayType);
  for (const ServedGroup& group : table.groups()) {
    if (group.name.empty() != core) continue;
    json::Value item(rapidjson::kObjectType);
    json::Value& metadata = json::child(item, "metadata", allocator);
    if (!core) json::set(metadata, "name", group.name, allocator);
    json::Value versions(rapidjson::kArrayType);
    for (const std::string& version : group.versions) {
      json::Value entry(rapidjson::kObjectType);
      json::set(entry, "version", version, allocator);
      json::Value resources(rapidjson::kArrayType);
      for (const ServedResourcePtr& resource : table.resources()) {
        if (resource->type.group == group.name && resource->type.version == version)
          resources.PushBack(aggregated_resource(*resource, allocator), allocator);
      }
      json::set(entry, "resources", std::move(resources), allocator);
      json::set(entry, "freshness", "Current", allocator);
      versions.PushBack(entry, allocator);
    }
    json::set(item, "versions", std::move(versions), allocator);
    items.PushBack(item, allocator);
  }
  json::set(out, "items", std::move(items), allocator);
  return out;
}

/// The type of the first clause of the Accept header that requests aggregated discovery; empty if
/// there is none. Other clauses are ignored.
std::string_view aggregated_type(const http::Request& request) {
  if (request.path == "/apis/") return {};
  for (const MediaRange& range : parse_accept(request.header("accept"))) {
    if (range.parameter("as") != "APIGroupDiscoveryList" ||
        range.parameter("g") != "apidiscovery.k8s.io" || range.parameter("v") != "v2")
      continue;
    if (range.type == api::kProtobufMediaType) return api::kProtobufMediaType;
    if (covers_json(range.type)) return "application/json";
  }
  return {};
}

http::Response aggregated_answer(const http::Request& request, const Document& document,
                                 std::string_view type) {
  http::Response response;
  std::string text = to_text(document);
  // Both forms have the same tag.
  const std::string hash = content_hash(text);
  response.body =
      type == api::kProtobufMediaType ? encode_group_discovery(document) : std::move(text);
  response.content_type =
      fmt::format("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", type);
  response.headers.emplace_back("Cache-Control", "public");
  response.headers.emplace_back("Vary", "Accept");
  set_etag(request, hash, response);
  return response;
}

/// Whether go-restful routes requests for a document. (Kubernetes' aggregator serves the groups.)
bool is_routed(const http::Request& request, const ResourceTable& table) {
  const auto& parts = request.segments;
  if (parts[0] == "api") return true;
  if (parts.size() < 3) return false;
  return std::ranges::none_of(table.resources(), [&](const ServedResourcePtr& resource) {
    return resource->custom && resource->type.group == parts[1];
  });
}

http::Response answer(const Document& document) {
  http::Response response;
  response.headers.emplace_back("Cache-Control", "no-cache, private");
  response.body = to_text(document);
  return response;
}

std::optional<http::Response> find_document(const http::Request& request,
                                            const ResourceTable& table,
                                            const std::string& server_address) {
  const auto& parts = request.segments;
  if (parts.empty() || parts.size() > 3) return std::nullopt;
  const bool core = parts[0] == "api";
  if (!core && parts[0] != "apis") return std::nullopt;
  if (parts.size() == 1) {
    if (const auto type = aggregated_type(request); !type.empty())
      return aggregated_answer(request, aggregated(table, core), type);
    return answer(core ? legacy_versions(server_address) : group_list(table));
  }
  if (core) {
    if (parts.size() != 2 || !table.has_version("", parts[1])) return std::nullopt;
    return answer(resource_list(table, "", parts[1]));
  }
  if (parts[1].empty()) return std::nullopt;
  if (parts.size() == 2) {
    const ServedGroup* group = table.find_group(parts[1]);
    if (group == nullptr) return std::nullopt;
    return answer(one_group(*group));
  }
  if (!table.has_version(parts[1], parts[2])) return std::nullopt;
  return answer(resource_list(table, parts[1], parts[2]));
}

}  // namespace

std::optional<http::Response> discover(const http::Request& request, const ResourceTable& table,
                                       const std::string& server_address) {
  auto found = find_document(request, table, server_address);
  if (!found) return std::nullopt;
  const bool routed = is_routed(request, table);
  if (routed && request.method != "GET")
    throw api::StatusError::generic(405, "", "", "", "", "", 0, false);
  const bool in_aggregated_form = request.segments.size() == 1 && !aggregated_type(request).empty();
  if (in_aggregated_form) return found;
  check_accepts_document(request, routed);
  if (prefers_protobuf(request)) {
    const api::Object document = api::Object::parse(found->body);
    set_protobuf_body(api::with_type(document, "v1", document.kind()), *found);
  }
  return found;
}

}  // namespace lookout::apiserver::endpoints
