// The objects of API priority and fairness that every cluster has.
#pragma once

#include <string_view>
#include <vector>

#include "lookout/api/object.h"

namespace lookout::apiserver::bootstrap {

/// The priority levels and flow schemas of flow_control.yaml.
const std::vector<api::Object>& flow_objects();

/// Whether the server keeps the object of this name as it is in flow_control.yaml.
bool is_mandatory_flow_object(std::string_view name);

/// The text of apiserver/bootstrap/flow_control.yaml.
std::string_view flow_control_text();

}  // namespace lookout::apiserver::bootstrap
