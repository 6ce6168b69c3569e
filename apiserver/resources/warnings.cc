// The rules and messages are those of the strategies in k8s.io/kubernetes/pkg/registry, and of
// pkg/api/{service,node,persistentvolume,persistentvolumeclaim,storage}.
#include "apiserver/resources/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/resources/field.h"
#include "apiserver/resources/ip_address.h"
#include "apiserver/resources/key_pair.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/pod_warnings.h"
#include "apiserver/resources/schema_rules.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/quantity.h"
#include "lookout/api/validation.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

using Warnings = std::vector<std::string>;

void warn(const Field& field, std::string_view what, Warnings& out) {
  out.push_back(fmt::format("{}: {}", field.path(), what));
}

/// Validation reports invalid addresses.
void check_ip(const Field& field, Warnings& out) {
  const auto address = IpAddress::parse(field.text());
  if (!address || address->family == 4 || address->to_string() == field.text()) return;
  warn(field,
       fmt::format("IPv6 address {} should be in RFC 5952 canonical format ({})",
                   quote(field.text()), quote(address->to_string())),
       out);
}

void check_cidr(const Field& field, Warnings& out) {
  const auto range = IpRange::parse(field.text());
  if (!range || range->address.family == 4 || range->to_string() == field.text()) return;
  warn(field,
       fmt::format("IPv6 CIDR value {} should be in RFC 5952 canonical format ({})",
                   quote(field.text()), quote(range->to_string())),
       out);
}

void check_label(const Field& label, std::string_view name, bool repeats, Warnings& out) {
  const auto why = deprecation_of_label(name);
  if (!why) return;
  warn(label, repeats ? fmt::format("{} is {}", name, *why) : std::string(*why), out);
}

