#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/conditions.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::resources {
namespace {

json::Value array() { return json::Value(rapidjson::kArrayType); }

/// `part`: the metadata, or the spec of a namespace.
void add_finalizer(json::Value& part, std::string_view finalizer, Allocator& allocator) {
  const json::Value* present = json::find(part, "finalizers");
  if (present == nullptr || !present->IsArray()) json::set(part, "finalizers", array(), allocator);
  json::Value& finalizers = *json::find(part, "finalizers");
  for (const json::Value& one : finalizers.GetArray()) {
    if (one.IsString() && json::text_of(one) == finalizer) return;
  }
  finalizers.PushBack(json::copy_text(finalizer, allocator), allocator);
}

/// Adds the protection finalizer (admission plugin StorageObjectInUseProtection).
void protect(json::Value& object, std::string_view finalizer, Allocator& allocator) {
  add_finalizer(json::child(object, "metadata", allocator), finalizer, allocator);
}

/// The version that objects are stored in.
std::string_view storage_version(const json::Value& spec) {
  const json::Value* versions = json::find(spec, "versions");
  if (versions == nullptr || !versions->IsArray()) return {};
  for (const json::Value& version : versions->GetArray()) {
    const json::Value* storage = json::find(version, "storage");
    if (storage != nullptr && storage->IsTrue()) return json::text(version, "name");
  }
  return {};
}

/// Adds the definition's storage version to status.storedVersions.
void add_stored_version(json::Value& definition, Allocator& allocator) {
  const json::Value* spec = json::find(definition, "spec");
  if (spec == nullptr) return;
  json::Value& status = json::child(definition, "status", allocator);
  const std::string_view stored = storage_version(*spec);
  json::set_default(status, "storedVersions", array(), allocator);
  json::Value& versions = *json::find(status, "storedVersions");
  for (const json::Value& version : versions.GetArray()) {
    if (version.IsString() && json::text_of(version) == stored) return;
  }
  if (!stored.empty()) versions.PushBack(json::copy_text(stored, allocator), allocator);
}

/// Removes a data source in another namespace (a disabled feature), unless the old claim has one.
void drop_foreign_source(json::Value& spec, const json::Value* old) {
  const json::Value* source = json::find(spec, "dataSourceRef");
  if (source == nullptr || json::text(*source, "namespace").empty()) return;
  if (old == nullptr || json::find(*old, "dataSourceRef") == nullptr)
    json::erase(spec, "dataSourceRef");
}

/// Synchronizes dataSource and dataSourceRef of a claim, unless both are set. dataSource supports only
/// claims and snapshots.
void unite_sources(json::Value& spec, Allocator& allocator) {
  const json::Value* source = json::find(spec, "dataSource");
  const json::Value* reference = json::find(spec, "dataSourceRef");
  if (source != nullptr && source->IsObject() && reference == nullptr) {
    const std::string_view kind = json::text(*source, "kind");
    const std::string_view group = json::text(*source, "apiGroup");
    const bool known = (kind == "PersistentVolumeClaim" && group.empty()) ||
                       (kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io");
    if (!known) {
      json::erase(spec, "dataSource");
    } else {
      json::set(spec, "dataSourceRef", json::deep_copy(*source, allocator), allocator);
    }
  } else if (reference != nullptr && reference->IsObject() && source == nullptr &&
             json::text(*reference, "namespace").empty()) {
    json::set(spec, "dataSource", json::deep_copy(*reference, allocator), allocator);
  }
}

}  // namespace

/// A limit range without a name gets a random one.
void prepare_limit_range(json::Value& range, Allocator& allocator) {
  json::Value& metadata = json::child(range, "metadata", allocator);
  if (json::text(metadata, "name").empty()) json::set(metadata, "name", new_uid(), allocator);
}

/// Adds the not-ready taint to new nodes (admission plugin TaintNodesByCondition).
void prepare_node(json::Value& node, Allocator& allocator) {
  constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
  json::Value& spec = json::child(node, "spec", allocator);
  json::erase(spec, "configSource");  // removed from Kubernetes
  const json::Value* present = json::find(spec, "taints");
  if (present == nullptr || !present->IsArray()) json::set(spec, "taints", array(), allocator);
  json::Value& taints = *json::find(spec, "taints");
  for (const json::Value& taint : taints.GetArray()) {
    if (json::text(taint, "key") == kNotReady && json::text(taint, "effect") == "NoSchedule")
      return;
  }
  json::Value taint(rapidjson::kObjectType);
  json::set(taint, "key", kNotReady, allocator);
  json::set(taint, "effect", "NoSchedule", allocator);
  taints.PushBack(taint, allocator);
}

/// Removes spec.configSource, unless the old node has it.
void prepare_node_update(json::Value& node, const json::Value& old, Allocator& /*allocator*/) {
  const json::Value* before = json::find(old, "spec");
  if (before != nullptr && json::find(*before, "configSource") != nullptr) return;
  if (json::Value* spec = json::find(node, "spec")) json::erase(*spec, "configSource");
}

/// A job finds its pods by a label with its uid, unless spec.manualSelector is set.
void prepare_job(json::Value& job, Allocator& allocator) {
  json::Value* spec = json::find(job, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  const json::Value* manual = json::find(*spec, "manualSelector");
  if (manual != nullptr && manual->IsTrue()) return;
  const json::Value& metadata = json::child(job, "metadata", allocator);
  const std::string uid(json::text(metadata, "uid"));
  const std::string name(json::text(metadata, "name"));
  json::Value& pod = json::child(json::child(*json::find(job, "spec"), "template", allocator),
                                 "metadata", allocator);
  json::Value& labels = json::child(pod, "labels", allocator);
  // A job without its own labels has those of its template.
  const json::Value* own = json::find(*json::find(job, "metadata"), "labels");
  const bool shares = own == nullptr || *own == labels;
  // The creator's values are kept; validation rejects different ones.
  const auto add = [&](json::Value& to, const char* key, const std::string& value) {
    if (json::find(to, key) == nullptr) json::set(to, key, value, allocator);
  };
  for (const char* key : {"batch.kubernetes.io/controller-uid", "controller-uid"})
    add(labels, key, uid);
  for (const char* key : {"batch.kubernetes.io/job-name", "job-name"}) add(labels, key, name);
  json::Value& selector = json::child(*json::find(job, "spec"), "selector", allocator);
  add(json::child(selector, "matchLabels", allocator), "batch.kubernetes.io/controller-uid", uid);
  if (!shares) return;
  const json::Value& of_template = *json::find(
      *json::find(*json::find(*json::find(job, "spec"), "template"), "metadata"), "labels");
  json::set(*json::find(job, "metadata"), "labels", json::deep_copy(of_template, allocator),
            allocator);
}

/// Counts the changes of the template, for old controllers. A new set may have any count.
void prepare_daemon_set(json::Value& set, Allocator& allocator) {
  json::Value& metadata = json::child(set, "metadata", allocator);
  json::Value& annotations = json::child(metadata, "annotations", allocator);
  const std::string present(json::text(annotations, kTemplateGeneration));
  const long long generation = std::strtoll(present.c_str(), nullptr, 10);
  json::set(annotations, kTemplateGeneration, std::to_string(std::max(generation, 1LL)), allocator);
}

void prepare_daemon_set_update(json::Value& set, const json::Value& old, Allocator& allocator) {
  const json::Value* before = json::find(*json::find(old, "metadata"), "annotations");
  const std::string_view text = before == nullptr ? "" : json::text(*before, kTemplateGeneration);
  json::Value& metadata = json::child(set, "metadata", allocator);
  json::set(json::child(metadata, "annotations", allocator), kTemplateGeneration,
            text.empty() ? "1" : std::string(text), allocator);
}

api::Object finish_daemon_set_update(const api::Object& set, const api::Object& old) {
  if (set["spec"]["template"] == old["spec"]["template"]) return set;
  const auto present = set["metadata"]["annotations"][kTemplateGeneration].as_string();
  const long generation = std::strtol(std::string(present).c_str(), nullptr, 10);
  json::Document document = set.to_document();
  json::set(*json::find(*json::find(document, "metadata"), "annotations"), kTemplateGeneration,
            std::to_string(generation + 1), document.GetAllocator());
  return api::Object::from(document);
}

/// Sets the condition Available of a local APIService.
void prepare_api_service(json::Value& service, Allocator& allocator) {
  const json::Value& spec = *json::find(service, "spec");
  const json::Value* reference = json::find(spec, "service");
  if (reference != nullptr && reference->IsObject()) return;
  set_condition(json::child(service, "status", allocator),
                {"Available", true, "Local", "Local APIServices are always available"}, allocator);
}

/// Keeps only the names of an account's secrets, which are in its namespace.
void prepare_service_account(json::Value& account, Allocator& allocator) {
  json::for_each(account, "secrets", [&](json::Value& secret) {
    const std::string name(json::text(secret, "name"));
    secret = json::object();
    if (!name.empty()) json::set(secret, "name", name, allocator);
  });
}

void prepare_service_account_update(json::Value& account, const json::Value& /*old*/,
                                    Allocator& allocator) {
  prepare_service_account(account, allocator);
}

void prepare_namespace(json::Value& ns, Allocator& allocator) {
  add_finalizer(json::child(ns, "spec", allocator), "kubernetes", allocator);
  json::set(json::child(ns, "status", allocator), "phase", "Active", allocator);
}

/// The request of a CertificateSigningRequest is immutable.
void prepare_signing_request_update(json::Value& object, const json::Value& old,
                                    Allocator& allocator) {
  json::take(object, old, "spec", allocator);
}

/// Only the subresource `finalize` changes the namespace's finalizers.
void prepare_namespace_update(json::Value& ns, const json::Value& old, Allocator& allocator) {
  const json::Value* spec = json::find(old, "spec");
  if (spec == nullptr) {
    json::erase(ns, "spec");
  } else {
    json::take(json::child(ns, "spec", allocator), *spec, "finalizers", allocator);
  }
}

void prepare_persistent_volume(json::Value& volume, Allocator& allocator) {
  json::Value& status = json::child(volume, "status", allocator);
  json::set(status, "phase", "Pending", allocator);
  json::set(
      status, "lastPhaseTransitionTime",
      api::format_time(std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())),
      allocator);
  protect(volume, "kubernetes.io/pv-protection", allocator);
}

/// Sets the time of the phase change, unless the client has set it.
void prepare_persistent_volume_status(json::Value& volume, const json::Value& old,
                                      Allocator& allocator) {
  constexpr const char* kTime = "lastPhaseTransitionTime";
  json::Value& status = json::child(volume, "status", allocator);
  const json::Value none(rapidjson::kObjectType);
  const json::Value* found = json::find(old, "status");
  const json::Value& before = found == nullptr ? none : *found;
  const std::string_view time = json::text(status, kTime);
  if (json::text(status, "phase") == json::text(before, "phase")) {
    if (time.empty()) json::take(status, before, kTime, allocator);
  } else if (time.empty() || time == json::text(before, kTime)) {
    json::set(status, kTime,
              api::format_time(
                  std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())),
              allocator);
  }
}

