// An OpenAPI v2 document in gnostic's protobuf encoding.
#pragma once

#include <string>

#include "apiserver/json.h"

namespace lookout::apiserver::openapi {

/// openapi.v2.Document of github.com/google/gnostic: the form in which Go clients ask for the
/// document. Extensions are carried as text, in JSON, which is YAML too.
std::string encode_gnostic(const json::Value& document);

}  // namespace lookout::apiserver::openapi
