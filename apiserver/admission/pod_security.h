// The pod security standards, which labels of namespaces apply (k8s.io/pod-security-admission).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::admission {

enum class SecurityLevel { kPrivileged, kBaseline, kRestricted };

/// A level with the rules that it had in a version of Kubernetes.
struct SecurityStandard {
  SecurityLevel level = SecurityLevel::kPrivileged;
  /// Of v1.30 this is 30; none: the latest rules.
  std::optional<std::int64_t> minor = {};

  bool allows_everything() const { return level == SecurityLevel::kPrivileged; }
  /// "restricted:latest".
  std::string to_string() const;
  friend bool operator==(const SecurityStandard&, const SecurityStandard&) = default;
};

/// The standards that apply to the pods of a namespace.
struct PodSecurity {
  /// Pods that violate it are refused.
  SecurityStandard enforce = {};
  /// A warning says what violates it.
  SecurityStandard warn = {};
  /// About labels with other values than these.
  std::vector<api::StatusCause> errors = {};
};

/// Reads the labels of a namespace. As there, a wrong level enforces "restricted".
PodSecurity pod_security_of(api::Value labels);

/// Why a pod is not allowed: "hostPath volumes", and which: "volume \"v\"".
struct Violation {
  std::string reason;
  std::string detail;
};

/// The rules of a standard that a pod violates, given by its metadata and spec (or those of a
/// template).
std::vector<Violation> violations_of(const SecurityStandard& standard, api::Value metadata,
                                     api::Value spec);

/// "hostPath volumes (volume \"v\"), privileged (...)".
std::string details_of(const std::vector<Violation>& violations);
/// "hostPath volumes, privileged".
std::string reasons_of(const std::vector<Violation>& violations);

/// Whether an update may violate what the old pod did not: it has other containers or images.
bool changes_security(const api::Object& pod, const api::Object& old);

/// The warnings about the pods of a namespace that violate the standard which it gets.
std::vector<std::string> warnings_about_pods(std::string_view ns, const SecurityStandard& standard,
                                             const std::vector<api::Object>& pods);

}  // namespace lookout::apiserver::admission
