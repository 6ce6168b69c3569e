// Store: creates, reads, changes and deletes objects by the rules of the API.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/json.h"
#include "apiserver/resources/served_resource.h"
#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/storage/interface.h"
#include "lookout/base/attributes.h"

namespace lookout::apiserver::fields {
class FieldManager;
}
namespace lookout::apiserver::quota {
class NamespaceLimits;
}

namespace lookout::apiserver::resources {

class Admission;

/// The resource and the object of a request.
struct Target {
  LOOKOUT_OPTION ServedResourcePtr resource;
  /// Empty for cluster-scoped resources, and for all namespaces.
  LOOKOUT_OPTION std::string ns = {};
  /// Empty for a collection.
  LOOKOUT_OPTION std::string name = {};
  /// Called before writes. Null: no admission. It must outlive the request.
  Admission* admission = nullptr;
  /// Records the client's changes in managedFields. Null: managedFields are those of the changed
  /// object. It must outlive the request.
  const fields::FieldManager* fields = nullptr;
  /// An update of an object that does not exist creates it, overriding the strategy.
  bool creates = false;

  /// The key of the object in the storage, or the key prefix of the collection.
  std::string key() const;
};

/// Which part of an object a request may change.
enum class Part {
  kMain,                 ///< everything but the status
  kStatus,               ///< the status, and some metadata
  kApproval,             ///< of a signing request: the conditions in its status
  kFinalizers,           ///< of a namespace: everything but the status
  kEphemeralContainers,  ///< of a pod
  kResources,            ///< of a pod: its CPU and memory
  kWhole                 ///< everything, without a new generation
};

/// The treatment of an object's dependents.
enum class Propagation {
  kDefault,     ///< determined by the object's finalizers, or else by its strategy
  kBackground,  ///< dependents are deleted after the object
  kForeground,  ///< dependents are deleted before the object
  kOrphan       ///< dependents stay
};

/// The finalizers of objects that wait for their dependents.
inline constexpr std::string_view kForegroundDeletion = "foregroundDeletion";
inline constexpr std::string_view kOrphanDependents = "orphan";

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds = {};
  LOOKOUT_OPTION storage::Preconditions preconditions = {};
  Propagation propagation = Propagation::kDefault;
  bool dry_run = false;
  /// The client has set the deprecated `orphanDependents: false`.
  bool denies_orphans = false;
};

/// Throws api::StatusError (409) if the object does not match the client's preconditions.
void check_preconditions(const Target& target, const storage::Preconditions& preconditions,
                         const api::Object& present);

class ServiceAllocator;

/// The common rules of all resources (k8s.io/apiserver/pkg/registry/generic/registry.Store). All
/// passed and returned objects have the version of the request. Failures throw api::StatusError.
/// Thread-safe.
class Store {
 public:
  /// Keeps only references.
  explicit Store(const ServedResourcePtr& namespaces) : namespaces_(namespaces) {}

  /// The allocator of services' addresses and ports, which must outlive the store's use. Call it
  /// before the first request.
  void allocate_services(const ServiceAllocator* services) { services_ = services; }

  /// The PriorityClasses for new pods. Call it before the first request.
  void admit_priorities(ServedResourcePtr classes) { priority_classes_ = std::move(classes); }

  /// The service accounts of new pods, if the admission plugin ServiceAccount is on. Call it before the
  /// first request.
  void admit_service_accounts(ServedResourcePtr accounts) {
    service_accounts_ = std::move(accounts);
  }

  /// Applies LimitRanges and ResourceQuotas. It must outlive the store's use. Call it before the first
  /// request.
  void limit_namespaces(quota::NamespaceLimits* limits) { limits_ = limits; }

  Awaitable<api::Object> get(Target target, storage::Revision not_older_than = 0) const;

  /// The object's name may be empty if it has a generateName.
  Awaitable<api::Object> create(Target target, api::Object object, bool dry_run = false) const;

  struct Updated {
    api::Object object;
    bool created = false;
    /// The stored object before the update; empty if the update created it.
    api::Object before = {};
  };
  /// Maps the current object to the wanted one. An empty object means none.
  using Change = std::function<api::Object(const api::Object& present)>;
  /// Changes an object; retries after concurrent changes.
  Awaitable<Updated> update(Target target, Change change, Part part,
                            storage::Preconditions preconditions, bool dry_run = false) const;
  Awaitable<Updated> update(Target target, Change change, Part part = Part::kMain) const {
    return update(std::move(target), std::move(change), part, storage::Preconditions());
  }

