// Owner references that an object has twice.
#pragma once

#include <string>
#include <vector>

#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// Where kube-apiserver looks for equal owner references: in the bodies of creations and updates, and
/// in what patches make of objects.
enum class OwnersFrom { kBody, kPatch };

/// The object with each of its owner references once. Appends kube-apiserver's warning, with the
/// UIDs, if one was there twice.
api::Object with_distinct_owners(const api::Object& object, OwnersFrom from,
                                 std::vector<std::string>& warnings);

}  // namespace lookout::apiserver::endpoints
