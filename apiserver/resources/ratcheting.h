// What an update may keep although a new object could not have it.
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

/// Takes errors of the changed object out that are about what the old one had, too, as far as
/// Kubernetes tolerates it: values that older versions accepted. `old_causes` are the errors of the
/// old object.
void tolerate_old_values(const UpdateOf& update, const Causes& old_causes, Causes& causes);

}  // namespace lookout::apiserver::resources
