// Evicting pods.
#pragma once

#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// Deletes a pod, unless its disruption budget (one of `budgets`) forbids it. A pod that has begun
/// and is ready goes only if the budget has a disruption left, which is counted; one that is not
/// ready goes if the budget's spec.unhealthyPodEvictionPolicy lets it. Before it is deleted, the pod
/// gets the condition DisruptionTarget. `dry_run` and the eviction's deleteOptions.dryRun have the
/// same effect. Throws api::StatusError: 429 if the budget forbids it.
///
/// The semantics are those of pkg/registry/core/pod/storage/eviction.go of Kubernetes.
Awaitable<void> evict_pod(const resources::Store& store, resources::Target pod,
                          resources::ServedResourcePtr budgets, api::Object eviction, bool dry_run);

}  // namespace lookout::apiserver::endpoints
