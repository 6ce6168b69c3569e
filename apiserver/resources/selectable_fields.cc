#include "apiserver/resources/selectable_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "apiserver/resources/names.h"
#include "apiserver/resources/version_schemas.h"
#include "lookout/api/field_path.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::resources {
namespace {

using storage::FieldReader;

constexpr std::string_view kName = "metadata.name";
constexpr std::string_view kNamespace = "metadata.namespace";

std::string_view text_of(Value value, std::string& scratch, std::string_view absent) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return value.as_string();
    case Value::Kind::kBool:
    case Value::Kind::kNumber:
      scratch = value.to_json();
      return scratch;
    default:
      return absent;
  }
}

/// A field of the object, or Kubernetes' default if it is absent.
FieldReader at(std::string_view path, std::string_view absent = "") {
  return [parsed = api::FieldPath(path), absent](const Object& object, std::string& scratch) {
    return text_of(object.at(parsed), scratch, absent);
  };
}

/// A field of a custom resource in its version.
FieldReader shown_at(std::string_view path, std::shared_ptr<const VersionSchemas> schemas,
                     std::string api_version) {
  return [parsed = api::FieldPath(path), schemas = std::move(schemas),
          api_version = std::move(api_version)](const Object& stored, std::string& scratch) {
    const Object shown = schemas->convert(schemas->read(stored), api_version);
    std::string text;
    scratch = text_of(shown.at(parsed), text, "");
    return std::string_view(scratch);
  };
}

std::string_view object_name(const Object& object, std::string& /*scratch*/) {
  return object.name();
}
std::string_view object_namespace(const Object& object, std::string& /*scratch*/) {
  return object.ns();
}
std::string_view nothing(const Object& /*object*/, std::string& /*scratch*/) { return ""; }

/// A pod's first address: old clients set only one of podIP and podIPs.
std::string_view pod_ip(const Object& object, std::string& /*scratch*/) {
  const Value status = object["status"];
  const std::string_view ip = status["podIPs"][0]["ip"].as_string();
  return ip.empty() ? status["podIP"].as_string() : ip;
}

/// The component that reported an event: the old field, else the new one.
std::string_view event_source(const Object& object, std::string& /*scratch*/) {
  const std::string_view component = object["source"]["component"].as_string();
  return component.empty() ? object["reportingComponent"].as_string() : component;
}

struct FieldsOfResource {
  std::string_view group;
  std::string_view plural;
  bool with_namespace;
  std::string_view unknown_field_message;
  std::vector<SelectableField> (*fields)();
};

