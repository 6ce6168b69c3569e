// Bodies in YAML: what clients send in it becomes JSON before anybody else sees it, and what they
// want in it is turned into it at the end.
#pragma once

#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Makes JSON of a body in application/yaml; a body in another form stays. Throws
/// api::StatusError (400) if the body is no YAML.
void turn_body_into_json(http::Request& request);

/// Whether YAML is the form that the client likes best. Watches are not to be had in it.
bool prefers_yaml(const http::Request& request);

/// Makes YAML of an answer in JSON, which it reads to its end first. What is nested too deeply for
/// YAML stays JSON.
Awaitable<void> turn_into_yaml(http::Response& response);

}  // namespace lookout::apiserver::endpoints
