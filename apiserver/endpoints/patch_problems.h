// Repeated fields in patches, and unknown members of JSON patch operations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lookout::apiserver::endpoints {

/// An object (merge patches), or a list of operations (JSON patches).
enum class PatchForm { kObject, kOperations };

/// `duplicate field "spec.replicas"` in a patch, which must be valid JSON. For the operations of a
/// JSON patch: `json patch duplicate field "[1].path"`, and `json patch unknown field "[0].foo"`.
/// Each problem occurs once, in order; the number is limited as in sigs.k8s.io/json.
std::vector<std::string> find_patch_problems(std::string_view json, PatchForm form);

}  // namespace lookout::apiserver::endpoints
