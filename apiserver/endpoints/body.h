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

struct DecodedBody {
  api::Object object;
  /// Warnings for the client about unknown and repeated fields.
  std::vector<std::string> warnings;
};

/// The object in a JSON or protobuf body. It must have the expected kind and version, or no type,
/// which is then set. Throws api::StatusError (400) with the API server's messages.
DecodedBody decode_object(const http::Request& request, const ExpectedKind& expected,
                          FieldValidation validation);

/// Any JSON text. Throws api::StatusError (400), `prefix` and Go's message.
json::Document decode_json(const std::string& body, std::string_view prefix);

struct WriteOptions {
  bool dry_run = false;
  FieldValidation field_validation = FieldValidation::kWarn;
  /// Server-side apply takes over other managers' fields.
  bool force = false;
};
/// The parameters of a create, an update or a patch; `kind` is "CreateOptions" or such. Throws
/// api::StatusError (422) for values that are not allowed.
WriteOptions parse_write_options(const http::Request& request, std::string_view kind);

/// The DeleteOptions in `body`, whose fields must have the right types. Throws api::StatusError
/// (422) for a value that is not allowed.
resources::DeleteOptions delete_options_of(const api::Value& body);

/// The DeleteOptions in the body or, without a body, in the parameters.
resources::DeleteOptions parse_delete_options(const http::Request& request);

}  // namespace lookout::apiserver::endpoints
