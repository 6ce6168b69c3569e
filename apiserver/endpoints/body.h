// Objects, patches and options in the bodies of requests.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/endpoints/typed_decoding.h"
#include "apiserver/json.h"
#include "apiserver/resources/served_resource.h"
#include "apiserver/resources/store.h"
#include "lookout/api/object.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// The object in a body, JSON or protobuf: of the resource's kind, in the resource's version, or
/// without a type, which it is then given. Throws api::StatusError (400) with the API server's
/// messages.
api::Object decode_object(const http::Request& request, const resources::ServedResource& resource);

/// The server reads metadata itself, so its fields must be what they should be. Throws
/// api::StatusError (400).
void check_metadata(const api::Object& object, const resources::ServedResource& resource);

/// Any object (a binding, an eviction, a review). Throws api::StatusError (400).
api::Object decode_any_object(const http::Request& request, std::string_view kind);

/// Any JSON text. Throws api::StatusError (400), `prefix` and Go's message.
json::Document decode_json(const std::string& body, std::string_view prefix);

struct WriteOptions {
  bool dry_run = false;
  FieldValidation field_validation = FieldValidation::kWarn;
  /// Server-side apply takes fields away from others.
  bool force = false;
};
/// The parameters of a create, an update or a patch; `kind` is "CreateOptions" or such. Throws
/// api::StatusError (422) for values that are not allowed.
WriteOptions parse_write_options(const http::Request& request, std::string_view kind);

/// The DeleteOptions in `body`. `path` is their place in the request's body ("deleteOptions."), with
/// which errors name a field; messages about a field's type begin with `prefix`. Throws
/// api::StatusError: 400 for a value of the wrong type, 422 for one that is not allowed.
resources::DeleteOptions delete_options_of(const api::Value& body, std::string_view path = "",
                                           std::string_view prefix = "");

/// From the body, or, without one, from the parameters.
resources::DeleteOptions parse_delete_options(const http::Request& request);

}  // namespace lookout::apiserver::endpoints
