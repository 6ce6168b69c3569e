#include "apiserver/admission/plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lookout/base/error.h"

namespace lookout::apiserver::admission {
namespace {

constexpr std::string_view kServiceAccount = "ServiceAccount";
constexpr std::array<std::string_view, 18> kAlwaysOn = {"CertificateApproval",
                                                        "CertificateSigning",
                                                        "CertificateSubjectRestriction",
                                                        "DefaultIngressClass",
                                                        "DefaultStorageClass",
                                                        "DefaultTolerationSeconds",
                                                        "LimitRanger",
                                                        "MutatingAdmissionWebhook",
                                                        "NamespaceLifecycle",
                                                        "PersistentVolumeClaimResize",
                                                        "PodSecurity",
                                                        "PodTopologyLabels",
                                                        "Priority",
                                                        "ResourceQuota",
                                                        "RuntimeClass",
                                                        "StorageObjectInUseProtection",
                                                        "TaintNodesByCondition",
                                                        "ValidatingAdmissionWebhook"};
constexpr std::array<std::string_view, 22> kMissing = {"AlwaysAdmit",
                                                       "AlwaysDeny",
                                                       "AlwaysPullImages",
                                                       "ClusterTrustBundleAttest",
                                                       "DenyServiceExternalIPs",
                                                       "EventRateLimit",
                                                       "ExtendedResourceToleration",
                                                       "ImagePolicyWebhook",
                                                       "JobValidation",
                                                       "LimitPodHardAntiAffinityTopology",
                                                       "MutatingAdmissionPolicy",
                                                       "NamespaceAutoProvision",
                                                       "NamespaceExists",
                                                       "NodeDeclaredFeatureValidator",
                                                       "NodeRestriction",
                                                       "OwnerReferencesPermissionEnforcement",
                                                       "PodGroupProtection",
                                                       "PodGroupWorkloadExists",
                                                       "PodNodeSelector",
                                                       "PodResizeValidator",
                                                       "PodTolerationRestriction",
                                                       "ValidatingAdmissionPolicy"};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_known(std::string_view name) {
  if (name == kServiceAccount || is_among(kAlwaysOn, name) || is_among(kMissing, name)) return;
  throw InvalidArgument(fmt::format("there is no admission plugin \"{}\"", name));
}

}  // namespace

Plugins choose_plugins(const std::vector<std::string>& enabled,
                       const std::vector<std::string>& disabled) {
  for (const std::string& name : enabled) {
    check_known(name);
    if (is_among(disabled, name))
      throw InvalidArgument(fmt::format("the admission plugin {} is enabled and disabled", name));
    if (is_among(kMissing, name))
      throw InvalidArgument(fmt::format("this server does not have the admission plugin {}", name));
  }
  for (const std::string& name : disabled) {
    check_known(name);
    if (is_among(kAlwaysOn, name))
      throw InvalidArgument(fmt::format("the admission plugin {} cannot be disabled", name));
  }
  return {.service_account = is_among(enabled, kServiceAccount)};
}

}  // namespace lookout::apiserver::admission
