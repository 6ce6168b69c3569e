// Work to do before an object is deleted: metadata.finalizers.
#pragma once

#include <string_view>

#include "lookout/api/draft.h"
#include "lookout/api/object.h"

namespace lookout::controller {

/// An object with finalizers is not deleted but marked with a deletionTimestamp, until the last of
/// them is taken out. controller-runtime's controllerutil: both return whether anything changed.
bool add_finalizer(const api::ObjectDraft& draft, std::string_view finalizer);
bool remove_finalizer(const api::ObjectDraft& draft, std::string_view finalizer);
bool has_finalizer(const api::Object& object, std::string_view finalizer);

/// Whether somebody has deleted the object, and it waits for its finalizers.
bool is_being_deleted(const api::Object& object);

}  // namespace lookout::controller
