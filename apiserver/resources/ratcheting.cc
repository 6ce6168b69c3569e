#include "apiserver/resources/ratcheting.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "apiserver/resources/field.h"

namespace lookout::apiserver::resources {
namespace {

using api::StatusCause;

/// The condition on the old object for tolerating an error.
enum class Needs {
  kNothing,    ///< immutable, so it is not checked
  kOne,        ///< an error of the same rule
  kSameValue,  ///< the same error, at any place
};

/// An error that is tolerated: by its resource, parts of its field, and a part of its message. An empty
/// part fits any text.
struct Rule {
  std::string_view plural;
  std::string_view part;
  std::string_view last = {};
  std::string_view message = {};
  Needs needs = Needs::kOne;

  bool covers(const StatusCause& cause) const {
    const auto has = [](std::string_view text, std::string_view wanted) {
      return text.find(wanted) != std::string_view::npos;
    };
    const std::size_t at = cause.field.find(part);
    return at != std::string::npos && has(std::string_view(cause.field).substr(at), last) &&
           has(cause.message, message);
  }
};

/// The rules for pods and for pod templates.
constexpr Rule kPodRules[] = {
    {"", "odAffinity.", "].values["},
    {"", "odAntiAffinity.", "].values["},
    {"", "nodeAffinity.required", "].values["},
    {"", "topologySpreadConstraints[", ".labelSelector."},
    {"", "volumes[", ".projected.path", "'..'"},
    {"", "initContainers[", ".restartPolicy", "non-sidecar initContainers"},
    {"", "[controller.kubernetes.io/pod-deletion-cost]"},
    {"", ".sysctls[", ".name", "may not be specified when 'host"},
    {"", ".resources.", "[hugepages-", "is not positive integer multiple of"},
    {"", "tolerations[", ".operator", "Unsupported value: \"Lt\""},
    {"", "tolerations[", ".operator", "Unsupported value: \"Gt\""},
};

constexpr Rule kRules[] = {
    {"statefulsets", "spec.serviceName", "", "", Needs::kNothing},
    {"statefulsets", "spec.volumeClaimTemplates", "", "", Needs::kNothing},
    {"daemonsets", "spec.selector.", "].values["},
    {"cronjobs", "spec.timeZone", "", "unknown time zone", Needs::kSameValue},
    {"horizontalpodautoscalers", "spec.metrics[", ".describedObject.apiVersion"},
    {"poddisruptionbudgets", "spec.selector.", "].values["},
    {"networkpolicies", "ipBlock.cidr", "", "", Needs::kSameValue},
    {"networkpolicies", "ipBlock.except[", "", "", Needs::kSameValue},
    {"ingresses", "spec.tls[", "].secretName"},
    {"services", "spec.externalIPs[", "", "", Needs::kSameValue},
    {"services", "spec.LoadBalancerSourceRanges[", "", "", Needs::kSameValue},
    {"services", "[service.beta.kubernetes.io/load-balancer-source-ranges]", "", "Invalid value",
     Needs::kSameValue},
    {"persistentvolumes", "nodeAffinity.required", "].values["},
    {"persistentvolumeclaims", "spec.dataSource", ".apiGroup"},
    {"persistentvolumeclaims", "spec.selector.", "].values["},
    {"clusterroles", "aggregationRule.", "].values["},
    {"csistoragecapacities", "nodeTopology.", "].values["},
    {"validatingwebhookconfigurations", "Selector.", "].values["},
    {"validatingwebhookconfigurations", ".admissionReviewVersions", "", "at least one of"},
    {"validatingwebhookconfigurations", ".sideEffects", "", "Unsupported value"},
    {"validatingwebhookconfigurations", "].name", "", "Duplicate value"},
    {"mutatingwebhookconfigurations", "Selector.", "].values["},
    {"mutatingwebhookconfigurations", ".admissionReviewVersions", "", "at least one of"},
    {"mutatingwebhookconfigurations", ".sideEffects", "", "Unsupported value"},
    {"mutatingwebhookconfigurations", "].name", "", "Duplicate value"},
    {"certificatesigningrequests", "spec.signerName", "", "legacy signerName"},
    {"certificatesigningrequests", "spec.usages[", "", "Duplicate value"},
    {"certificatesigningrequests", "spec.usages[", "", "Unsupported value"},
    {"customresourcedefinitions", "metadata.name", "", "must be spec.names.plural",
     Needs::kNothing},
    {"customresourcedefinitions", "metadata.annotations[api-approved"},
    {"customresourcedefinitions", "spec.preserveUnknownFields"},
    {"customresourcedefinitions", ".conversionReviewVersions", "", "at least one of"},
    {"customresourcedefinitions", ".default", "", "x-kubernetes-list-map-keys"},
};

constexpr std::array<std::string_view, 9> kOfPods = {
    "pods",         "podtemplates", "replicationcontrollers",
    "deployments",  "replicasets",  "daemonsets",
    "statefulsets", "jobs",         "cronjobs"};

void apply(const Rule& rule, const Causes& old_causes, Causes& causes) {
  const auto covered = [&](const StatusCause& cause) { return rule.covers(cause); };
  if (rule.needs == Needs::kOne && std::none_of(old_causes.begin(), old_causes.end(), covered))
    return;
  std::erase_if(causes, [&](const StatusCause& cause) {
    return covered(cause) &&
           (rule.needs != Needs::kSameValue ||
            std::any_of(old_causes.begin(), old_causes.end(), [&](const StatusCause& old) {
              return covered(old) && old.message == cause.message;
            }));
  });
}

void drop_below(std::string_view field, Causes& causes) {
  std::erase_if(causes, [&](const StatusCause& cause) { return cause.field.starts_with(field); });
}

/// A schedule with a time zone may keep one, unless spec.timeZone is also set.
void tolerate_zone_in_schedule(const UpdateOf& update, Causes& causes) {
  if (update.old["spec"]["schedule"].as_string().find("TZ") == std::string_view::npos) return;
  const auto found = std::find_if(causes.begin(), causes.end(), [](const StatusCause& cause) {
    return cause.field == "spec.schedule" &&
           cause.message.find("cannot use TZ or CRON_TZ") != std::string::npos;
  });
  if (found == causes.end()) return;
  if (update.object["spec"]["timeZone"].exists()) {
    found->message =
        api::validation::invalid("", update.object["spec"]["schedule"].as_string(),
                                 "cannot use both timeZone field and TZ or CRON_TZ in schedule")
            .message;
  } else {
    causes.erase(found);
  }
}

/// Unchanged atomic lists are not checked.
void tolerate_unchanged(const UpdateOf& update, Causes& causes) {
  const auto stays = [&](std::string_view plural, std::string_view part, std::string_view field) {
    if (update.plural == plural && update.object[part] == update.old[part])
      drop_below(field, causes);
  };
  stays("endpoints", "subsets", "subsets[");
  stays("endpointslices", "endpoints", "endpoints[");
}

}  // namespace

void tolerate_old_values(const UpdateOf& update, const Causes& old_causes, Causes& causes) {
  if (is_one_of(update.plural, kOfPods)) {
    // Selectors of workloads are validated as strictly as those of affinities.
    const bool lax = std::any_of(old_causes.begin(), old_causes.end(), [](const StatusCause& old) {
      return kPodRules[0].covers(old) || kPodRules[1].covers(old);
    });
    if (lax) apply({"", "spec.selector.", "].values[", "", Needs::kNothing}, old_causes, causes);
    for (const Rule& rule : kPodRules) apply(rule, old_causes, causes);
  }
  for (const Rule& rule : kRules) {
    if (rule.plural == update.plural) apply(rule, old_causes, causes);
  }
  if (update.plural == "statefulsets") {
    Causes others = old_causes;
    drop_below("spec.serviceName", others);
    drop_below("spec.volumeClaimTemplates", others);
    if (!others.empty()) drop_below("spec.template.spec.", causes);
  }
  // If a selector had any error, labels in any form are tolerated.
  for (const std::string_view of : {"poddisruptionbudgets", "networkpolicies"}) {
    const std::string_view selector =
        of == "networkpolicies" ? "spec.podSelector." : "spec.selector.";
    if (update.plural == of &&
        std::any_of(old_causes.begin(), old_causes.end(),
                    [&](const StatusCause& old) { return old.field.starts_with(selector); }))
      apply({"", "elector.", "].values[", "", Needs::kNothing}, old_causes, causes);
  }
  if (update.plural == "cronjobs") tolerate_zone_in_schedule(update, causes);
  tolerate_unchanged(update, causes);
}

}  // namespace lookout::apiserver::resources
