#include "apiserver/openapi/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/openapi/custom_schema.h"

namespace lookout::apiserver::openapi {
namespace {

using json::Allocator;
using json::Value;
using resources::ServedResource;
using resources::Subresource;

struct Parameter {
  std::string_view name;
  std::string_view type;
  std::string_view description;
};

constexpr Parameter kDryRun{"dryRun", "string",
                            "All: the request is processed, but nothing is stored."};
constexpr Parameter kFieldManager{"fieldManager", "string",
                                  "The name of the actor that makes the changes."};
constexpr Parameter kFieldValidation{
    "fieldValidation", "string",
    "The treatment of unknown and repeated fields: Strict, Warn or Ignore."};

constexpr auto kList = std::to_array<Parameter>({
    {"allowWatchBookmarks", "boolean", "Requests events of type BOOKMARK in a watch."},
    {"continue", "string", "The continue token of the previous page of the list."},
    {"fieldSelector", "string",
     "A selector to restrict the list of returned objects by their fields."},
    {"labelSelector", "string",
     "A selector to restrict the list of returned objects by their labels."},
    {"limit", "integer", "The maximum number of objects in a response."},
    {"resourceVersion", "string", "The version that the response must not be older than."},
    {"resourceVersionMatch", "string", "How resourceVersion applies: NotOlderThan or Exact."},
    {"sendInitialEvents", "boolean", "Begins a watch with the existing objects."},
    {"timeoutSeconds", "integer", "The maximum duration of the call."},
    {"watch", "boolean",
     "Watch for changes to the described resources and return them as a stream of add, update, and "
     "remove notifications."},
});
constexpr auto kWrite = std::to_array<Parameter>({kDryRun, kFieldManager, kFieldValidation});
constexpr auto kPatch =
    std::to_array<Parameter>({kDryRun,
                              kFieldManager,
                              kFieldValidation,
                              {"force", "boolean", "An apply takes over fields of other owners."}});
constexpr auto kDelete = std::to_array<Parameter>(
    {kDryRun,
     {"gracePeriodSeconds", "integer", "The seconds before the object is deleted."},
     {"orphanDependents", "boolean", "Deprecated: use propagationPolicy."},
     {"propagationPolicy", "string",
      "How dependents are collected: Orphan, Background or Foreground."}});
constexpr auto kPretty =
    std::to_array<Parameter>({{"pretty", "string", "true: the response is pretty-printed."}});
constexpr Parameter kName{"name", "string", "The name of the object."};
constexpr Parameter kNamespace{"namespace", "string", "The namespace of the object."};

/// The verb of an operation, for its operationId and description.
struct Action {
  std::string_view verb;  // x-kubernetes-action
  std::string_view id;
  std::string_view description;  // {0}: the kind, {1}: "status of " or nothing, {2}: its article
};
constexpr Action kActions[] = {
    {"list", "list", "list or watch objects of kind {0}"},
    {"get", "read", "read {1}the specified {0}"},
    {"post", "create", "create {1}{2} {0}"},
    {"put", "replace", "replace {1}the specified {0}"},
    {"patch", "patch", "partially update {1}the specified {0}"},
    {"delete", "delete", "delete {2} {0}"},
    {"deletecollection", "delete", "delete collection of {0}"},
};

std::string capitalized(std::string_view text) {
  std::string out(text);
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

/// "RbacAuthorizationV1" for rbac.authorization.k8s.io/v1.
std::string in_operation_id(std::string_view group, std::string_view version) {
  if (group.empty()) group = "core";
  constexpr std::string_view kSuffix = ".k8s.io";
  if (group.ends_with(kSuffix)) group.remove_suffix(kSuffix.size());
  std::string out;
  for (;;) {
    const std::size_t dot = group.find('.');
    out += capitalized(group.substr(0, dot));
    if (dot == std::string_view::npos) return out + capitalized(version);
    group.remove_prefix(dot + 1);
  }
}

constexpr std::string_view kJson = "application/json";
constexpr auto kPatchTypes =
    std::to_array<std::string_view>({"application/json-patch+json", "application/merge-patch+json",
                                     "application/strategic-merge-patch+json"});

/// The scope of an operation, for its operationId.
enum class Scope { kCluster, kOneNamespace, kAllNamespaces };

/// Writes the operations of one resource.
class PathWriter {
 public:
  PathWriter(const ServedResource& resource, Schemas& schemas, Value& paths, Allocator& allocator)
      : resource_(resource), schemas_(schemas), paths_(paths), allocator_(allocator) {}

  void write() {
    const auto& type = resource_.type;
    const std::string root = type.root_path();
    const std::string collection =
        root + (type.namespaced ? "/namespaces/{namespace}/" : "/") + type.plural;
    scope_ = type.namespaced ? Scope::kOneNamespace : Scope::kCluster;
    Value on_collection = object();
    if (resource_.has_verb("list")) add(on_collection, "get", "list", kList, list_schema());
    if (resource_.has_verb("create")) add(on_collection, "post", "post", kWrite, schema());
    if (resource_.has_verb("deletecollection"))
      add(on_collection, "delete", "deletecollection", kDelete, of_kind({"", "v1", "Status"}));
    put(collection, std::move(on_collection), type.namespaced, false);

    Value on_object = object();
    if (resource_.has_verb("get")) add(on_object, "get", "get", kPretty, schema());
    add_changes(on_object, type.gvk(), resource_.verbs);
    if (resource_.has_verb("delete"))
      add(on_object, "delete", "delete", kDelete, of_kind({"", "v1", "Status"}));
    put(collection + "/{name}", std::move(on_object), type.namespaced, true);

    if (type.namespaced && resource_.has_verb("list")) {
      Value everywhere = object();
      scope_ = Scope::kAllNamespaces;
      add(everywhere, "get", "list", kList, list_schema());
      scope_ = Scope::kOneNamespace;
      put(root + "/" + type.plural, std::move(everywhere), false, false);
    }
    for (const Subresource& part : resource_.subresources) {
      // Streams have no schema.
      if (part.kind.kind.ends_with("Options") || part.name == "log") continue;
      Value on_part = object();
      gvk_ = part.kind;
      part_ = part.name;
      const auto has = [&](std::string_view verb) {
        return std::find(part.verbs.begin(), part.verbs.end(), verb) != part.verbs.end();
      };
      if (has("get")) add(on_part, "get", "get", kPretty, of_kind(part.kind));
      if (has("create")) add(on_part, "post", "post", kWrite, of_kind(part.kind));
      add_changes(on_part, part.kind, part.verbs);
      gvk_ = type.gvk();
      part_ = {};
      put(collection + "/{name}/" + part.name, std::move(on_part), type.namespaced, true);
    }
  }

 private:
  static Value object() { return Value(rapidjson::kObjectType); }
  bool v3() const { return schemas_.dialect() == Dialect::kV3; }

  Value of_kind(const api::GroupVersionKind& gvk) {
    if (resource_.custom && gvk == resource_.type.gvk())
      return add_custom_schema(resource_, schemas_, allocator_);
    return schemas_.of_kind(gvk);
  }
  Value schema() { return of_kind(resource_.type.gvk()); }
  Value list_schema() {
    const api::GroupVersionKind list{resource_.type.group, resource_.type.version,
                                     resource_.list_kind};
    if (!resource_.custom) {
      Value out = schemas_.of_kind(list);
      schemas_.describe_items(list, "List of " + resource_.type.plural);
      return out;
    }
    schema();
    return schemas_.reference(custom_schema_name(list));
  }

  void add_changes(Value& item, const api::GroupVersionKind& gvk,
                   const std::vector<std::string>& verbs) {
    for (const std::string& verb : verbs) {
      if (verb == "update") add(item, "put", "put", kWrite, of_kind(gvk));
      if (verb == "patch") add(item, "patch", "patch", kPatch, of_kind(gvk));
    }
  }

  Value parameter(const Parameter& parameter, bool in_path) {
    Value out = object();
    json::set(out, "name", parameter.name, allocator_);
    json::set(out, "in", in_path ? "path" : "query", allocator_);
    json::set(out, "description", parameter.description, allocator_);
    if (in_path) json::set(out, "required", Value(true), allocator_);
    Value schema = object();
    json::set(v3() ? schema : out, "type", parameter.type, allocator_);
    json::set(v3() ? schema : out, "uniqueItems", Value(true), allocator_);
    if (v3()) json::set(out, "schema", std::move(schema), allocator_);
    return out;
  }

  /// "listCoreV1NamespacedPod", "readAppsV1NamespacedDeploymentStatus".
  void name_operation(Value& operation, std::string_view verb) {
    const Action& action = *std::find_if(std::begin(kActions), std::end(kActions),
                                         [&](const Action& one) { return one.verb == verb; });
    const auto& type = resource_.type;
    const std::string of_part = part_.empty() ? "" : fmt::format("{} of ", part_);
    const bool vowel = std::string_view("AEIOU").find(type.kind[0]) != std::string_view::npos;
    json::set(operation, "description",
              fmt::format(fmt::runtime(action.description), type.kind, of_part, vowel ? "an" : "a"),
              allocator_);
    json::set(
        operation, "operationId",
        fmt::format("{}{}{}{}{}{}{}", action.id, in_operation_id(type.group, type.version),
                    verb == "deletecollection" ? "Collection" : "",
                    scope_ == Scope::kOneNamespace ? "Namespaced" : "", type.kind,
                    capitalized(part_), scope_ == Scope::kAllNamespaces ? "ForAllNamespaces" : ""),
        allocator_);
  }

  Value content(Value schema, const std::vector<std::string_view>& types) {
    Value out = object();
    for (const std::string_view type : types) {
      Value media = object();
      json::set(media, "schema", json::deep_copy(schema, allocator_), allocator_);
      json::set(out, type, std::move(media), allocator_);
    }
    return out;
  }

  Value texts(const std::vector<std::string_view>& texts) {
    Value out(rapidjson::kArrayType);
    for (const auto text : texts) out.PushBack(json::copy_text(text, allocator_), allocator_);
    return out;
  }

  void add_body(Value& operation, Value& parameters, std::string_view method, Value schema) {
    const bool patch = method == "patch";
    std::vector<std::string_view> types{kJson};
    if (patch) {
      types.assign(kPatchTypes.begin(), kPatchTypes.end());
      // Clients check here whether strategic merge patches, which need built-in types, are supported.
      if (resource_.custom) types.pop_back();
      schema = object();
      json::set(schema, "type", "object", allocator_);
    }
    if (v3()) {
      Value body = object();
      json::set(body, "content", content(std::move(schema), types), allocator_);
      if (method != "delete") json::set(body, "required", Value(true), allocator_);
      json::set(operation, "requestBody", std::move(body), allocator_);
      return;
    }
    json::set(operation, "consumes", texts(types), allocator_);
    Value body = object();
    json::set(body, "name", "body", allocator_);
    json::set(body, "in", "body", allocator_);
    if (method != "delete") json::set(body, "required", Value(true), allocator_);
    json::set(body, "schema", std::move(schema), allocator_);
    parameters.PushBack(body, allocator_);
  }

  template <class Parameters>
  void add(Value& item, std::string_view method, std::string_view action,
           const Parameters& parameters, Value result) {
    Value operation = object();
    const std::string_view tag = resource_.type.group.empty()
                                     ? std::string_view("core")
                                     : std::string_view(resource_.type.group);
    json::set(operation, "tags", texts({tag}), allocator_);
    name_operation(operation, action);
    Value list(rapidjson::kArrayType);
    if (method == "post" || method == "put" || method == "patch")
      add_body(operation, list, method, json::deep_copy(result, allocator_));
    if (method == "delete") {
      const auto options = schemas_.of_kind({"", "v1", "DeleteOptions"});
      if (!options.IsNull())
        add_body(operation, list, method, json::deep_copy(options, allocator_));
    }
    for (const Parameter& one : parameters) list.PushBack(parameter(one, false), allocator_);
    json::set(operation, "parameters", std::move(list), allocator_);
    Value response = object();
    json::set(response, "description", "OK", allocator_);
    if (result.IsNull()) {
      result = object();
      json::set(result, "type", "object", allocator_);
    }
    if (v3()) {
      json::set(response, "content", content(std::move(result), {kJson}), allocator_);
    } else {
      json::set(operation, "produces", texts({kJson}), allocator_);
      json::set(response, "schema", std::move(result), allocator_);
    }
    Value responses = object();
    json::set(responses, "200", std::move(response), allocator_);
    json::set(operation, "responses", std::move(responses), allocator_);
    json::set(operation, kAction, action, allocator_);
    json::set(operation, kGroupVersionKind, group_version_kind(gvk_, allocator_), allocator_);
    json::set(item, method, std::move(operation), allocator_);
  }

  void put(const std::string& path, Value item, bool in_namespace, bool named) {
    if (item.ObjectEmpty()) return;
    Value parameters(rapidjson::kArrayType);
    if (named) parameters.PushBack(parameter(kName, true), allocator_);
    if (in_namespace) parameters.PushBack(parameter(kNamespace, true), allocator_);
    if (!parameters.Empty()) json::set(item, "parameters", std::move(parameters), allocator_);
    paths_.AddMember(json::copy_text(path, allocator_), item, allocator_);
  }

  const ServedResource& resource_;
  Schemas& schemas_;
  Value& paths_;
  Allocator& allocator_;
  /// The type that the current operations concern.
  api::GroupVersionKind gvk_ = resource_.type.gvk();
  std::string_view part_;  // their subresource
  Scope scope_ = Scope::kCluster;
};

}  // namespace

void add_paths(const ServedResource& resource, Schemas& schemas, Value& paths,
               Allocator& allocator) {
  PathWriter(resource, schemas, paths, allocator).write();
}

}  // namespace lookout::apiserver::openapi
