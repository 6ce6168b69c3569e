// Content types.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/endpoints/request_info.h"
#include "apiserver/tables/printer.h"
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
  /// Where an object has such an encoding; otherwise JSON.
  bool protobuf = false;
  /// The requested version of meta.k8s.io.
  std::string_view meta_version = "meta.k8s.io/v1";
  /// The object in each row of a table.
  tables::IncludeObject include = tables::IncludeObject::kMetadata;
};

/// From the Accept header, and includeObject. `with_watch` adds the streaming types to those that
/// are named when there is nothing in common; `is_list` says that metadata are asked for as a list.
/// Custom resources come in protobuf only if nothing but metadata is asked for. `what` is Go's name
/// of what is asked for (of one object of a list), for messages; `streams` is for watches. Throws
/// api::StatusError (406, or 400 for an includeObject that is none).
OutputFormat negotiate_output(const http::Request& request, bool with_watch, bool is_list,
                              bool custom = false, const std::string& what = {},
                              bool streams = false);

/// The form of a failure.
enum class FailureForm { kJson, kProtobuf, kIndented };

/// No failure is converted ("as=Table"), and a client that accepts none of the forms gets JSON for
/// people.
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
/// In the order of preference.
std::vector<MediaRange> parse_accept(std::string_view header);

/// Whether the type of a clause covers JSON.
bool covers_json(std::string_view type);

/// The media type without its parameters, in lower case.
std::string media_type(std::string_view header);

}  // namespace lookout::apiserver::endpoints
