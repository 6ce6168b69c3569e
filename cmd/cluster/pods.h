// Helpers for pods in the simulated cluster.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/api/time.h"
#include "lookout/api/value.h"
#include "lookout/controller/context.h"
#include "lookout/controller/result.h"
#include "lookout/k8s/core/v1_draft.h"

namespace lookout::cmd::cluster {

/// The current time, in the resolution of API objects.
inline api::Time now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

inline constexpr const char* kTemplateHash = "pod-template-hash";
inline constexpr const char* kRevisionHash = "controller-revision-hash";
/// The condition of ReplicaSets and Deployments whose pods the server refuses, for example because of a
/// quota.
inline constexpr const char* kReplicaFailure = "ReplicaFailure";

bool is_ready(const k8s::core::v1::Pod& pod);
/// True if the pod has been ready for at least `min_ready_seconds`.
bool is_available(const k8s::core::v1::Pod& pod, std::int32_t min_ready_seconds);
/// True until the pod has ended or is being deleted.
bool is_active(const k8s::core::v1::Pod& pod);

/// The cached pods whose controller is `owner`, except those that are being deleted.
std::vector<k8s::core::v1::Pod> pods_of(const api::Object& owner, controller::Context& context);

/// A new pod from a pod template. The name is empty.
k8s::core::v1::PodDraft pod_from(api::Value pod_template, std::string_view ns);

/// A hash of ten characters that is independent of the order of members and of the label
/// pod-template-hash.
std::string hash_of(api::Value pod_template);
/// True if the templates are equal, ignoring the label pod-template-hash.
bool are_equal(api::Value pod_template, api::Value other);

/// True if an object cannot be created because its namespace is being deleted; trying again is no use.
bool is_in_ending_namespace(const api::StatusError& error);

/// Creates a pod for `owner` and reports it. A failure is reported and thrown, unless the namespace is
/// being deleted.
void create_pod(const api::Object& owner, const k8s::core::v1::PodDraft& pod,
                controller::Context& context);
/// Deletes a pod of `owner` and reports it.
void remove_pod(const api::Object& owner, const k8s::core::v1::Pod& pod,
                controller::Context& context);
/// Deletes `count` pods of `owner`: unready ones first, then the youngest.
void remove_pods(const api::Object& owner, std::vector<k8s::core::v1::Pod> pods, std::size_t count,
                 controller::Context& context);

/// The number of pods of a kind, for a status.
struct PodCounts {
  std::int32_t all = 0;
  std::int32_t ready = 0;
  std::int32_t available = 0;
};
PodCounts count(const std::vector<k8s::core::v1::Pod>& pods, std::int32_t min_ready_seconds);

/// Requeues when ready pods become available after min_ready_seconds.
controller::Result after_min_ready(const PodCounts& counts, std::int32_t min_ready_seconds);

}  // namespace lookout::cmd::cluster
