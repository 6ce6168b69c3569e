// The name of an object in the output of the commands.
#pragma once

#include <string>
#include <string_view>

#include "lookout/api/resource.h"

namespace lookout::cmd {

/// "pod/web-1", "deployment.apps/web": what `kubectl get -o name` prints.
std::string name_of(const api::Resource& resource, std::string_view name);

}  // namespace lookout::cmd
