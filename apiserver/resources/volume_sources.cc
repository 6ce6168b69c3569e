// Validation of the sources that volumes of pods and persistent volumes have in common, and of the
// other sources of persistent volumes.
#include <fmt/format.h>
#include <re2/re2.h>

#include <array>
#include <initializer_list>
#include <string>

#include "apiserver/resources/volume_validation.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;

/// The location of a source: a pod, or the persistent volume `volume`.
struct Place {
  std::string_view volume = {};
  bool is_persistent = false;
};

constexpr std::size_t kMostOfByte = 255;

void check_path(const Field& source) {
  if (source["path"].check_present()) source["path"].check_no_backsteps();
}

void check_host_path(const Field& source, const Place&) {
  if (!source["path"].check_present()) return;
  source["path"].check_no_backsteps();
  source["type"].check_word_if_present({"", "BlockDevice", "CharDevice", "Directory",
                                        "DirectoryOrCreate", "File", "FileOrCreate", "Socket"});
}

void check_partition(const Field& partition) {
  partition.check_range(0, kMostOfByte, "must be between 1 and 255, inclusive");
}

void check_nfs(const Field& source, const Place&) {
  source["server"].check_present();
  source["path"].check_present();
  if (!source["path"].text().starts_with('/'))
    source["path"].invalid_text("must be an absolute path");
}

/// A secret in the namespace of the pod or, for a persistent volume, in the given one.
void check_secret(const Field& reference, bool has_namespace) {
  if (!reference.exists()) return;
  reference["name"].check_present();
  if (has_namespace) reference["namespace"].check_present();
}

/// The name of one end of iSCSI.
bool is_iscsi_name(std::string_view name) {
  static const re2::RE2 kIqn(R"(iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$)");
  static const re2::RE2 kEui(R"(^eui.[[:alnum:]]{16}$)");
  static const re2::RE2 kNaa(R"(^naa.[[:alnum:]]{32}$)");
  const re2::StringPiece text(name.data(), name.size());
  return re2::RE2::PartialMatch(text, name.starts_with("iqn")   ? kIqn
                                      : name.starts_with("eui") ? kEui
                                                                : kNaa);
}

/// For a persistent volume, the message does not say how names begin.
void check_iscsi_name(const Field& name, const Place& place) {
  const std::string_view text = name.text();
  if (!text.starts_with("iqn") && !text.starts_with("eui") && !text.starts_with("naa")) {
    name.invalid_text(place.is_persistent ? "must be valid format"
                                          : "must be valid format starting with iqn, eui, or naa");
  } else if (!is_iscsi_name(text)) {
    name.invalid_text("must be valid format");
  }
}

void check_iscsi(const Field& source, const Place& place) {
  constexpr std::size_t kLongest = 64;
  const Field portal = source["targetPortal"];
  const Field initiator = source["initiatorName"];
  portal.check_present();
  if (place.is_persistent && initiator.exists() &&
      place.volume.size() + 1 + portal.text().size() > kLongest) {
    portal.named(source.path() + ".targetportal")
        .invalid_text(
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
            "iscsi.initiatorName is specified.");
  }
  if (source["iqn"].check_present()) check_iscsi_name(source["iqn"], place);
  source["lun"].check_range(0, kMostOfByte);
  const Field secret = source["secretRef"];
  if ((source["chapAuthDiscovery"].is_true() || source["chapAuthSession"].is_true()) &&
      !secret.exists())
    secret.required();
  if (place.is_persistent) check_secret(secret, false);
  if (initiator.exists())
    check_iscsi_name(initiator.named(source.path() + ".initiatorname"), place);
}

void check_glusterfs(const Field& source, const Place& place) {
  source["endpoints"].check_present();
  source["path"].check_present();
  const Field ns = source["endpointsNamespace"];
  if (!place.is_persistent || !ns.exists()) return;
  if (ns.empty()) {
    ns.invalid_text("if the endpointnamespace is set, it must be a valid namespace name");
  } else {
    ns.check_form(rules::check_dns1123_label);
  }
}

void check_flocker(const Field& source, const Place&) {
  const Field name = source["datasetName"];
  const bool has_uuid = !source["datasetUUID"].empty();
  if (name.empty() && !has_uuid) source.required("one of datasetName and datasetUUID is required");
  if (!name.empty() && has_uuid) {
    source.causes().push_back(
        rules::invalid(source.path(), "resource",
                       "datasetName and datasetUUID can not be specified simultaneously"));
  }
  if (name.text().find('/') != std::string_view::npos) name.invalid_text("must not contain '/'");
}

void check_rbd(const Field& source, const Place&) {
  source["monitors"].check_present();
  source["image"].check_present();
}

void check_cinder(const Field& source, const Place& place) {
  source["volumeID"].check_present();
  check_secret(source["secretRef"], place.is_persistent);
}

/// HOST:PORT, with brackets around a host that has colons.
bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) return host.find(']') == host.size() - 1;
  return host.find_first_of(":[]") == std::string_view::npos;
}

void check_quobyte(const Field& source, const Place&) {
  constexpr const char* kPairs = "must be a host:port pair or multiple pairs separated by commas";
  constexpr std::size_t kLongest = 64;
  const Field registry = source["registry"];
  if (!registry.check_present(kPairs)) {
    // No other field is allowed.
  } else if (source["tenant"].text().size() > kLongest) {
    source["tenant"].required("must be a UUID and may not exceed a length of 64 characters");
  } else {
    std::string_view rest = registry.text();
    for (;;) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (!is_host_and_port(rest.substr(0, comma))) registry.invalid_text(kPairs);
      if (comma == rest.size()) break;
      rest.remove_prefix(comma + 1);
    }
  }
  source["volume"].check_present();
}

