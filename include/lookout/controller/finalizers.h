// Finalizers: metadata.finalizers, work to do before an object is deleted.
#pragma once

#include <string_view>

#include "lookout/api/draft.h"
#include "lookout/api/object.h"

namespace lookout::controller {

/// Deleting an object with finalizers only sets its deletionTimestamp; the object is deleted when
/// the last finalizer is removed. controller-runtime's controllerutil: both functions return true
/// if anything changed.
bool add_finalizer(const api::ObjectDraft& draft, std::string_view finalizer);
bool remove_finalizer(const api::ObjectDraft& draft, std::string_view finalizer);
bool has_finalizer(const api::Object& object, std::string_view finalizer);

/// True if the object has been deleted and waits for its finalizers.
bool is_being_deleted(const api::Object& object);

}  // namespace lookout::controller