  struct Deleted {
    api::Object object;
    /// False if the object remains because of finalizers or its grace period.
    bool gone = false;
  };
  Awaitable<Deleted> remove(Target target, DeleteOptions options) const;
  /// Deletes a listed object of a collection. Does nothing if it was deleted, or if another object has
  /// its name.
  Awaitable<void> remove_listed(Target collection, api::Object listed, DeleteOptions options) const;
  Awaitable<Deleted> remove(Target target) const {
    return remove(std::move(target), DeleteOptions());
  }

  /// Throws unless objects may be created in the namespace.
  Awaitable<void> check_namespace(const Target& target, std::string_view name) const;

 private:
  class ChangeOfObject;

  bool allocates(const Target& target) const;
  /// Whether there may be limits for the objects of a namespace.
  bool is_limited(const Target& target) const;
  /// A new or resized pod with admission's defaults.
  Awaitable<api::Object> complete_pod(Target target, api::Object pod, bool is_new) const;
  /// Update and removal without admission.
  Awaitable<Updated> update_unasked(Target target, Change change, Part part,
                                    storage::Preconditions preconditions, bool dry_run) const;
  Awaitable<Deleted> remove_unasked(Target target, DeleteOptions options) const;
  /// Calls admission for a new object. Returns the object to create: the same one, unless admission
  /// has changed it.
  Awaitable<api::Object> admit_new(Target target, api::Object object) const;
  /// Changes the ephemeral containers of a pod if the admission plugin ServiceAccount is on.
  Awaitable<Updated> update_ephemeral(Target target, Change change,
                                      storage::Preconditions preconditions, bool dry_run) const;
  Awaitable<Updated> update_admitted(Target target, Change change, Part part,
                                     storage::Preconditions preconditions, bool dry_run) const;
  Awaitable<Deleted> remove_admitted(Target target, DeleteOptions options) const;
  /// After a write with an unknown outcome: the stored object with this uid, empty if it does not exist;
  /// nullopt if the storage does not respond.
  Awaitable<std::optional<api::Object>> look_again(Target target, std::string uid) const;
  /// Deletes an object and returns its last state. Throws the storage's errors, unless the object was
  /// deleted nevertheless.
  Awaitable<api::Object> remove_stored(Target target, storage::Preconditions preconditions,
                                       storage::Interface::Validate validate) const;
  /// Whether there was another write since `present` was read.
  Awaitable<bool> has_moved(Target target, api::Object present) const;
  Awaitable<Updated> update_object(Target target, Change change, Part part,
                                   storage::Preconditions preconditions, bool dry_run) const;
  /// An update that a LimitRange or a quota may reject.
  Awaitable<Updated> update_limited(Target target, Change change, Part part,
                                    storage::Preconditions preconditions, bool dry_run) const;
  Awaitable<Updated> write_change(Target target, Change change, Part part,
                                  storage::Preconditions preconditions, bool dry_run) const;
  Awaitable<Updated> update_service(Target target, Change change,
                                    storage::Preconditions preconditions, bool dry_run) const;
  /// The allocations of a service before and after an update, and the new ones.
  struct ClaimsOfUpdate;
  /// After a service update with an unknown outcome: releases allocations that the stored service does
  /// not need.
  Awaitable<void> settle_claims(Target target, std::string uid, ClaimsOfUpdate claims) const;
  Awaitable<Deleted> remove_object(Target target, DeleteOptions options) const;
  api::Object prepare_new(const Target& target, const api::Object& object) const;
  Awaitable<Deleted> remove_gracefully(const Target& target, const DeleteOptions& options) const;
  Awaitable<Deleted> remove_now(const Target& target, storage::Preconditions preconditions,
                                bool dry_run) const;
  Awaitable<Deleted> remove_namespace(const Target& target, const DeleteOptions& options) const;
  Awaitable<Deleted> remove_definition(const Target& target, const DeleteOptions& options) const;

  const ServedResourcePtr namespaces_;
  const ServiceAllocator* services_ = nullptr;
  ServedResourcePtr priority_classes_;
  ServedResourcePtr service_accounts_;
  quota::NamespaceLimits* limits_ = nullptr;
};

/// Converts a storage error for the client. `operation` as in "The create operation against ...".
api::StatusError as_status(const storage::StorageError& error, const Target& target,
                           std::string_view operation);
[[noreturn]] void throw_as_status(const storage::StorageError& error, const Target& target,
                                  std::string_view operation);

/// The keys for a watch or list of a target: the single object that the field selector requests, or
/// all.
struct KeyRange {
  LOOKOUT_OPTION std::string key;
  bool recursive = true;
};

/// The finalizer that keeps a definition until its instances are deleted.
inline constexpr std::string_view kInstanceCleanup = "customresourcecleanup.apiextensions.k8s.io";

}  // namespace lookout::apiserver::resources
