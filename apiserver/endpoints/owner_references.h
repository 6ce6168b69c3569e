// Removes duplicate owner references.
#pragma once

#include <string>
#include <vector>

#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// The two places where kube-apiserver checks for duplicates: the bodies of creations and updates, and
/// the results of patches.
enum class OwnersFrom { kBody, kPatch };

/// The object without duplicate owner references. Appends kube-apiserver's warning, with the UIDs, if
/// there were any.
api::Object with_distinct_owners(const api::Object& object, OwnersFrom from,
                                 std::vector<std::string>& warnings);

}  // namespace lookout::apiserver::endpoints
