// Fields that the server stores but does not enforce.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// Warnings about the parts of an object that kube-apiserver would enforce and this server does not:
/// admission policies, match conditions of webhooks, API aggregation and CEL rules. Empty for most
/// objects.
std::vector<std::string> unenforced(const resources::ServedResource& resource,
                                    const api::Object& object);

}  // namespace lookout::apiserver::endpoints
