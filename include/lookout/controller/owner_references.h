// The owners of an object: metadata.ownerReferences.
#pragma once

#include <optional>

#include "lookout/api/draft.h"
#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::controller {

/// The object has another controller already; controllerutil.AlreadyOwnedError.
class AlreadyOwnedError : public Error {
 public:
  using Error::Error;
};

/// Writes into `owned` that `owner` is its controller, so that the owner's controller is notified
/// of its changes and the garbage collector deletes it with its owner. Rules and errors are those
/// of controller-runtime's controllerutil.SetControllerReference:
/// - An owner is the same if group, kind and name are; its version and uid are refreshed.
/// - Throws AlreadyOwnedError if another object is its controller.
/// - Throws InvalidArgument if the owner has no apiVersion, kind, name or uid, if it lives in
///   another namespace, or if it lives in one and `owned` does not.
void set_controller_reference(const api::Object& owner, const api::ObjectDraft& owned);

/// The same for an owner that is not the controller; there may be several. If `owner` is already
/// the controller, it stays the controller.
void set_owner_reference(const api::Object& owner, const api::ObjectDraft& owned);

/// Takes the owner out, controller or not; false if it is none.
bool remove_owner_reference(const api::Object& owner, const api::ObjectDraft& owned);

/// Whether `owner` is among the owners of `owned`.
bool has_owner_reference(const api::Object& owner, const api::Object& owned);

/// The owner that is the controller, if there is one; metav1.GetControllerOf. Good as long as the
/// object.
std::optional<k8s::meta::v1::OwnerReference> controller_of(const api::Object& object);

}  // namespace lookout::controller
