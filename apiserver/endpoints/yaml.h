// Bodies in YAML: what clients send in it becomes JSON before anybody else sees it, and what they
// want in it is turned into it at the end.
#pragma once

#include <string>

#include "apiserver/http/message.h"
#include "apiserver/json.h"

namespace lookout::apiserver::endpoints {

/// Makes JSON of a body in application/yaml; a body in another form stays. Throws
/// api::StatusError (400) if the body is no YAML.
void turn_body_into_json(http::Request& request);

/// Whether YAML is the form that the client likes best. Watches are not to be had in it.
bool prefers_yaml(const http::Request& request);

/// Makes YAML of an answer in JSON. It is read to its end first.
http::Awaitable<void> turn_into_yaml(http::Response& response);

/// As Go's sigs.k8s.io/yaml writes it: members by name, elements of an array not indented.
std::string to_yaml(const json::Value& value);

}  // namespace lookout::apiserver::endpoints
