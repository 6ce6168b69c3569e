// Owner references: metadata.ownerReferences.
#pragma once

#include <optional>
#include <utility>

#include "lookout/api/draft.h"
#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::controller {

/// The object exists and does not belong to the controller that tries to write it.
class NotOwnedError : public Error {
 public:
  using Error::Error;
};

/// The object has another controller already; controllerutil.AlreadyOwnedError.
class AlreadyOwnedError : public NotOwnedError {
 public:
  using NotOwnedError::NotOwnedError;
};

/// Makes `owner` the controller of `owned`, so that changes of `owned` notify the owner's
/// controller, and the garbage collector deletes it with its owner. The rules and errors are those
/// of controller-runtime's controllerutil.SetControllerReference:
/// - An owner is the same if group, kind and name match; its version and uid are updated.
/// - Throws AlreadyOwnedError if another object is its controller.
/// - Throws InvalidArgument if the owner has no apiVersion, kind, name or uid, if it is a
///   PartialObjectMetadata, if it is in another namespace, or if it is namespaced and `owned` is
///   cluster-scoped.
void set_controller_reference(const api::Object& owner, const api::ObjectDraft& owned);

/// Like set_controller_reference(), for an owner that is not the controller; there may be several.
/// If `owner` is already the controller, it stays the controller.
void set_owner_reference(const api::Object& owner, const api::ObjectDraft& owned);

/// Removes the owner, controller or not; returns false if it is not an owner.
bool remove_owner_reference(const api::Object& owner, const api::ObjectDraft& owned);

/// True if `owner` is the controller of `owned`, and not an earlier object of its name:
/// metav1.IsControlledBy, which compares uids.
bool is_controlled_by(const api::Object& owned, const api::Object& owner);

/// True if `owner` is among the owners of `owned`.
bool has_owner_reference(const api::Object& owner, const api::Object& owned);

/// How to treat an existing object without a controller.
enum class Orphans {
  kAdopt,   ///< become its controller, as with controllerutil.SetControllerReference
  kRefuse,  ///< throw NotOwnedError: somebody else created it
};

/// The controller that an object must have, for create_or_update() and create_or_patch().
struct Ownership {
  /// Becomes the controller of the object. Empty: the object is written regardless of its owners,
  /// and its owner references stay.
  LOOKOUT_OPTION api::Object owner = {};
  Orphans orphans = Orphans::kAdopt;
};

/// `owner` must be the controller, or becomes it. It needs a uid, which the server assigns.
inline Ownership owned_by(api::Object owner, Orphans orphans = Orphans::kAdopt) {
  return {std::move(owner), orphans};
}
/// For objects that several controllers write.
inline Ownership owned_by_anyone() { return {}; }

/// Throws AlreadyOwnedError if an object other than the owner controls `object`, and NotOwnedError
/// if `object` has no controller and orphans are refused. Compares uids: an earlier object with the
/// owner's name is another owner, and its objects are left to the garbage collector.
void require_ownership(const api::Object& object, const Ownership& ownership);

/// The owner that is the controller, if there is one; metav1.GetControllerOf. Valid as long as the
/// object.
std::optional<k8s::meta::v1::OwnerReference> controller_of(const api::Object& object);

}  // namespace lookout::controller
