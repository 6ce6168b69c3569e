// Definitions in the groups of the Kubernetes community.
#pragma once

#include <string>
#include <string_view>

#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Whether definitions in the group need an approval: k8s.io, kubernetes.io and their subdomains.
bool is_protected_group(std::string_view group);

/// The approval in a definition's annotation api-approved.kubernetes.io (apiextensions' apihelpers).
struct ApiApproval {
  enum class State { kMissing, kInvalid, kBypassed, kApproved };
  State state = State::kMissing;
  std::string reason;

  static constexpr const char* kAnnotation = "api-approved.kubernetes.io";
  static ApiApproval of(const api::Object& definition);
};

}  // namespace lookout::apiserver::resources
