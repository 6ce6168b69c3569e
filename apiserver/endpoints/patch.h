// Patches.
#pragma once

#include <string>

#include "apiserver/http/message.h"
#include "apiserver/registry/store.h"

namespace lookout::apiserver::endpoints {

/// The change that the patch in a request makes. Throws api::StatusError: 415 for an unknown kind
/// of patch, 400 for a patch that is none. What the change throws: 422 for a patch that does not
/// fit the object.
registry::Store::Change parse_patch(const http::Request& request,
                                    const registry::ServedResourcePtr& resource);

}  // namespace lookout::apiserver::endpoints
