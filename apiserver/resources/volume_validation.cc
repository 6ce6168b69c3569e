// Validation of the volumes of a pod.
#include "apiserver/resources/volume_validation.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "apiserver/resources/pod_parts.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;

void check_mode(const Field& mode) {
  constexpr std::int64_t kMost = 0777;
  mode.check_range(0, kMost, "must be a number between 0 and 0777 (octal), both inclusive");
}

/// A path within a volume.
void check_local_path(const Field& path) {
  path.check_descending_path();
  if (path.text().starts_with("..") && !path.text().starts_with("../") && path.text() != "..")
    path.invalid_text("must not start with '..'");
}

void check_key_to_path(const Field& item) {
  item["key"].check_present();
  item["path"].check_present();
  check_local_path(item["path"]);
  check_mode(item["mode"]);
}

void check_keys(const Field& source, const char* name) {
  source[name].check_present();
  check_mode(source["defaultMode"]);
  source["items"].each(check_key_to_path);
}

void check_downward_file(const Field& file) {
  file["path"].check_present();
  check_local_path(file["path"]);
  if (file["fieldRef"].exists()) {
    check_field_reference(file["fieldRef"],
                          {"metadata.annotations", "metadata.labels", "metadata.name",
                           "metadata.namespace", "metadata.uid"});
    if (file["resourceFieldRef"].exists()) {
      file.causes().push_back(
          rules::invalid(file.path(), "resource",
                         "fieldRef and resourceFieldRef can not be specified simultaneously"));
    }
  } else if (file["resourceFieldRef"].exists()) {
    check_resource_reference(file["resourceFieldRef"], true);
  } else {
    file.required("one of fieldRef and resourceFieldRef is required");
  }
  check_mode(file["mode"]);
}

/// As in Kubernetes, errors have the path of the volume.
void check_downward(const Field& source) {
  check_mode(source["defaultMode"]);
  source["items"].each([&](const Field& file) { check_downward_file(file.named(source.path())); });
}

void check_token(const Field& token, const Field& source) {
  constexpr std::int64_t kShortest = 600;
  constexpr std::int64_t kLongest = std::int64_t{1} << 32;
  const Field seconds = token["expirationSeconds"];
  if (seconds.number() < kShortest)
    seconds.invalid_number("may not specify a duration less than 10 minutes");
  if (seconds.number() > kLongest)
    seconds.invalid_number("may not specify a duration larger than 2^32 seconds");
  const Field path = token["path"].named(source.path() + ".path");
  if (path.check_present()) check_local_path(path);
}

void check_trust_bundle(const Field& bundle) {
  if (!bundle["name"].exists() && !bundle["signerName"].exists())
    bundle.required("either name or signerName must be specified");
  bundle["labelSelector"].check_label_selector();
  bundle["path"].check_present();
  check_local_path(bundle["path"]);
}

void check_projected(const Field& source) {
  check_mode(source["defaultMode"]);
  std::set<std::string_view> paths;
  const auto claim = [&](const Field& path, std::string_view shown) {
    if (path.text().empty() || paths.insert(path.text()).second) return;
    source.causes().push_back(rules::invalid(source.path(), shown, "conflicting duplicate paths"));
  };
  source["sources"].each([&](const Field& part) {
    int kinds = 0;
    for (const char* name : {"secret", "configMap"}) {
      const Field keys = part[name];
      if (!keys.exists()) continue;
      ++kinds;
      keys["name"].check_present();
      keys["items"].each([&](const Field& item) {
        check_key_to_path(item);
        claim(item["path"], keys["name"].text());
      });
    }
    if (const Field downward = part["downwardAPI"]; downward.exists()) {
      ++kinds;
      downward["items"].each([&](const Field& file) {
        check_downward_file(file.named(downward.path()));
        claim(file["path"], file["path"].text());
      });
    }
    if (const Field token = part["serviceAccountToken"]; token.exists()) {
      ++kinds;
      check_token(token, source);
    }
    if (const Field bundle = part["clusterTrustBundle"]; bundle.exists()) {
      ++kinds;
      check_trust_bundle(bundle);
      claim(bundle["path"], bundle["path"].text());
    }
    if (kinds > 1) part.forbidden("may not specify more than 1 volume type per source");
  });
}

