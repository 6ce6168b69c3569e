// The controllers that run inside the server.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "apiserver/resources/resource_registry.h"
#include "apiserver/resources/store.h"

namespace lookout::apiserver::controllers {

/// Thrown by a task that need not be begun again.
struct TaskIsOver {};

/// Makes a coroutine that is begun again whenever it ends, unless by TaskIsOver.
using MakeTask = std::function<Awaitable<void>()>;
using Spawn = std::function<void(std::string name, MakeTask make)>;

/// The dependencies of controllers. Must outlive their coroutines.
struct Context {
  resources::ResourceRegistry& resources;
  const resources::Store& store;
  /// Begins another coroutine, which ends with the server; on the controllers' own thread only.
  const Spawn& spawn;
  /// Whether managedFields record who writes.
  bool managed_fields = true;
};

/// Empties namespaces that are being deleted, and lets them go when they are empty.
void begin_namespace_controller(const Context& context);

/// Deletes the instances of custom resources whose definition is being deleted, and lets the
/// definition go when there are none left.
void begin_definition_controller(const Context& context);

/// Deletes objects whose owners are gone, and lets objects go that wait for their dependents to be
/// deleted or orphaned.
Awaitable<void> run_garbage_collector(Context context);

/// Let claims and volumes go that are being deleted once nobody uses them: what the controllers
/// behind their protection finalizers do.
Awaitable<void> run_claim_protection(Context context);
Awaitable<void> run_volume_protection(Context context);

/// Removes pods at the end of their grace period: what a kubelet would do.
Awaitable<void> run_pod_reaper(Context context);

}  // namespace lookout::apiserver::controllers
