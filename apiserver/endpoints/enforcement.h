// Fields that the server stores but does not enforce.
#pragma once

#include <string>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::endpoints {

/// What a kube-apiserver would do with an object that this server only keeps, in words for whoever
/// writes it: policies and quotas hold nobody back, rules in CEL are not looked at, and so on. Empty
/// for most objects.
std::vector<std::string> unenforced(const resources::ServedResource& resource,
                                    const api::Object& object);

}  // namespace lookout::apiserver::endpoints
