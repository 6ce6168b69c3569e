// Validation of persistent volumes, claims, and the kinds of storage.k8s.io.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/resources/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/quantity.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

void check_access_modes(const Field& modes) {
  bool once = false;
  bool other = false;
  modes.each([&](const Field& mode) {
    if (!mode.named(modes.path())
             .check_word({"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}))
      return;
    (mode.text() == "ReadWriteOncePod" ? once : other) = true;
  });
  if (once && other) modes.forbidden("may not use ReadWriteOncePod with other access modes");
}

/// Whether the amount is positive.
bool check_positive_quantity(const Field& amount) {
  const auto quantity = Quantity::parse(amount.text());
  if (!quantity || *quantity > Quantity()) return true;
  amount.invalid_text("must be greater than zero");
  return false;
}

bool check_claimed(const Field& amount) {
  const auto quantity = Quantity::parse(amount.text());
  if (!quantity || quantity->value() >= 0) return true;
  amount.causes().push_back(
      rules::invalid(amount.path(), quantity->value(), "must be a valid resource quantity"));
  return false;
}

/// The only native resource of a claim is "storage".
bool check_claimed_name(const Field& amounts, std::string_view name) {
  const rules::Messages messages = rules::check_qualified_name(name);
  for (const auto& message : messages)
    amounts.causes().push_back(rules::invalid(amounts.path(), name, message));
  if (!messages.empty()) return false;
  const bool is_native = name.find('/') == std::string_view::npos ||
                         name.find("kubernetes.io/") != std::string_view::npos;
  if (!is_native || name == "storage") return true;
  amounts.causes().push_back(
      rules::not_supported(amounts.path(), name, std::array<std::string_view, 1>{"storage"}));
  return false;
}

void check_volume_mode(const Field& mode) { mode.check_word_if_present({"Block", "Filesystem"}); }

void check_data_source(const Field& source) {
  if (!source.exists()) return;
  const Field kind = source["kind"];
  const Field group = source["apiGroup"];
  source["name"].check_present();
  kind.check_present();
  if (group.empty() && kind.text() != "PersistentVolumeClaim") {
    kind.named(source.path())
        .invalid_text("must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  }
  group.check_form_if_present(rules::check_dns1123_subdomain);
  source["namespace"].check_form_if_present(rules::check_dns1123_label);
}

/// Members of a volume's spec that are not sources.
constexpr std::array<std::string_view, 9> kNoSources = {
    "accessModes",      "capacity",     "claimRef",
    "mountOptions",     "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeMode",   "volumeAttributesClassName"};

bool is_source(std::string_view member) {
  return std::find(kNoSources.begin(), kNoSources.end(), member) == kNoSources.end();
}

/// The source of a volume, with or without the secret for a resize.
Object source_of(const Object& volume, bool without_expand_secret) {
  json::Document document = volume.to_document();
  json::Value* spec = json::find(document, "spec");
  json::Document out(rapidjson::kObjectType);
  if (spec == nullptr) return Object::from(out);
  for (const auto& member : spec->GetObject()) {
    if (is_source(json::text_of(member.name)))
      json::set(out, json::text_of(member.name), json::deep_copy(member.value, out.GetAllocator()),
                out.GetAllocator());
  }
  if (json::Value* csi = json::find(out, "csi"); csi != nullptr && without_expand_secret)
    json::erase(*csi, "controllerExpandSecretRef");
  return Object::from(out);
}

/// Whether Go's path.Clean() returns "/" for the path.
bool leads_to_root(std::string_view path) {
  if (!path.starts_with('/')) return false;
  std::size_t depth = 0;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    if (part == "..") {
      depth -= depth == 0 ? 0 : 1;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
  }
  return depth == 0;
}

/// Whether the affinity is unchanged, except that beta labels may be replaced by the stable ones.
bool keeps_affinity(Value before, Value now) {
  constexpr std::pair<std::string_view, std::string_view> kLabels[] = {
      {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
      {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"},
      {"beta.kubernetes.io/os", "kubernetes.io/os"},
      {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
      {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"}};
  const auto same_expression = [&](Value a, Value b) {
    const std::pair keys(a["key"].as_string(), b["key"].as_string());
    return equal_but_for({"key"}, a, b) &&
           (keys.first == keys.second ||
            std::find(std::begin(kLabels), std::end(kLabels), keys) != std::end(kLabels));
  };
  const auto same_term = [&](Value a, Value b) {
    const auto [of_a, of_b] =
        std::pair(a["matchExpressions"].elements(), b["matchExpressions"].elements());
    return equal_but_for({"matchExpressions"}, a, b) &&
           std::ranges::equal(of_a, of_b, same_expression);
  };
  if (before == now) return true;
  constexpr const char* kTerms = "nodeSelectorTerms";
  return equal_but_for({"required"}, before, now) &&
         std::ranges::equal(before["required"][kTerms].elements(),
                            now["required"][kTerms].elements(), same_term);
}

/// Error messages show the name in lower case.
void check_plugin(const Field& name) {
  if (!name.check_present()) return;
  const std::string text = base::lower_case(name.text());
  for (const auto& message : rules::check_qualified_name(text))
    name.causes().push_back(rules::invalid(name.path(), text, message));
}

/// Checks the parameters of a class.
void check_parameters(const Field& parameters) {
  constexpr std::size_t kMost = 512;
  constexpr std::size_t kMostBytes = 256 * 1024;
  const auto refuse = [&](std::size_t most) {
    parameters.causes().push_back(rules::too_long(parameters.path(), static_cast<int>(most)));
  };
  if ((*parameters).size() > kMost) return refuse(kMost);
  std::size_t size = 0;
  for (const auto& [name, value] : (*parameters).members()) {
    if (name.empty())
      parameters.causes().push_back(
          rules::invalid(parameters.path(), "", "field can not be empty."));
    size += name.size() + value.as_string().size();
  }
  if (size > kMostBytes) refuse(kMostBytes);
}

void stays(const Object& object, const Object& old, const char* field, Causes& causes) {
  if (!(object[field] == old[field])) Field(object[field], field, causes).invalid(kImmutable);
}

void forbid_change(const Object& object, const Object& old, const char* field, Causes& causes) {
  if (!(object[field] == old[field]))
    causes.push_back(rules::forbidden(field, fmt::format("updates to {} are forbidden.", field)));
}

void check_topologies(const Field& topologies) {
  std::set<std::string> terms;
  topologies.each([&](const Field& term) {
    const Field list = term["matchLabelExpressions"];
    if (!list.empty() && !terms.insert((*list).to_json()).second)
      list.causes().push_back(rules::duplicate(list.path(), ""));
    std::set<std::string_view> keys;
    term["matchLabelExpressions"].each([&](const Field& expression) {
      std::set<std::string_view> seen;
      expression["values"].check_present();
      expression["values"].each([&](const Field& value) {
        if (!seen.insert(value.text()).second) value.duplicate();
      });
      expression["key"].check_form(rules::check_qualified_name);
      if (!keys.insert(expression["key"].text()).second) expression["key"].duplicate();
    });
  });
}

void check_persistent_spec(const Field& spec, std::string_view name) {
  const Field capacity = spec["capacity"];
  spec["accessModes"].check_present();
  check_access_modes(spec["accessModes"]);
  capacity.check_present();
  if (!capacity["storage"].exists() || (*capacity).size() > 1) {
    spec.causes().push_back({"FieldValueNotSupported",
                             fmt::format("Unsupported value: {}: supported values: \"storage\"",
                                         capacity.empty() ? "null" : (*capacity).to_json()),
                             capacity.path()});
  }
  capacity.each_entry([](std::string_view, const Field& amount) {
    if (const auto quantity = Quantity::parse(amount.text()); quantity && quantity->value() < 0) {
      amount.causes().push_back(
          rules::invalid(amount.path(), quantity->value(), "must be a valid resource quantity"));
    }
    check_positive_quantity(amount);
  });
  const Field policy = spec["persistentVolumeReclaimPolicy"];
  if (!policy.empty()) policy.check_word({"Delete", "Recycle", "Retain"});
  if (const Field affinity = spec["nodeAffinity"]; affinity.exists()) {
    if (affinity["required"].exists()) {
      check_node_selector(affinity["required"]);
    } else {
      affinity["required"].required("must specify required node constraints");
    }
  }
  check_persistent_source(spec, name);
  if (leads_to_root(spec["hostPath"]["path"].text()) && policy.text() == "Recycle")
    policy.forbidden("may not be 'recycle' for a hostPath mount of '/'");
  spec["storageClassName"].check_form_if_present(rules::check_dns1123_subdomain);
  check_volume_mode(spec["volumeMode"]);
  const Field attributes = spec["volumeAttributesClassName"];
  if (!attributes.exists()) return;
  if (attributes.check_present("an empty string is disallowed"))
    attributes.check_form(rules::check_dns1123_subdomain);
  if (!spec["csi"].exists())
    spec["csi"].required("has to be specified when using volumeAttributesClassName");
}

/// The legacy annotation for spec.mountOptions is allowed only for some kinds of volumes.
void check_mount_options(const Object& volume, Causes& causes) {
  constexpr const char* kOptions = "volume.beta.kubernetes.io/mount-options";
  constexpr const char* kMountable[] = {"gcePersistentDisk",
                                        "awsElasticBlockStore",
                                        "glusterfs",
                                        "nfs",
                                        "rbd",
                                        "quobyte",
                                        "iscsi",
                                        "cinder",
                                        "cephfs",
                                        "azureFile",
                                        "vsphereVolume",
                                        "azureDisk",
                                        "photonPersistentDisk"};
  if (!volume.annotations()[kOptions].exists()) return;
  for (const char* source : kMountable) {
    if (volume["spec"][source].exists()) return;
  }
  causes.push_back(rules::forbidden(fmt::format("metadata.annotations.{}", kOptions),
                                    "may not specify mount options for this volume type"));
}

}  // namespace

void validate_claim_spec(const Field& spec) {
  spec["accessModes"].check_present("at least 1 access mode is required");
  spec["selector"].check_label_selector();
  check_access_modes(spec["accessModes"]);
  const Field size =
      spec["resources"]["requests"]["storage"].named(spec.path() + ".resources[storage]");
  if (size.check_present()) check_positive_quantity(size);
  spec["storageClassName"].check_form_if_present(rules::check_dns1123_subdomain);
  check_volume_mode(spec["volumeMode"]);
  const Field source = spec["dataSource"];
  const Field reference = spec["dataSourceRef"];
  check_data_source(source);
  check_data_source(reference);
  const auto refuse = [&](const char* why) {
    spec.invalid_as(fmt::format("\"{}\"", source.path()), why);
  };
  if (!reference["namespace"].empty()) {
    if (source.exists()) refuse("may not be specified when dataSourceRef.namespace is specified");
  } else if (source.exists() && reference.exists() &&
             (!source["apiGroup"].is(*reference["apiGroup"]) ||
              source["kind"].text() != reference["kind"].text() ||
              source["name"].text() != reference["name"].text())) {
    refuse("must match dataSourceRef");
  }
  spec["volumeAttributesClassName"].check_form_if_present(rules::check_dns1123_subdomain);
}

void validate_persistent_volume_claim(const Object& claim, Causes& causes) {
  validate_claim_spec(Field(claim["spec"], "spec", causes));
}

void validate_claim_update(const Object& claim, const Object& old, Causes& causes) {
  const bool is_bound = claim["status"]["phase"].as_string() == "Bound";
  // A claim can be bound only once.
  const bool binds = old["spec"]["volumeName"].as_string().empty();
  const bool gets_class = !old["spec"]["storageClassName"].exists();
  const auto kept = [&](const Object& object) {
    json::Document document = object.to_document();
    for (const char* part : {"metadata", "status"}) json::erase(document, part);
    json::Value* spec = json::find(document, "spec");
    if (spec == nullptr) return Object::from(document);
    if (binds) json::erase(*spec, "volumeName");
    if (gets_class) json::erase(*spec, "storageClassName");
    if (is_bound) {
      json::erase(*spec, "volumeAttributesClassName");
      json::Value* resources = json::find(*spec, "resources");
      json::Value* requests = resources == nullptr ? nullptr : json::find(*resources, "requests");
      if (requests != nullptr) json::erase(*requests, "storage");
    }
    return Object::from(document);
  };
  const Field spec(claim["spec"], "spec", causes);
  // kube-apiserver appends a comparison of the two specs in Go's syntax.
  if (!(kept(claim) == kept(old))) {
    spec.forbidden(
        "spec is immutable after creation except resources.requests and volumeAttributesClassName "
        "for bound claims");
  }
  const Field size = spec["resources"]["requests"]["storage"];
  const auto now = Quantity::parse(size.text());
  const auto before = Quantity::parse(old["spec"]["resources"]["requests"]["storage"].as_string());
  const auto capacity = Quantity::parse(old["status"]["capacity"]["storage"].as_string());
  const Quantity least = capacity.value_or(Quantity());
  const Quantity wanted = now.value_or(Quantity());
  if (before && wanted < *before && wanted <= least)
    size.forbidden("field can not be less than status.capacity");
  if (!(claim["spec"]["volumeMode"] == old["spec"]["volumeMode"]))
    spec["volumeMode"].named("volumeMode").invalid(kImmutable);
  // A class that has been applied can only be replaced by another one.
  const Field attributes = spec["volumeAttributesClassName"];
  if (attributes.is(old["spec"]["volumeAttributesClassName"]) ||
      !old["status"]["currentVolumeAttributesClassName"].exists() || !attributes.text().empty())
    return;
  attributes.forbidden(fmt::format(
      "update to {} is forbidden when status.currentVolumeAttributesClassName is not nil",
      attributes.exists() ? "empty string" : "nil"));
}

void validate_claim_status(const Object& claim, const Object& /*old*/, Causes& causes) {
  constexpr std::array<std::string_view, 5> kSteps = {
      "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
      "NodeResizeInfeasible", "NodeResizePending"};
  const Field status(claim["status"], "status", causes);
  if (claim["spec"]["accessModes"].empty())
    causes.push_back(rules::required("Spec.accessModes", ""));
  status["capacity"].each_entry(
      [](std::string_view /*name*/, const Field& amount) { check_claimed(amount); });
  const Field steps = status["allocatedResourceStatuses"];
  steps.each_entry([&](std::string_view name, const Field& step) {
    check_claimed_name(steps, name);
    if (!is_one_of(step.text(), kSteps))
      causes.push_back(rules::not_supported(steps.path(), name, kSteps));
  });
  const Field amounts = status["allocatedResources"];
  amounts.each_entry([&](std::string_view name, const Field& amount) {
    if (check_claimed_name(amounts, name) && check_claimed(amount)) check_amount(amount, "storage");
  });
}

void validate_persistent_volume(const Object& volume, Causes& causes) {
  check_persistent_spec(Field(volume["spec"], "spec", causes), volume.name());
  check_mount_options(volume, causes);
}

void validate_persistent_volume_update(const Object& volume, const Object& old, Causes& causes) {
  const Field spec(volume["spec"], "spec", causes);
  // As in Kubernetes, errors in the spec are reported twice.
  check_persistent_spec(spec, volume.name());
  // The secret for a resize may be added later. (kube-apiserver appends a comparison in Go's syntax.)
  const bool gets_secret =
      old["spec"]["csi"].exists() && !old["spec"]["csi"]["controllerExpandSecretRef"].exists();
  if (!(source_of(volume, gets_secret) == source_of(old, gets_secret))) {
    spec["persistentvolumesource"].forbidden(
        "spec.persistentvolumesource is immutable after creation");
  }
  if (!(volume["spec"]["volumeMode"] == old["spec"]["volumeMode"]))
    spec["volumeMode"].named("volumeMode").invalid(kImmutable);
  const Value before = old["spec"]["nodeAffinity"];
  if (before.exists() && !keeps_affinity(before, *spec["nodeAffinity"]))
    spec["nodeAffinity"]
        .named("nodeAffinity")
        .invalid("field is immutable, except for updating from beta label to GA");
  if (old["spec"]["volumeAttributesClassName"].exists() &&
      !spec["volumeAttributesClassName"].exists()) {
    spec["volumeAttributesClassName"].forbidden("update from non-nil value to nil is forbidden");
  }
}

void validate_storage_class(const Object& object, Causes& causes) {
  const Field root(object.body(), "", causes);
  const Field provisioner = root["provisioner"];
  check_plugin(provisioner);
  check_parameters(root["parameters"]);
  if (!root["reclaimPolicy"].empty()) root["reclaimPolicy"].check_word({"Delete", "Retain"});
  root["volumeBindingMode"].check_word({"Immediate", "WaitForFirstConsumer"});
  check_topologies(root["allowedTopologies"]);
}

void validate_storage_class_update(const Object& object, const Object& old, Causes& causes) {
  for (const char* field : {"parameters", "provisioner", "reclaimPolicy"})
    forbid_change(object, old, field, causes);
  stays(object, old, "volumeBindingMode", causes);
}

void validate_csi_driver(const Object& driver, Causes& causes) {
  constexpr std::int64_t kShortest = 600;
  constexpr std::int64_t kLongest = std::int64_t{1} << 32;
  constexpr std::int64_t kShortestPeriod = 10;
  const Field spec(driver["spec"], "spec", causes);
  spec["fsGroupPolicy"].check_word_if_present({"File", "None", "ReadWriteOnceWithFSType"});
  std::set<std::string_view> audiences;
  spec["tokenRequests"].each([&](const Field& request) {
    const Field seconds = request["expirationSeconds"];
    if (!audiences.insert(request["audience"].text()).second)
      return request["audience"].duplicate();
    seconds.check_range(kShortest, INT64_MAX, "may not specify a duration less than 10 minutes");
    seconds.check_range(INT64_MIN, kLongest, "may not specify a duration larger than 2^32 seconds");
  });
  const Field modes = spec["volumeLifecycleModes"];
  modes.each([&](const Field& mode) {
    mode.named(modes.path()).check_word({"Persistent", "Ephemeral"});
  });
  spec["nodeAllocatableUpdatePeriodSeconds"].check_range(
      kShortestPeriod, INT64_MAX, "must be greater than or equal to 10 seconds");
  const Field secrets = spec["serviceAccountTokenInSecrets"];
  if (secrets.exists() && spec["tokenRequests"].empty())
    secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified");
}

void validate_csi_driver_update(const Object& driver, const Object& old, Causes& causes) {
  const Field spec(driver["spec"], "spec", causes);
  if (!spec["attachRequired"].is(old["spec"]["attachRequired"]))
    spec["attachRequired"].named("spec.attachedRequired").invalid(kImmutable);
  if (!spec["volumeLifecycleModes"].is(old["spec"]["volumeLifecycleModes"]))
    spec["volumeLifecycleModes"].invalid(kImmutable);
}

void validate_csi_node(const Object& node, Causes& causes) {
  constexpr std::size_t kLongestId = 256;
  std::set<std::string_view> names;
  Field(node["spec"], "spec", causes)["drivers"].each([&](const Field& driver) {
    check_driver_name(driver["name"]);
    driver["nodeID"].check_present();
    if (driver["nodeID"].text().size() > kLongestId)
      driver["nodeID"].invalid_text("must be 256 characters or less");
    driver["allocatable"]["count"].check_not_negative();
    if (!names.insert(driver["name"].text()).second) driver["name"].duplicate();
    std::set<std::string_view> keys;
    driver["topologyKeys"].each([&](const Field& key) {
      const Field said = key.named(driver.path());
      said.check_present();
      if (!keys.insert(key.text()).second) said.duplicate();
      said.check_form(rules::check_qualified_name);
    });
  });
}

void validate_csi_node_update(const Object& node, const Object& old, Causes& causes) {
  for (const Value before : old["spec"]["drivers"].elements()) {
    for (const Value now : node["spec"]["drivers"].elements()) {
      if (!(now["name"] == before["name"]) ||
          (now["nodeID"] == before["nodeID"] && now["topologyKeys"] == before["topologyKeys"]))
        continue;
      // Shows the driver in Go's syntax.
      const std::string keys =
          now["topologyKeys"].exists() ? now["topologyKeys"].to_json() : "null";
      causes.push_back({"FieldValueInvalid",
                        fmt::format(R"(Invalid value: {{"Name":{},"NodeID":{},"TopologyKeys":{},)"
                                    R"("Allocatable":null}}: field is immutable)",
                                    now["name"].to_json(), now["nodeID"].to_json(), keys),
                        "spec.drivers"});
    }
  }
}

void validate_storage_capacity(const Object& capacity, Causes& causes) {
  const Field root(capacity.body(), "", causes);
  root["nodeTopology"].check_label_selector();
  root["storageClassName"].check_form(rules::check_dns1123_subdomain);
  const auto amount = Quantity::parse(root["capacity"].text());
  if (amount && *amount < Quantity())
    root["capacity"].invalid_text("must be greater than or equal to 0");
}

void validate_storage_capacity_update(const Object& capacity, const Object& old, Causes& causes) {
  stays(capacity, old, "nodeTopology", causes);
  stays(capacity, old, "storageClassName", causes);
}

void validate_volume_attachment(const Object& attachment, Causes& causes) {
  const Field spec(attachment["spec"], "spec", causes);
  const Field source = spec["source"];
  const Field volume = source["persistentVolumeName"];
  const bool is_inline = source["inlineVolumeSpec"].exists();
  constexpr const char* kOne =
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  check_driver_name(spec["attacher"]);
  if (!volume.exists() && !is_inline) {
    source.required(kOne);
  } else if (volume.exists() && is_inline) {
    source.forbidden(kOne);
  } else if (volume.exists()) {
    volume.check_present("must specify non empty persistentVolumeName");
  } else if (!source["inlineVolumeSpec"]["csi"].exists()) {
    source["inlineVolumeSpec"]["csi"].required(
        "has to be specified in the context of inline volumes");
  }
  spec["nodeName"].check_form(rules::check_dns1123_subdomain);
  if (volume.exists()) volume.check_form(rules::check_dns1123_subdomain);
}

void validate_volume_attachment_update(const Object& attachment, const Object& old,
                                       Causes& causes) {
  const Value spec = attachment["spec"];
  if (spec == old["spec"]) return;
  // Shows the spec in Go's syntax.
  const Value volume = spec["source"]["persistentVolumeName"];
  causes.push_back(
      {"FieldValueInvalid",
       fmt::format(R"(Invalid value: {{"Attacher":"{}","Source":{{"PersistentVolumeName":{},)"
                   R"("InlineVolumeSpec":null}},"NodeName":"{}"}}: field is immutable)",
                   spec["attacher"].as_string(), volume.exists() ? volume.to_json() : "null",
                   spec["nodeName"].as_string()),
       "spec"});
}

void validate_volume_attachment_status(const Object& attachment, const Object& old,
                                       Causes& causes) {
  constexpr int kMostMetadata = 256 * 1024;
  constexpr std::size_t kLongestMessage = 1024;
  constexpr std::int64_t kMostCode = 2147483647;
  validate_volume_attachment(attachment, causes);
  const Field status(attachment["status"], "status", causes);
  std::size_t size = 0;
  for (const auto& [name, value] : (*status)["attachmentMetadata"].members())
    size += name.size() + value.as_string().size();
  if (size > static_cast<std::size_t>(kMostMetadata))
    causes.push_back(rules::too_long("status.attachmentMetadata", kMostMetadata));
  for (const char* field : {"attachError", "detachError"}) {
    const Field message = status[field]["message"];
    if (message.text().size() > kLongestMessage)
      causes.push_back(rules::too_long(message.path(), kMostMetadata));
    status[field]["errorCode"].check_range(0, kMostCode);
  }
  validate_volume_attachment_update(attachment, old, causes);
}

void validate_attributes_class(const Object& object, Causes& causes) {
  const Field root(object.body(), "", causes);
  check_plugin(root["driverName"]);
  check_parameters(root["parameters"]);
  root["parameters"].check_present("must contain at least one key/value pair");
}

void validate_attributes_class_update(const Object& object, const Object& old, Causes& causes) {
  for (const char* field : {"driverName", "parameters"}) forbid_change(object, old, field, causes);
}

}  // namespace lookout::apiserver::resources