/// Removes status.config, which belongs to a removed feature, unless the old node has it.
void prepare_node_status(json::Value& node, const json::Value& old, Allocator& /*allocator*/) {
  const json::Value* before = json::find(old, "status");
  if (before != nullptr && json::find(*before, "config") != nullptr) return;
  if (json::Value* status = json::find(node, "status"); status != nullptr && status->IsObject())
    json::erase(*status, "config");
}

void prepare_persistent_volume_claim(json::Value& claim, Allocator& allocator) {
  if (json::Value* spec = json::find(claim, "spec"); spec != nullptr && spec->IsObject()) {
    drop_foreign_source(*spec, nullptr);
    unite_sources(*spec, allocator);
  }
  json::set(json::child(claim, "status", allocator), "phase", "Pending", allocator);
  protect(claim, "kubernetes.io/pvc-protection", allocator);
}

void prepare_attributes_class(json::Value& object, Allocator& allocator) {
  protect(object, "kubernetes.io/vac-protection", allocator);
}

/// Removes the topology of endpoints, which is read-only in v1. A node name that the old slice had
/// in its topology moves to nodeName.
void prepare_endpoint_slice(json::Value& slice, Allocator& allocator) {
  prepare_endpoint_slice_update(slice, json::Value(rapidjson::kObjectType), allocator);
}

