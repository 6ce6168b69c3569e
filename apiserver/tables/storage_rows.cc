// The rows of volumes, ConfigMaps and Secrets.
#include <fmt/format.h>

#include "apiserver/tables/rows.h"

namespace lookout::apiserver::tables {
namespace {

using api::Object;
using api::Value;

/// The class of a volume or a claim: the legacy annotation, or the field.
std::string_view storage_class(const Object& object) {
  return object.annotations()["volume.beta.kubernetes.io/storage-class"].as_string(
      object["spec"]["storageClassName"].as_string());
}

std::string_view phase(const Object& object) {
  if (object["metadata"]["deletionTimestamp"].exists()) return "Terminating";
  return object["status"]["phase"].as_string();
}

}  // namespace

void volume_row(const Object& volume, Cells& cells) {
  const Value spec = volume["spec"];
  cells.text(volume.name());
  cells.text(quantity_text(spec["capacity"]["storage"]));
  cells.text(access_modes(spec["accessModes"]));
  cells.text(spec["persistentVolumeReclaimPolicy"].as_string());
  cells.text(phase(volume));
  const Value claim = spec["claimRef"];
  cells.text(claim.is_object()
                 ? fmt::format("{}/{}", claim["namespace"].as_string(), claim["name"].as_string())
                 : "");
  cells.text(storage_class(volume));
  cells.text(spec["volumeAttributesClassName"].as_string("<unset>"));
  cells.text(volume["status"]["reason"].as_string());
  cells.age(created(volume));
  cells.text(spec["volumeMode"].as_string("<unset>"));
}

void claim_row(const Object& claim, Cells& cells) {
  const Value spec = claim["spec"];
  const Value status = claim["status"];
  const auto volume = spec["volumeName"].as_string();
  cells.text(claim.name());
  cells.text(phase(claim));
  cells.text(volume);
  cells.text(volume.empty() ? "" : quantity_text(status["capacity"]["storage"]));
  cells.text(volume.empty() ? "" : access_modes(status["accessModes"]));
  cells.text(storage_class(claim));
  cells.text(spec["volumeAttributesClassName"].as_string("<unset>"));
  cells.age(created(claim));
  cells.text(spec["volumeMode"].as_string("<unset>"));
}

void storage_class_row(const Object& object, Cells& cells) {
  const Value annotations = object.annotations();
  bool is_default = false;
  for (const char* name : {"storageclass.kubernetes.io/is-default-class",
                           "storageclass.beta.kubernetes.io/is-default-class"})
    is_default = is_default || annotations[name].as_string() == "true";
  cells.text(fmt::format("{}{}", object.name(), is_default ? " (default)" : ""));
  cells.text(object["provisioner"].as_string());
  cells.text(object["reclaimPolicy"].as_string("Delete"));
  cells.text(object["volumeBindingMode"].as_string("Immediate"));
  cells.boolean(object["allowVolumeExpansion"].as_bool());
  cells.age(created(object));
}

void attributes_class_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.text(object["driverName"].as_string());
  cells.age(created(object));
}

void attachment_row(const Object& object, Cells& cells) {
  const Value spec = object["spec"];
  cells.text(object.name());
  cells.text(spec["attacher"].as_string());
  cells.text(spec["source"]["persistentVolumeName"].as_string());
  cells.text(spec["nodeName"].as_string());
  cells.boolean(object["status"]["attached"].as_bool());
  cells.age(created(object));
}

void csi_node_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.number(static_cast<std::int64_t>(object["spec"]["drivers"].size()));
  cells.age(created(object));
}

void csi_driver_row(const Object& object, Cells& cells) {
  const Value spec = object["spec"];
  cells.text(object.name());
  cells.boolean(spec["attachRequired"].as_bool(true));
  cells.boolean(spec["podInfoOnMount"].as_bool());
  cells.boolean(spec["storageCapacity"].as_bool());
  std::vector<std::string> audiences;
  for (const Value request : spec["tokenRequests"].elements())
    audiences.emplace_back(request["audience"].as_string());
  cells.text(spec["tokenRequests"].is_array() ? join(audiences, ",") : "<unset>");
  cells.boolean(spec["requiresRepublish"].as_bool());
  const std::string modes = join(spec["volumeLifecycleModes"], ",");
  cells.text(modes.empty() ? "<none>" : modes);
  cells.age(created(object));
}

void config_map_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.number(static_cast<std::int64_t>(object["data"].size() + object["binaryData"].size()));
  cells.age(created(object));
}

void secret_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.text(object["type"].as_string());
  cells.number(static_cast<std::int64_t>(object["data"].size()));
  cells.age(created(object));
}

}  // namespace lookout::apiserver::tables
