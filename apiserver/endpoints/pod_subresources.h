// Binding and evicting pods.
#pragma once

#include "apiserver/registry/store.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// Puts a pod on a node: what a scheduler asks for. Throws api::StatusError.
registry::Awaitable<void> bind_pod(const registry::Store& store, registry::Target pod,
                                   api::Object binding, bool dry_run);

/// Deletes a pod, by the wish of somebody who would rather not disturb. Throws api::StatusError.
registry::Awaitable<void> evict_pod(const registry::Store& store, registry::Target pod,
                                    api::Object eviction, bool dry_run);

}  // namespace lookout::apiserver::endpoints
