// What goes on in the server by itself.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "apiserver/registry/resource_registry.h"
#include "apiserver/registry/store.h"

namespace lookout::apiserver::controllers {

using storage::Awaitable;

/// What controllers work with. Must outlive their coroutines.
struct Context {
  registry::ResourceRegistry& resources;
  const registry::Store& store;
};

/// Empties namespaces that are being deleted, and lets them go when they are empty.
Awaitable<void> run_namespace_controller(Context context);

/// Deletes the instances of custom resources whose definition is being deleted, and lets the
/// definition go when there are none left.
Awaitable<void> run_definition_controller(Context context);

/// Removes pods at the end of their grace period: what a kubelet would do.
Awaitable<void> run_pod_reaper(Context context);

}  // namespace lookout::apiserver::controllers
