// Fields that the server stores but does not enforce.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// Warnings for the author of an object whose effect a kube-apiserver would enforce and this server
/// does not: policies and quotas limit nothing, CEL rules are ignored, and so on. Empty for most
/// objects.
std::vector<std::string> unenforced(const resources::ServedResource& resource,
                                    const api::Object& object);

}  // namespace lookout::apiserver::endpoints