void prepare_endpoint_slice_update(json::Value& slice, const json::Value& old,
                                   Allocator& allocator) {
  constexpr const char* kTopology = "deprecatedTopology";
  const auto host_of = [](const json::Value& endpoint) {
    const json::Value* topology = json::find(endpoint, kTopology);
    return topology == nullptr ? std::string_view()
                               : json::text(*topology, "kubernetes.io/hostname");
  };
  const json::Value* now = json::find(slice, "endpoints");
  const json::Value* then = json::find(old, "endpoints");
  if (now != nullptr && then != nullptr && *now == *then) return;
  std::set<std::string_view> known;
  if (then != nullptr && then->IsArray()) {
    for (const json::Value& endpoint : then->GetArray()) known.insert(host_of(endpoint));
  }
  known.erase("");
  json::for_each(slice, "endpoints", [&](json::Value& endpoint) {
    const std::string host(host_of(endpoint));
    json::erase(endpoint, kTopology);
    if (json::find(endpoint, "nodeName") == nullptr && known.contains(host) &&
        rules::check_dns1123_subdomain(host).empty())
      json::set(endpoint, "nodeName", host, allocator);
  });
}

void prepare_persistent_volume_claim_update(json::Value& claim, const json::Value& old,
                                            Allocator& allocator) {
  json::Value* spec = json::find(claim, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  drop_foreign_source(*spec, json::find(old, "spec"));
  unite_sources(*spec, allocator);
}

/// controllers::DefinitionNames accepts the names later.
void prepare_custom_resource_definition(json::Value& definition, Allocator& allocator) {
  json::Value names(rapidjson::kObjectType);
  json::set(names, "plural", "", allocator);
  json::set(names, "kind", "", allocator);
  json::Value status(rapidjson::kObjectType);
  json::set(status, "acceptedNames", std::move(names), allocator);
  json::set(definition, "status", std::move(status), allocator);
  add_stored_version(definition, allocator);
}

void default_definition_status(json::Value& definition, Allocator& allocator) {
  const json::Value& status = json::child(definition, "status", allocator);
  const json::Value* versions = json::find(status, "storedVersions");
  if (versions == nullptr || !versions->IsArray() || versions->Empty())
    add_stored_version(definition, allocator);
}

void prepare_custom_resource_definition_update(json::Value& definition, const json::Value& /*old*/,
                                               Allocator& allocator) {
  add_stored_version(definition, allocator);
}

}  // namespace lookout::apiserver::resources
