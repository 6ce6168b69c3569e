// Content types.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/endpoints/request_info.h"
#include "apiserver/tables/printer.h"
#include "lookout/api/status.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

inline constexpr std::string_view kYamlType = "application/yaml";

/// Server-side apply.
inline constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";

/// The conversion of objects in responses.
enum class Transform {
  kNone,
  kPartialMetadata,  ///< "as=PartialObjectMetadata": type and metadata only
  kTable             ///< "as=Table": columns for people to read
};

struct OutputFormat {
  Transform transform = Transform::kNone;
  /// "as=PartialObjectMetadataList", which is valid only for lists. A watch accepts it, but cannot send
  /// objects.
  bool as_list = false;
  /// Kinds without a protobuf encoding are in JSON anyway.
  bool protobuf = false;
  /// The requested version of meta.k8s.io.
  std::string_view meta_version = "meta.k8s.io/v1";
  /// The object in each row of a table.
  tables::IncludeObject include = tables::IncludeObject::kMetadata;
};

/// The format that the Accept header and includeObject request. `with_watch` adds the streaming
/// types to the types that the 406 lists. Custom resources are in protobuf only as
/// PartialObjectMetadata. `streams`: the request is a watch. Throws api::StatusError: 406, or 400
/// for an invalid includeObject.
OutputFormat negotiate_output(const http::Request& request, bool with_watch, bool custom = false,
                              bool streams = false);

/// The 406 if the client requests metadata of one object but the result is a list, or the opposite.
/// `what` is Go's name of the type (for a list, of its items).
api::StatusError wrong_conversion(bool is_list, std::string_view what);

/// Throws api::StatusError (406) if a client does not accept the only type of a response.
void check_accepts_type(const http::Request& request, std::string_view type);
/// The same for discovery documents. `routed`: like go-restful, also requires an exact type.
void check_accepts_document(const http::Request& request, bool routed);

/// Whether a client prefers the Kubernetes protobuf encoding of a response that is not converted.
bool prefers_protobuf(const http::Request& request);

/// The form of a failure.
enum class FailureForm { kJson, kProtobuf, kIndented };

/// Failures are never converted ("as=Table"). A client that accepts none of the forms gets indented
/// JSON.
FailureForm negotiate_failure(const http::Request& request);

/// Checks that the body is JSON (the default without a Content-Type) or, if `protobuf` is set, in the
/// Kubernetes protobuf encoding. Throws api::StatusError (415).
void negotiate_input(const http::Request& request, bool protobuf);

/// Whether the body is in the Kubernetes protobuf encoding, or in YAML, according to its
/// Content-Type.
bool sends_protobuf(const http::Request& request);
bool sends_yaml(const http::Request& request);

/// One clause of an Accept header.
struct MediaRange {
  std::string type;  // "application/json"
  std::vector<std::pair<std::string, std::string>> parameters;
  double quality = 1;

  std::string_view parameter(std::string_view name) const;
  bool has(std::string_view name) const;
};
/// The clauses of an Accept header, in order of preference.
std::vector<MediaRange> parse_accept(std::string_view header);

/// Whether the type of a clause covers JSON.
bool covers_json(std::string_view type);

/// The media type without its parameters, in lower case.
std::string media_type(std::string_view header);

}  // namespace lookout::apiserver::endpoints
