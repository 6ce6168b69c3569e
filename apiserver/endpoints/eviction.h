// The eviction subresource of pods.
#pragma once

#include "apiserver/resources/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// Deletes a pod, unless its disruption budget (one of `budgets`) forbids it. A ready pod needs an
/// allowed disruption, which is counted; for others, spec.unhealthyPodEvictionPolicy decides. Sets the
/// pod's condition DisruptionTarget before the deletion. `dry_run` and the eviction's
/// deleteOptions.dryRun have the same effect. Throws api::StatusError: 429 if the budget forbids it.
///
/// The semantics are those of pkg/registry/core/pod/storage/eviction.go of Kubernetes.
Awaitable<void> evict_pod(const resources::Store& store, resources::Target pod,
                          resources::ServedResourcePtr budgets, api::Object eviction, bool dry_run);

}  // namespace lookout::apiserver::endpoints