void warn_of_service(const Field& service, const Object& /*before*/, Warnings& out) {
  constexpr std::string_view kHints = "service.kubernetes.io/topology-aware-hints";
  if ((*service["metadata"]["annotations"])[kHints].exists()) {
    out.push_back(fmt::format(
        "annotation {} is deprecated, please use service.kubernetes.io/topology-mode instead",
        kHints));
  }
  const Field spec = service["spec"];
  const std::string_view type = spec["type"].text();
  const std::string_view address = spec["clusterIP"].text();
  const bool headless = type == "ClusterIP" && address == "None";
  const Field external = spec["externalIPs"];
  if (!address.empty() && address != "None")
    spec["clusterIPs"].each([&](const Field& one) { check_ip(one, out); });
  if (headless) {
    const auto ignored = [&](const char* field) {
      out.push_back(fmt::format("spec.{} is ignored for headless services", field));
    };
    if (!spec["loadBalancerIP"].empty()) ignored("loadBalancerIP");
    if (!external.empty()) ignored("externalIPs");
    if (spec["sessionAffinity"].text() != "None") ignored("SessionAffinity");
  }
  external.each([&](const Field& one) { check_ip(one, out); });
  const bool by_name = type == "ExternalName";
  if (!external.empty() && !headless && !by_name) {
    out.emplace_back(
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  }
  check_ip(spec["loadBalancerIP"], out);
  spec["loadBalancerSourceRanges"].each([&](const Field& range) { check_cidr(range, out); });
  if (by_name && !external.empty())
    out.emplace_back("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  if (!by_name && !spec["externalName"].empty())
    out.emplace_back("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  if (spec["trafficDistribution"].text() == "PreferClose") {
    warn(spec["trafficDistribution"], R"("PreferClose" is deprecated; use "PreferSameZone")", out);
  }
}

void warn_of_node(const Field& node, const Object& /*before*/, Warnings& out) {
  const Field spec = node["spec"];
  if (spec["configSource"].exists()) warn(spec["configSource"], "the feature is removed", out);
  if (!spec["externalID"].empty()) {
    warn(spec["externalID"], "this field is deprecated, and is unused by Kubernetes", out);
  }
  spec["podCIDRs"].each([&](const Field& range) { check_cidr(range, out); });
}

/// Kubernetes' controllers write addresses in canonical form.
bool is_managed_by(const Field& object, std::string_view label,
                   std::initializer_list<std::string_view> controllers) {
  const std::string_view manager = (*object["metadata"]["labels"])[label].as_string();
  return is_one_of(manager, controllers);
}

void warn_of_endpoints(const Field& endpoints, const Object& /*before*/, Warnings& out) {
  if (is_managed_by(endpoints, "endpoints.kubernetes.io/managed-by", {"endpoint-controller"}))
    return;
  endpoints["subsets"].each([&](const Field& subset) {
    for (const char* list : {"addresses", "notReadyAddresses"})
      subset[list].each([&](const Field& address) { check_ip(address["ip"], out); });
  });
}

void warn_of_slice(const Field& slice, const Object& before, Warnings& out) {
  if (!before && slice["addressType"].text() == "FQDN")
    out.emplace_back("spec.addressType: FQDN endpoints are deprecated");
  if (is_managed_by(
          slice, "endpointslice.kubernetes.io/managed-by",
          {"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"}))
    return;
  slice["endpoints"].each([&](const Field& endpoint) {
    endpoint["addresses"].each([&](const Field& address) { check_ip(address, out); });
  });
}

void warn_of_ingress(const Field& ingress, const Object& before, Warnings& out) {
  constexpr std::string_view kClass = "kubernetes.io/ingress.class";
  if (before || !(*ingress["metadata"]["annotations"])[kClass].exists() ||
      ingress["spec"]["ingressClassName"].exists())
    return;
  out.push_back(fmt::format(
      "annotation {} is deprecated, please use 'spec.ingressClassName' instead", quote(kClass)));
}

void warn_of_network_policy(const Field& policy, const Object& /*before*/, Warnings& out) {
  const auto check = [&](const Field& rules, const char* peers) {
    rules.each([&](const Field& rule) {
      rule[peers].each([&](const Field& peer) {
        const Field block = peer["ipBlock"];
        if (!block.exists()) return;
        check_cidr(block["cidr"], out);
        block["except"].each([&](const Field& range) { check_cidr(range, out); });
      });
    });
  };
  check(policy["spec"]["ingress"], "from");
  check(policy["spec"]["egress"], "to");
}

constexpr std::string_view kStorageClass = "volume.beta.kubernetes.io/storage-class";

void warn_of_volume(const Field& volume, const Object& /*before*/, Warnings& out) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kAnnotations = {{
      {kStorageClass, R"(deprecated since v1.8; use "storageClassName" attribute instead)"},
      {"volume.beta.kubernetes.io/mount-options",
       R"(deprecated since v1.31; use "mountOptions" attribute instead)"},
  }};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSources = {{
      {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
      {"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
      {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
      {"storageos", "deprecated in v1.22, non-functional in v1.25+"},
      {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
      {"rbd", "deprecated in v1.28, non-functional in v1.31+"},
  }};
  const Field annotations = volume["metadata"]["annotations"];
  for (const auto& [name, why] : kAnnotations) {
    if ((*annotations)[name].exists()) warn(annotations.key(name), why, out);
  }
  const Field spec = volume["spec"];
  if (spec["persistentVolumeReclaimPolicy"].text() == "Recycle") {
    warn(spec["persistentVolumeReclaimPolicy"],
         "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use "
         "dynamic provisioning.",
         out);
  }
  spec["nodeAffinity"]["required"]["nodeSelectorTerms"].each([&](const Field& term) {
    term["matchExpressions"].each([&](const Field& expression) {
      check_label(expression["key"], expression["key"].text(), true, out);
    });
  });
  for (const auto& [source, why] : kSources) {
    // Go's name of the field is storageOS.
    if (spec[source].exists())
      warn(source == "storageos" ? spec.named("spec.storageOS") : spec[source], why, out);
  }
}

void check_claim_spec(const Field& spec, Warnings& out) {
  constexpr std::int64_t kMilli = 1000;
  for (const char* kind : {"requests", "limits"}) {
    const Field amount = spec["resources"][kind].key("storage");
    const auto quantity = api::Quantity::parse(amount.text());
    if (!quantity || quantity->milli_value() % kMilli == 0) continue;
    warn(amount,
         fmt::format("fractional byte value {} is invalid, must be an integer",
                     quote(quantity->to_string())),
         out);
  }
}

void warn_of_claim(const Field& claim, const Object& /*before*/, Warnings& out) {
  const Field annotations = claim["metadata"]["annotations"];
  if ((*annotations)[kStorageClass].exists()) {
    warn(annotations.key(kStorageClass),
         R"(deprecated since v1.8; use "storageClassName" attribute instead)", out);
  }
  check_claim_spec(claim["spec"], out);
}

void warn_of_stateful_set(const Field& set, const Object& before, Warnings& out) {
  set["spec"]["volumeClaimTemplates"].each([&](const Field& claim) {
    // Kubernetes has this spelling in updates.
    check_claim_spec(
        before ? claim["spec"].named(claim.path() + ".Spec") : claim["spec"].named(claim.path()),
        out);
  });
  if (set["spec"]["revisionHistoryLimit"].number() < 0) {
    warn(set["spec"]["revisionHistoryLimit"],
         "a negative value retains all historical revisions; a value >= 0 is recommended", out);
  }
}

void warn_of_storage_class(const Field& storage_class, const Object& /*before*/, Warnings& out) {
  storage_class["allowedTopologies"].each([&](const Field& topology) {
    topology["matchLabelExpressions"].each([&](const Field& expression) {
      check_label(expression["key"], expression["key"].text(), false, out);
    });
  });
}

void warn_of_runtime_class(const Field& runtime_class, const Object& /*before*/, Warnings& out) {
  const Field selector = runtime_class["scheduling"]["nodeSelector"];
  selector.each_entry([&](std::string_view name, const Field& /*value*/) {
    check_label(selector, name, false, out);
  });
}

void warn_of_capacity(const Field& capacity, const Object& /*before*/, Warnings& out) {
  const Field topology = capacity["nodeTopology"];
  topology["matchExpressions"].each([&](const Field& expression) {
    check_label(expression["key"], expression["key"].text(), true, out);
  });
  const Field labels = topology["matchLabels"];
  for (const auto& [name, value] : (*labels).members()) check_label(labels[name], name, false, out);
}

void warn_of_service_account(const Field& account, const Object& before, Warnings& out) {
  constexpr std::string_view kMountable = "kubernetes.io/enforce-mountable-secrets";
  const Field annotations = account["metadata"]["annotations"];
  if (!(*annotations)[kMountable].exists() ||
      (before && before["metadata"]["annotations"][kMountable].exists()))
    return;
  warn(annotations.key(kMountable),
       "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
       out);
}

void warn_of_secret(const Field& secret, const Object& /*before*/, Warnings& out) {
  if (secret["type"].text() != "kubernetes.io/tls") return;
  const auto content_of = [&](const char* key) {
    return decode_base64((*secret["data"])[key].as_string()).value_or(std::string());
  };
  std::string fault = fault_of_key_pair(content_of("tls.crt"), content_of("tls.key"));
  if (!fault.empty()) out.push_back(std::move(fault));
}

/// Warns of a new quota whose requests may exceed its limits.
void warn_of_quota(const Field& quota, const Object& before, Warnings& out) {
  if (before) return;
  const Value hard = *quota["spec"]["hard"];
  for (const std::string_view resource : {"cpu", "memory", "storage", "ephemeral-storage"}) {
    std::string request = fmt::format("requests.{}", resource);
    // Requests of CPU and memory have a shorter name, too.
    if (!hard[request].exists() && (resource == "cpu" || resource == "memory")) request = resource;
    const std::string limit = fmt::format("limits.{}", resource);
    const auto requested = api::Quantity::parse(hard[request].as_string());
    const auto most = api::Quantity::parse(hard[limit].as_string());
    if (!requested || !most || *requested <= *most) continue;
    out.push_back(fmt::format("ResourceQuota {} ({}) should be less than {} ({})", request,
                              requested->to_string(), limit, most->to_string()));
  }
}

void warn_of_cron_job(const Field& job, const Object& before, Warnings& out) {
  if (before && job["spec"]["schedule"].text().find("TZ") != std::string_view::npos) {
    out.emplace_back(
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
  }
}

void warn_of_definition(const Field& definition, const Object& before, Warnings& out) {
  const auto formats_of = [](Value versions) {
    std::set<std::string> formats;
    for (const Value version : versions.elements()) {
      for (std::string& one : unknown_formats(version["schema"]["openAPIV3Schema"]))
        formats.insert(std::move(one));
    }
    return formats;
  };
  const std::set<std::string> known = formats_of(before["spec"]["versions"]);
  for (const std::string& format : formats_of(*definition["spec"]["versions"])) {
    if (!known.contains(format))
      out.push_back(fmt::format("unrecognized format {}", quote(format)));
  }
}

struct KindWarnings {
  std::string_view group;
  std::string_view plural;
  void (*warn)(const Field& object, const Object& before, Warnings& out);
};
constexpr auto kKindWarnings = std::to_array<KindWarnings>({
    {"", "services", warn_of_service},
    {"", "nodes", warn_of_node},
    {"", "endpoints", warn_of_endpoints},
    {"", "persistentvolumes", warn_of_volume},
    {"", "persistentvolumeclaims", warn_of_claim},
    {"", "resourcequotas", warn_of_quota},
    {"", "secrets", warn_of_secret},
    {"", "serviceaccounts", warn_of_service_account},
    {"apiextensions.k8s.io", "customresourcedefinitions", warn_of_definition},
    {"apps", "statefulsets", warn_of_stateful_set},
    {"batch", "cronjobs", warn_of_cron_job},
    {"discovery.k8s.io", "endpointslices", warn_of_slice},
    {"networking.k8s.io", "ingresses", warn_of_ingress},
    {"networking.k8s.io", "networkpolicies", warn_of_network_policy},
    {"node.k8s.io", "runtimeclasses", warn_of_runtime_class},
    {"storage.k8s.io", "storageclasses", warn_of_storage_class},
    {"storage.k8s.io", "csistoragecapacities", warn_of_capacity},
});

/// Warns of finalizers without a domain, which may collide. (Built-in kinds reject these.)
void warn_of_finalizers(const Object& object, const Object& before, Warnings& out) {
  const auto names_of = [](const Object& one) {
    std::set<std::string_view> names;
    for (const Value name : one["metadata"]["finalizers"].elements())
      names.insert(name.as_string());
    return names;
  };
  const std::set<std::string_view> known = names_of(before);
  for (const std::string_view name : names_of(object)) {
    if (known.contains(name)) continue;
    const auto say = [&](std::string_view what) {
      out.push_back(fmt::format("metadata.finalizers: {}: {}", quote(name), what));
    };
    for (const std::string& message : api::validation::check_qualified_name(name)) say(message);
    if (name.find('/') != std::string_view::npos || is_standard_finalizer(name)) continue;
    say(
        fmt::format("prefer a domain-qualified finalizer name {}to avoid accidental conflicts with "
                    "other finalizer writers",
                    name.find('.') == std::string_view::npos ? "" : "including a path (/) "));
  }
}

}  // namespace

std::vector<std::string> warnings_about(const ServedResource& resource, const Object& object,
                                        const Object& before) {
  std::vector<std::string> out = pod_warnings(resource, object, before);
  if (resource.custom) warn_of_finalizers(object, before, out);
  if (resource.custom || object.kind() != resource.type.kind) return out;
  const auto entry =
      std::find_if(kKindWarnings.begin(), kKindWarnings.end(), [&](const KindWarnings& one) {
        return one.group == resource.type.group && one.plural == resource.type.plural;
      });
  if (entry == kKindWarnings.end()) return out;
  Causes none;
  entry->warn(Field(object.body(), "", none), before, out);
  return out;
}

std::vector<std::string> warnings_about_status(const ServedResource& resource,
                                               const Object& object) {
  std::vector<std::string> out;
  if (resource.custom) return out;
  Causes none;
  const Field status(object["status"], "status", none);
  if (object.kind() == "Pod") {
    for (const char* list : {"podIPs", "hostIPs"})
      status[list].each([&](const Field& one) { check_ip(one["ip"], out); });
  } else if (object.kind() == "Service" || object.kind() == "Ingress") {
    status["loadBalancer"]["ingress"].each(
        [&](const Field& one) { check_ip(one["ip"].named(one.path()), out); });
  }
  return out;
}

}  // namespace lookout::apiserver::resources
