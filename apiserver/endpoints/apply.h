// Server-side apply.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/endpoints/body.h"
#include "apiserver/fields/field_manager.h"
#include "apiserver/resources/store.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// The change that the configuration in a request makes, which is JSON or YAML, to an object of the
/// expected kind: that of the resource, or that of its subresource. Throws
/// api::StatusError: 400 for a body that is neither. What the change throws: 409 for conflicts with
/// other owners of fields, unless `force` takes the fields away from them; 400 and 500 for a
/// configuration that does not fit its type. Keys that it has twice are refused (400) or become
/// `warnings`.
resources::Store::Change parse_apply(const http::Request& request, const resources::Target& target,
                                     const ExpectedKind& expected,
                                     std::shared_ptr<const fields::FieldManager> manager,
                                     const WriteOptions& options,
                                     std::shared_ptr<std::vector<std::string>> warnings);

}  // namespace lookout::apiserver::endpoints
