// The controllers that run inside the server.
#pragma once

#include <functional>
#include <string>

#include "apiserver/resources/resource_registry.h"
#include "apiserver/resources/store.h"

namespace lookout::apiserver::controllers {

/// Thrown by a task that must not be restarted.
struct TaskIsOver {};

/// Creates a coroutine that is restarted whenever it ends, except with TaskIsOver.
using MakeTask = std::function<Awaitable<void>()>;
using Spawn = std::function<void(std::string name, MakeTask make)>;

/// The dependencies of controllers. Must outlive their coroutines.
struct Context {
  resources::ResourceRegistry& resources;
  const resources::Store& store;
  /// Starts a coroutine, which ends with the server. Call only on the controllers' thread.
  const Spawn& spawn;
  /// Whether writes are recorded in managedFields.
  bool managed_fields = true;
};

/// Deletes the content of terminating namespaces, then removes their finalizers.
void begin_namespace_controller(const Context& context);

/// Deletes the instances of custom resources whose definition is being deleted, then removes the
/// definition's finalizer.
void begin_definition_controller(const Context& context);

/// Deletes objects without existing owners, and removes the finalizers of objects whose dependents
/// are deleted or orphaned.
Awaitable<void> run_garbage_collector(Context context);

/// Remove the protection finalizers of deleted claims, volumes and volume attributes classes that are
/// not in use, as the storage protection controllers do.
Awaitable<void> run_claim_protection(Context context);
Awaitable<void> run_volume_protection(Context context);
Awaitable<void> run_attributes_class_protection(Context context);

/// Keeps in each namespace the service account "default" and the config map kube-root-ca.crt with these
/// certificates (in PEM; empty without TLS), as kube-controller-manager does.
void begin_service_account_controllers(const Context& context, const std::string& certificates);

/// Removes pods at the end of their grace period, as a kubelet does.
Awaitable<void> run_pod_reaper(Context context);

}  // namespace lookout::apiserver::controllers