std::vector<SelectableField> pod_fields() {
  return {{"spec.nodeName", at("spec.nodeName")},
          {"spec.host", at("spec.nodeName")},  // for old clients
          {"spec.restartPolicy", at("spec.restartPolicy")},
          {"spec.schedulerName", at("spec.schedulerName")},
          {"spec.serviceAccountName", at("spec.serviceAccountName")},
          {"spec.hostNetwork", at("spec.hostNetwork", "false")},
          {"status.phase", at("status.phase")},
          {"status.podIP", pod_ip},
          {"status.podIPs", nothing},
          {"status.nominatedNodeName", at("status.nominatedNodeName")}};
}
std::vector<SelectableField> node_fields() {
  return {{"spec.unschedulable", at("spec.unschedulable", "false")}};
}
std::vector<SelectableField> namespace_fields() { return {{"status.phase", at("status.phase")}}; }
std::vector<SelectableField> secret_fields() { return {{"type", at("type")}}; }
std::vector<SelectableField> service_fields() {
  return {{"spec.clusterIP", at("spec.clusterIP")}, {"spec.type", at("spec.type")}};
}
std::vector<SelectableField> replication_controller_fields() {
  return {{"status.replicas", at("status.replicas", "0")}};
}
std::vector<SelectableField> job_fields() {
  return {{"status.successful", at("status.succeeded", "0")}};
}
std::vector<SelectableField> signing_request_fields() {
  return {{"spec.signerName", at("spec.signerName")}};
}
std::vector<SelectableField> resource_slice_fields() {
  return {{"spec.nodeName", at("spec.nodeName")}, {"spec.driver", at("spec.driver")}};
}
/// The involved object of an event. Field names begin with `prefix`.
void add_involved_object(std::vector<SelectableField>& fields, const std::string& prefix) {
  for (const char* field :
       {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"})
    fields.push_back({prefix + field, at(std::string("involvedObject.") + field)});
}
std::vector<SelectableField> event_fields() {
  std::vector<SelectableField> fields = {{"reason", at("reason")},
                                         {"reportingComponent", at("reportingComponent")},
                                         {"source", event_source},
                                         {"type", at("type")}};
  add_involved_object(fields, "involvedObject.");
  return fields;
}
// Events are stored as those of the core group.
std::vector<SelectableField> new_event_fields() {
  std::vector<SelectableField> fields = {{"reason", at("reason")},
                                         {"reportingController", at("reportingComponent")},
                                         {"type", at("type")}};
  add_involved_object(fields, "regarding.");
  return fields;
}

constexpr std::string_view kUnsupported = "field label not supported: {}";

constexpr std::array<FieldsOfResource, 11> kFields = {{
    {"", "pods", true, kUnsupported, pod_fields},
    {"", "nodes", false, kUnsupported, node_fields},
    {"", "namespaces", false, kUnsupported, namespace_fields},
    {"", "secrets", true, kUnsupported, secret_fields},
    {"", "services", true, kUnsupported, service_fields},
    {"", "replicationcontrollers", true, kUnsupported, replication_controller_fields},
    {"", "events", true, kUnsupported, event_fields},
    {"events.k8s.io", "events", true, kUnsupported, new_event_fields},
    {"batch", "jobs", true, "field label \"{}\" not supported for Job", job_fields},
    {"certificates.k8s.io", "certificatesigningrequests", false, kUnsupported,
     signing_request_fields},
    {"resource.k8s.io", "resourceslices", false,
     "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
     resource_slice_fields},
}};

}  // namespace

void add_selectable_fields(ServedResource& resource) {
  resource.fields = {{std::string(kName), object_name}};
  const auto known =
      std::find_if(kFields.begin(), kFields.end(), [&](const FieldsOfResource& entry) {
        return entry.group == resource.type.group && entry.plural == resource.type.plural;
      });
  if (known == kFields.end()) {
    resource.fields.push_back({std::string(kNamespace), object_namespace});
    resource.unknown_field_message =
        R"("{}" is not a known field selector: only "metadata.name", "metadata.namespace")";
    return;
  }
  if (known->with_namespace) resource.fields.push_back({std::string(kNamespace), object_namespace});
  for (SelectableField& field : known->fields()) resource.fields.push_back(std::move(field));
  resource.unknown_field_message = known->unknown_field_message;
}

void add_selectable_fields(ServedResource& resource, const std::vector<std::string>& json_paths) {
  resource.fields = {{std::string(kName), object_name}};
  if (resource.type.namespaced)
    resource.fields.push_back({std::string(kNamespace), object_namespace});
  for (const std::string& path : json_paths) {
    const std::string_view name = std::string_view(path).substr(path.starts_with('.') ? 1 : 0);
    try {
      // A converting storage compares converted objects.
      resource.fields.push_back(
          {std::string(name), resource.converting_storage != nullptr
                                  ? at(name)
                                  : shown_at(name, resource.schemas, resource.type.api_version())});
    } catch (const InvalidArgument&) {
      // Clients cannot select by an invalid path.
    }
  }
  resource.unknown_field_message = kUnsupported;
}

std::vector<storage::FieldRequirement> field_requirements(const ServedResource& resource,
                                                          const api::fields::Selector& selector) {
  std::vector<storage::FieldRequirement> out;
  for (const auto& requirement : selector.requirements()) {
    const auto field =
        std::find_if(resource.fields.begin(), resource.fields.end(),
                     [&](const SelectableField& f) { return f.name == requirement.field; });
    if (field == resource.fields.end()) {
      throw api::StatusError::bad_request(
          fmt::format(fmt::runtime(resource.unknown_field_message), requirement.field));
    }
    out.push_back({field->read, requirement.value, requirement.equal});
  }
  return out;
}

}  // namespace lookout::apiserver::resources
