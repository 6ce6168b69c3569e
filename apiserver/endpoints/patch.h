// Patches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/endpoints/typed_decoding.h"
#include "apiserver/resources/store.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Throws api::StatusError (415) for a patch of a type that custom resources, or other resources, do
/// not have.
void check_patch_type(const http::Request& request, bool custom);

/// The change that applies a request's patch to an object of the expected kind: that of the resource
/// or of its subresource. Throws api::StatusError: 415 for an unknown patch type, 400 for a malformed
/// patch. The change throws 422 if the patch does not apply.
///
/// Unknown and repeated fields, in the patch or new in the result, are rejected (422) or added to
/// `warnings`.
resources::Store::Change parse_patch(const http::Request& request,
                                     const resources::ServedResourcePtr& resource,
                                     const ExpectedKind& expected, FieldValidation validation,
                                     std::shared_ptr<std::vector<std::string>> warnings);

}  // namespace lookout::apiserver::endpoints
