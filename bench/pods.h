// The pods that benchmarks work on: those of tests/support/realistic_pods.h as a server would send
// them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lookout/api/object.h"

namespace lookout::bench {

/// A running pod with status, defaults and managedFields: about 6 KB of JSON.
std::string pod_json(std::size_t number);

/// A PodList of these.
std::string pod_list_json(std::size_t count);

/// Decoded ones, spread over 100 namespaces. Made once for each count and kept.
const std::vector<api::Object>& pods(std::size_t count);

}  // namespace lookout::bench
