// Objects, lists and events in the Kubernetes protobuf encoding, as bodies.
#pragma once

#include <memory>
#include <string>

#include "apiserver/endpoints/output.h"

namespace lookout::apiserver::endpoints {

/// "application/vnd.kubernetes.protobuf" or JSON, with the suffix of watches.
std::string content_type_of(const OutputFormat& format, bool watch);

/// Encodes the object as the body; false if it has no protobuf encoding.
bool set_protobuf_body(const api::Object& object, http::Response& response);

/// Like list_stream(). In protobuf, a list's size precedes its items, so this reads all objects
/// first and encodes them twice. All objects are in memory, but only one encoded piece.
std::unique_ptr<http::BodyStream> protobuf_list_stream(
    resources::ServedResourcePtr resource, ListHead head,
    std::unique_ptr<storage::ObjectSource> source, const OutputFormat& format);

}  // namespace lookout::apiserver::endpoints