void check_fibre_channel(const Field& source, const Place&) {
  const Field names = source["targetWWNs"];
  if (names.empty() && source["wwids"].empty())
    names.required("must specify either targetWWNs or wwids, but not both");
  if (!names.empty() && !source["wwids"].empty())
    names.invalid("targetWWNs and wwids can not be specified simultaneously");
  if (names.empty()) return;
  if (!source["lun"].exists()) {
    source["lun"].required("lun is required if targetWWNs is specified");
  } else {
    source["lun"].check_range(0, kMostOfByte);
  }
}

void check_flex_volume(const Field& source, const Place&) {
  source["driver"].check_present();
  source["options"].each_entry([](std::string_view name, const Field& option) {
    const std::string domain =
        "." + base::lower_case(name.substr(0, std::min(name.find('/'), name.size())));
    if (domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io")) {
      option.causes().push_back(
          rules::invalid(option.path(), name, "kubernetes.io and k8s.io namespaces are reserved"));
    }
  });
}

void check_azure_file(const Field& source, const Place& place) {
  source["secretName"].check_present();
  source["shareName"].check_present();
  if (const Field ns = source["secretNamespace"]; place.is_persistent && ns.exists())
    ns.check_present();
}

void check_azure_disk(const Field& source, const Place&) {
  const Field uri = source["diskURI"];
  const Field kind = source["kind"];
  source["diskName"].check_present();
  uri.check_present();
  source["cachingMode"].check_word_if_present({"None", "ReadOnly", "ReadWrite"});
  kind.check_word_if_present({"Dedicated", "Managed", "Shared"});
  if (!kind.exists()) return;
  if (kind.text() == "Managed") {
    if (!uri.text().starts_with("/subscriptions/")) {
      uri.not_supported(
          {"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/"
           "disks/{disk-id}"});
    }
  } else if (!uri.text().starts_with("https://")) {
    uri.not_supported(
        {"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"});
  }
}

void check_storage_os(const Field& source, const Place& place) {
  source["volumeName"].check_required_form(rules::check_dns1123_label);
  source["volumeNamespace"].check_form_if_present(rules::check_dns1123_label);
  check_secret(source["secretRef"], place.is_persistent);
}

void check_scale_io(const Field& source, const Place&) {
  for (const char* field : {"gateway", "system", "volumeName"}) source[field].check_present();
}

/// The secret of a persistent volume's CSI driver.
void check_driver_secret(const Field& reference) {
  if (!reference.exists()) return;
  reference["name"].check_required_form(rules::check_dns1123_subdomain);
  reference["namespace"].check_required_form(rules::check_dns1123_label);
}

void check_csi(const Field& source, const Place&) {
  check_driver_name(source["driver"]);
  source["volumeHandle"].check_present();
  for (const char* secret : {"controllerPublishSecretRef", "controllerExpandSecretRef",
                             "nodePublishSecretRef", "nodeExpandSecretRef"})
    check_driver_secret(source[secret]);
}

struct Source {
  const char* name;
  void (*check)(const Field& source, const Place& place);
};

/// In the order of validation of a persistent volume.
constexpr std::array<Source, 22> kSources = {{
    {"hostPath", check_host_path},
    {"gcePersistentDisk",
     [](const Field& source, const Place& place) {
       const Field disk = place.is_persistent ? source.named("spec.persistentDisk") : source;
       disk["pdName"].check_present();
       check_partition(disk["partition"]);
     }},
    {"awsElasticBlockStore",
     [](const Field& source, const Place&) {
       source["volumeID"].check_present();
       check_partition(source["partition"]);
     }},
    {"glusterfs", check_glusterfs},
    {"flocker", check_flocker},
    {"nfs", check_nfs},
    {"rbd", check_rbd},
    {"quobyte", check_quobyte},
    {"cephfs", [](const Field& source, const Place&) { source["monitors"].check_present(); }},
    {"iscsi", check_iscsi},
    {"cinder", check_cinder},
    {"fc", check_fibre_channel},
    {"flexVolume", check_flex_volume},
    {"azureFile", check_azure_file},
    {"vsphereVolume",
     [](const Field& source, const Place&) { source["volumePath"].check_present(); }},
    {"photonPersistentDisk",
     [](const Field& source, const Place&) { source["pdID"].check_present(); }},
    {"portworxVolume",
     [](const Field& source, const Place&) { source["volumeID"].check_present(); }},
    {"azureDisk", check_azure_disk},
    {"scaleIO", check_scale_io},
    {"local", [](const Field& source, const Place&) { check_path(source); }},
    {"storageos", check_storage_os},
    {"csi", check_csi},
}};

}  // namespace

void check_shared_source(std::string_view name, const Field& source) {
  for (const Source& kind : kSources) {
    if (kind.name == name) return kind.check(source, {});
  }
}

void check_persistent_source(const Field& spec, std::string_view name) {
  const auto check = [&](const Source& kind, const Field& source) {
    kind.check(source, {name, true});
    if (kind.name == std::string_view("local") && !spec["nodeAffinity"].exists())
      spec["nodeAffinity"].required("Local volume requires node affinity");
  };
  if (!check_one_of(spec, kSources, kOneVolumeType, check))
    spec.required("must specify a volume type");
}

}  // namespace lookout::apiserver::resources
