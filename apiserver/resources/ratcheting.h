// Ratcheting validation: invalid values that an update may keep.
#pragma once

#include <string_view>

#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// The objects of an update, and their resource.
struct UpdateOf {
  std::string_view plural;
  const api::Object& object;
  const api::Object& old;
};

/// Removes errors that the old object also has, if Kubernetes tolerates them: values that older versions
/// accepted. `old_causes` are the errors of the old object.
void tolerate_old_values(const UpdateOf& update, const Causes& old_causes, Causes& causes);

}  // namespace lookout::apiserver::resources
