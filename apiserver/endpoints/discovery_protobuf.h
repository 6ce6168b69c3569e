// Aggregated discovery in the Kubernetes protobuf encoding.
#pragma once

#include <string>

#include "apiserver/json.h"

namespace lookout::apiserver::endpoints {

/// Encodes an APIGroupDiscoveryList of apidiscovery.k8s.io/v2, with its envelope.
std::string encode_group_discovery(const json::Value& list);

}  // namespace lookout::apiserver::endpoints
