// Patches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/endpoints/typed_decoding.h"
#include "apiserver/resources/store.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// The change that the patch in a request makes to an object of the expected kind: that of the
/// resource, or that of its subresource. Throws api::StatusError: 415 for an unknown kind
/// of patch, 400 for a patch that is none. What the change throws: 422 for a patch that does not
/// fit the object.
///
/// Unknown and repeated fields, in the patch or new in the result, are refused (422) or become
/// `warnings`.
resources::Store::Change parse_patch(const http::Request& request,
                                     const resources::ServedResourcePtr& resource,
                                     const ExpectedKind& expected, FieldValidation validation,
                                     std::shared_ptr<std::vector<std::string>> warnings);

}  // namespace lookout::apiserver::endpoints
