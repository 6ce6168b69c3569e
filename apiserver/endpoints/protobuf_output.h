// Objects, lists and events in the Kubernetes protobuf encoding, as bodies.
#pragma once

#include <memory>
#include <string>

#include "apiserver/endpoints/output.h"

namespace lookout::apiserver::endpoints {

/// "application/vnd.kubernetes.protobuf", or JSON; what a watch adds to it.
std::string content_type_of(const OutputFormat& format, bool watch);

/// Makes the object the body; false for an object that has no protobuf encoding.
bool set_protobuf_body(const api::Object& object, http::Response& response);

/// As list_stream(). A list in protobuf says how long it is before its items come, so all objects
/// are looked at twice; in memory there is one piece at a time.
std::unique_ptr<http::BodyStream> protobuf_list_stream(
    resources::ServedResourcePtr resource, ListHead head,
    std::unique_ptr<storage::ObjectSource> source, const OutputFormat& format);

}  // namespace lookout::apiserver::endpoints
