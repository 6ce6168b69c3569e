// What a strict decoder refuses in a patch itself, whatever the object becomes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lookout::apiserver::endpoints {

/// What a patch consists of.
enum class PatchForm { kObject, kOperations };

/// `duplicate field "spec.replicas"` in a patch, which must be valid JSON. Of operations of a JSON
/// patch: `json patch duplicate field "[1].path"`, and `json patch unknown field "[0].foo"`. Each
/// once, in order, at most as many as sigs.k8s.io/json reports.
std::vector<std::string> find_patch_problems(std::string_view json, PatchForm form);

}  // namespace lookout::apiserver::endpoints
