// An OpenAPI v2 document in gnostic's protobuf encoding.
#pragma once

#include <string>

#include "apiserver/json.h"

namespace lookout::apiserver::openapi {

/// openapi.v2.Document of github.com/google/gnostic, which Go clients request. Extensions are encoded
/// as JSON text, which is also YAML.
std::string encode_gnostic(const json::Value& document);

}  // namespace lookout::apiserver::openapi
