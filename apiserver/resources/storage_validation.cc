// Validation of storage classes, persistent volumes and claims.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "apiserver/resources/required.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::resources {

namespace rules = api::validation;
using api::Object;
using api::Value;

void validate_storage_class(const Object& object, Causes& causes) {
  require(object["provisioner"], "provisioner", causes);
}

void validate_persistent_volume_claim(const Object& claim, Causes& causes) {
  const Value spec = claim["spec"];
  require(spec["accessModes"], "spec.accessModes", causes, "at least 1 access mode is required");
  constexpr std::array<std::string_view, 4> kModes = {"ReadOnlyMany", "ReadWriteMany",
                                                      "ReadWriteOnce", "ReadWriteOncePod"};
  for (const Value mode : spec["accessModes"].elements()) {
    if (std::find(kModes.begin(), kModes.end(), mode.as_string()) == kModes.end())
      causes.push_back(rules::not_supported("spec.accessModes", mode.as_string(), kModes));
  }
  const Value size = spec["resources"]["requests"]["storage"];
  require(size, "spec.resources[storage]", causes);
  const auto quantity = api::Quantity::parse(size.as_string());
  if (quantity && *quantity <= api::Quantity()) {
    causes.push_back(
        rules::invalid("spec.resources[storage]", size.as_string(), "must be greater than zero"));
  }
}

void validate_claim_update(const Object& claim, const Object& old, Causes& causes) {
  const auto kept = [](const Object& object) {
    json::Document document = object.to_document();
    for (const char* part : {"metadata", "status"}) json::erase(document, part);
    json::Value* spec = json::find(document, "spec");
    if (spec == nullptr) return Object::from(document);
    for (const char* field : {"resources", "volumeAttributesClassName"}) json::erase(*spec, field);
    return Object::from(document);
  };
  // A claim is bound once.
  const bool binds = old["spec"]["volumeName"].as_string().empty() &&
                     !claim["spec"]["volumeName"].as_string().empty();
  const bool bound = claim["status"]["phase"].as_string() == "Bound";
  const bool resized = !bound && !(claim["spec"]["resources"] == old["spec"]["resources"]);
  if (!resized && (binds || kept(claim) == kept(old))) return;
  causes.push_back(
      rules::forbidden("spec",
                       "spec is immutable after creation except resources.requests and "
                       "volumeAttributesClassName for bound claims"));
}

void validate_storage_class_update(const Object& object, const Object& old, Causes& causes) {
  for (const char* field : {"parameters", "provisioner", "reclaimPolicy"}) {
    if (object[field] == old[field]) continue;
    causes.push_back(rules::forbidden(field, fmt::format("updates to {} are forbidden.", field)));
  }
  if (!(object["volumeBindingMode"] == old["volumeBindingMode"])) {
    causes.push_back(rules::invalid("volumeBindingMode", object["volumeBindingMode"].as_string(),
                                    "field is immutable"));
  }
}

void validate_persistent_volume(const Object& volume, Causes& causes) {
  const Value spec = volume["spec"];
  require(spec["accessModes"], "spec.accessModes", causes);
  require(spec["capacity"], "spec.capacity", causes);
  // Members that are no volume source.
  constexpr std::array<std::string_view, 9> kOthers = {
      "accessModes",      "capacity",     "claimRef",
      "mountOptions",     "nodeAffinity", "persistentVolumeReclaimPolicy",
      "storageClassName", "volumeMode",   "volumeAttributesClassName"};
  bool has_source = false;
  for (const auto& [name, value] : spec.members())
    has_source = has_source || std::find(kOthers.begin(), kOthers.end(), name) == kOthers.end();
  if (!has_source) causes.push_back(rules::required("spec", "must specify a volume type"));
}

}  // namespace lookout::apiserver::resources