void check_csi(const Field& source) {
  check_driver_name(source["driver"]);
  const Field secret = source["nodePublishSecretRef"];
  if (!secret.exists()) return;
  const Field name = secret["name"];
  if (name.check_present())
    name.named(source.path() + ".name").check_form(rules::check_dns1123_subdomain);
}

void check_ephemeral(const Field& source) {
  const Field claim = source["volumeClaimTemplate"];
  if (!claim.exists()) return claim.required();
  claim["metadata"].check_template_metadata();
  validate_claim_spec(claim["spec"]);
}

void check_empty_dir(const Field& source) {
  const auto size = api::Quantity::parse(source["sizeLimit"].text());
  if (size && *size < api::Quantity())
    source["sizeLimit"].forbidden("SizeLimit field must be a valid resource quantity");
}

struct PodSource {
  const char* name;
  /// Null: a kind that persistent volumes also have.
  void (*check)(const Field& source);
};

/// The kinds of volumes, in the order of validation.
constexpr std::array<PodSource, 30> kPodSources = {{
    {"emptyDir", check_empty_dir},
    {"hostPath", nullptr},
    {"gitRepo",
     [](const Field& source) {
       source["repository"].check_present();
       source["directory"].check_descending_path();
     }},
    {"gcePersistentDisk", nullptr},
    {"awsElasticBlockStore", nullptr},
    {"secret", [](const Field& source) { check_keys(source, "secretName"); }},
    {"nfs", nullptr},
    {"iscsi", nullptr},
    {"glusterfs", nullptr},
    {"flocker", nullptr},
    {"persistentVolumeClaim", [](const Field& source) { source["claimName"].check_present(); }},
    {"rbd", nullptr},
    {"cinder", nullptr},
    {"cephfs", nullptr},
    {"quobyte", nullptr},
    {"downwardAPI", check_downward},
    {"fc", nullptr},
    {"flexVolume", nullptr},
    {"configMap", [](const Field& source) { check_keys(source, "name"); }},
    {"azureFile", nullptr},
    {"vsphereVolume", nullptr},
    {"photonPersistentDisk", nullptr},
    {"portworxVolume", nullptr},
    {"azureDisk", nullptr},
    {"storageos", nullptr},
    {"projected", check_projected},
    {"scaleIO", nullptr},
    {"csi", check_csi},
    {"ephemeral", check_ephemeral},
    {"image", [](const Field& source) { check_pull_policy(source["pullPolicy"]); }},
}};

void check_source(const Field& volume, const PodContext& pod) {
  const auto check = [](const PodSource& kind, const Field& source) {
    kind.check != nullptr ? kind.check(source) : check_shared_source(kind.name, source);
  };
  if (const Field image = volume["image"]; image.exists() && pod.is_pod)
    image["reference"].check_present();
  const bool found = check_one_of(volume, kPodSources, kOneVolumeType, check);
  const Field name = volume["name"];
  if (volume["ephemeral"].exists() && !pod.name.empty() && !name.empty()) {
    const std::string claim = fmt::format("{}-{}", pod.name, name.text());
    for (const auto& message : rules::check_dns1123_subdomain(claim))
      name.invalid_text(fmt::format("PVC name \"{}\": {}", claim, message));
  }
  if (!found) volume.required("must specify a volume type");
}

}  // namespace

Volumes validate_volumes(const Field& volumes, const PodContext& pod) {
  Volumes out;
  volumes.each([&](const Field& volume) {
    const std::size_t before = volume.causes().size();
    check_source(volume, pod);
    const Field name = volume["name"];
    name.check_required_form(rules::check_dns1123_label);
    if (out.contains(name.text())) name.duplicate();
    if (volume.causes().size() == before)
      out.emplace(name.text(),
                  volume["persistentVolumeClaim"].exists() || volume["ephemeral"].exists());
    const Field claim = volume["persistentVolumeClaim"]["claimName"];
    const bool is_created = !pod.name.empty() && !claim.empty() && [&] {
      for (const api::Value one : (*volumes).elements()) {
        if (one["ephemeral"].exists() &&
            claim.text() == fmt::format("{}-{}", pod.name, one["name"].as_string()))
          return true;
      }
      return false;
    }();
    if (is_created)
      claim.invalid_text("must not reference a PVC that gets created for an ephemeral volume");
  });
  return out;
}

}  // namespace lookout::apiserver::resources
