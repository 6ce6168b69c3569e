// The pod security standards, which namespace labels select (k8s.io/pod-security-admission).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::admission {

enum class SecurityLevel { kPrivileged, kBaseline, kRestricted };

/// A level with the rules of a Kubernetes version.
struct SecurityStandard {
  SecurityLevel level = SecurityLevel::kPrivileged;
  /// 30 for v1.30; nullopt: the latest rules.
  std::optional<std::int64_t> minor = {};

  bool allows_everything() const { return level == SecurityLevel::kPrivileged; }
  /// "restricted:latest".
  std::string to_string() const;
  friend bool operator==(const SecurityStandard&, const SecurityStandard&) = default;
};

/// The standards that apply to the pods of a namespace.
struct PodSecurity {
  /// Pods that violate it are rejected.
  SecurityStandard enforce = {};
  /// Pods that violate it cause a warning.
  SecurityStandard warn = {};
  /// The errors in the labels.
  std::vector<api::StatusCause> errors = {};
};

/// Reads the labels of a namespace. As in Kubernetes, an invalid level enforces "restricted".
PodSecurity pod_security_of(api::Value labels);

/// Why a pod is rejected ("hostPath volumes"), with details ("volume \"v\"").
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

/// Whether an update may introduce violations: it changes containers or images.
bool changes_security(const api::Object& pod, const api::Object& old);

/// The warnings about existing pods that violate a namespace's new standard.
std::vector<std::string> warnings_about_pods(std::string_view ns, const SecurityStandard& standard,
                                             const std::vector<api::Object>& pods);

}  // namespace lookout::apiserver::admission
