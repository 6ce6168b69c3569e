// Content types.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/endpoints/request_info.h"
#include "apiserver/http/message.h"

namespace lookout::apiserver::endpoints {

/// Server-side apply, the one kind of patch that is not served.
inline constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";

/// What becomes of objects on their way out.
enum class Transform {
  kNone,
  kPartialMetadata  ///< "as=PartialObjectMetadata": type and metadata only
};

struct OutputFormat {
  Transform transform = Transform::kNone;
  bool pretty = false;
};

/// From the Accept header. `with_watch` adds the streaming types to those that are named when there
/// is nothing in common; `is_list` says that metadata are asked for as a list. Throws
/// api::StatusError (406).
OutputFormat negotiate_output(const http::Request& request, bool with_watch, bool is_list);

/// Demands that the body is JSON (which it is without a Content-Type). Throws api::StatusError
/// (415).
void negotiate_input(const http::Request& request);

/// One clause of an Accept header.
struct MediaRange {
  std::string type;  // "application/json"
  std::vector<std::pair<std::string, std::string>> parameters;
  double quality = 1;

  std::string_view parameter(std::string_view name) const;
};
/// In the order of preference.
std::vector<MediaRange> parse_accept(std::string_view header);

/// The media type without its parameters, in lower case.
std::string media_type(std::string_view header);

}  // namespace lookout::apiserver::endpoints
