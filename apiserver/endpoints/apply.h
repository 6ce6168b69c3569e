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

/// The change that applies a request's configuration (JSON or YAML) to an object of the expected
/// kind: that of the resource or of its subresource. Throws api::StatusError (400) for other bodies.
/// The change throws 409 for conflicts with other field owners, unless `force` is set, and 400 or 500
/// for a configuration that does not match the type. Repeated keys are rejected (400) or added to
/// `warnings`.
resources::Store::Change parse_apply(const http::Request& request, const resources::Target& target,
                                     const ExpectedKind& expected,
                                     std::shared_ptr<const fields::FieldManager> manager,
                                     const WriteOptions& options,
                                     std::shared_ptr<std::vector<std::string>> warnings);

}  // namespace lookout::apiserver::endpoints
