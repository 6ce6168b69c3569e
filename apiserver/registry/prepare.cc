#include <string>
#include <string_view>

#include "apiserver/registry/strategies.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::registry {
namespace {

using json::Allocator;
using json::Value;

Value array() { return Value(rapidjson::kArrayType); }

bool has_resources(Value& container) {
  const Value* resources = json::find(container, "resources");
  if (resources == nullptr || !resources->IsObject()) return false;
  for (const char* kind : {"requests", "limits"}) {
    const Value* amounts = json::find(*resources, kind);
    if (amounts != nullptr && amounts->IsObject() && !amounts->ObjectEmpty()) return true;
  }
  return false;
}

/// Whether the limits of a container cover CPU and memory and its requests are no other.
bool is_guaranteed(Value& container) {
  const Value* resources = json::find(container, "resources");
  const Value* limits = resources == nullptr ? nullptr : json::find(*resources, "limits");
  if (limits == nullptr) return false;
  const Value* requests = json::find(*resources, "requests");
  for (const char* resource : {"cpu", "memory"}) {
    const Value* limit = json::find(*limits, resource);
    if (limit == nullptr) return false;
    const Value* request = requests == nullptr ? nullptr : json::find(*requests, resource);
    if (request != nullptr && *request != *limit) return false;
  }
  return true;
}

/// The class that decides who is evicted first.
std::string_view quality_of_service(Value& spec) {
  bool guaranteed = true;
  bool best_effort = true;
  const auto look = [&](Value& container) {
    if (has_resources(container)) best_effort = false;
    if (!is_guaranteed(container)) guaranteed = false;
  };
  json::for_each(spec, "containers", look);
  json::for_each(spec, "initContainers", look);
  return best_effort ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

Value condition(std::string_view type, std::string_view reason, std::string_view message,
                Allocator& allocator) {
  Value out(rapidjson::kObjectType);
  json::set(out, "type", type, allocator);
  json::set(out, "status", "True", allocator);
  const auto now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  json::set(out, "lastTransitionTime", api::format_time(now), allocator);
  json::set(out, "reason", reason, allocator);
  json::set(out, "message", message, allocator);
  return out;
}

/// The version that objects are stored in.
std::string_view storage_version(const Value& spec) {
  const Value* versions = json::find(spec, "versions");
  if (versions == nullptr || !versions->IsArray()) return {};
  for (const Value& version : versions->GetArray()) {
    const Value* storage = json::find(version, "storage");
    if (storage != nullptr && storage->IsTrue()) return json::text(version, "name");
  }
  return {};
}

/// What of a definition's status follows from its spec.
void accept_names(Value& definition, Allocator& allocator) {
  Value* spec = json::find(definition, "spec");
  if (spec == nullptr) return;
  Value& status = json::child(definition, "status", allocator);
  json::take(status, *spec, "names", allocator);
  if (Value* names = json::find(status, "names")) {
    Value taken = std::move(*names);
    json::erase(status, "names");
    json::set(status, "acceptedNames", std::move(taken), allocator);
  }
  const std::string_view stored = storage_version(*spec);
  if (json::find(status, "storedVersions") == nullptr)
    json::set(status, "storedVersions", array(), allocator);
  Value& versions = *json::find(status, "storedVersions");
  for (const Value& version : versions.GetArray()) {
    if (version.IsString() && json::text_of(version) == stored) return;
  }
  if (!stored.empty()) versions.PushBack(json::copy_text(stored, allocator), allocator);
}

}  // namespace

void prepare_pod(Value& pod, Allocator& allocator) {
  Value& status = json::child(pod, "status", allocator);
  json::set(status, "phase", "Pending", allocator);
  if (Value* spec = json::find(pod, "spec"))
    json::set(status, "qosClass", quality_of_service(*spec), allocator);
}

void prepare_namespace(Value& ns, Allocator& allocator) {
  Value finalizers = array();
  finalizers.PushBack(Value("kubernetes"), allocator);
  json::set(json::child(ns, "spec", allocator), "finalizers", std::move(finalizers), allocator);
  json::set(json::child(ns, "status", allocator), "phase", "Active", allocator);
}

/// Finalizers of the namespace have a subresource of their own.
void prepare_namespace_update(Value& ns, const Value& old, Allocator& allocator) {
  const Value* spec = json::find(old, "spec");
  if (spec == nullptr) {
    json::erase(ns, "spec");
  } else {
    json::take(json::child(ns, "spec", allocator), *spec, "finalizers", allocator);
  }
}

void prepare_persistent_volume(Value& volume, Allocator& allocator) {
  json::set(json::child(volume, "status", allocator), "phase", "Pending", allocator);
}
void prepare_persistent_volume_claim(Value& claim, Allocator& allocator) {
  json::set(json::child(claim, "status", allocator), "phase", "Pending", allocator);
}
void prepare_service(Value& service, Allocator& allocator) {
  json::child(json::child(service, "status", allocator), "loadBalancer", allocator);
}

/// A definition is served at once: nobody else has to agree.
void prepare_custom_resource_definition(Value& definition, Allocator& allocator) {
  Value conditions = array();
  conditions.PushBack(condition("NamesAccepted", "NoConflicts", "no conflicts found", allocator),
                      allocator);
  conditions.PushBack(condition("Established", "InitialNamesAccepted",
                                "the initial names have been accepted", allocator),
                      allocator);
  Value& status = json::child(definition, "status", allocator);
  json::set(status, "conditions", std::move(conditions), allocator);
  accept_names(definition, allocator);
}

void prepare_custom_resource_definition_update(Value& definition, const Value& /*old*/,
                                               Allocator& allocator) {
  accept_names(definition, allocator);
}

}  // namespace lookout::apiserver::registry
