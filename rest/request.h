// Requests: paths, queries, and errors from responses.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/status.h"
#include "lookout/rest/detail/http_transport.h"
#include "lookout/rest/options.h"

namespace lookout::rest::detail {

/// A request without connection and credentials.
struct Request {
  std::string method = "GET";
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
  std::string accept = "application/json";
  std::string content_type;
  std::string body;
  /// The response is a stream: a watch or a log.
  bool streaming = false;
  bool watch = false;
  bool list = false;
  /// libcurl does not detect a truncated compressed response, so the reader must.
  bool may_be_compressed = true;
  /// The requested duration of a watch; 0: the server's default.
  std::chrono::milliseconds lasts{0};
  /// For messages: "list", "pods", "web-1".
  std::string verb;
  std::string resource;
  std::string name;
  std::string subresource;

  void add_query(std::string key, std::string value) {
    if (!value.empty()) query.emplace_back(std::move(key), std::move(value));
  }
  /// Path and encoded query.
  std::string target() const;
};

/// "/api/v1/namespaces/shop/pods/web/status". Throws InvalidArgument for invalid path segments
/// (client-go's IsValidPathSegmentName).
std::string resource_path(const api::Resource& resource, std::string_view ns, std::string_view name,
                          std::string_view subresource);

/// The namespace to write an object to: the client's, or the object's own if the client has none.
/// Throws InvalidArgument if both have one and they differ: a patch would change another object of
/// the same name.
std::string namespace_for(const api::Resource& resource, const std::string& client_namespace,
                          const api::Object& object);

/// Throws InvalidArgument if it is not a path with an optional query, or has invalid characters.
void check_raw_path(std::string_view path);
/// Whether the response may be endless: a watch, a pod's log, a proxy (kube-apiserver's
/// BasicLongRunningRequestCheck).
bool is_long_running(std::string_view path);
void check_header_value(std::string_view value);

void add_list_options(Request& request, const ListOptions& options);
void add_write_options(Request& request, bool dry_run, const std::string& field_manager,
                       const std::string& field_validation);
/// "Orphan"; empty for kDefault.
std::string_view name_of(PropagationPolicy policy);
std::string delete_options_body(const DeleteOptions& options);

/// The error of an error response: its Status, or else a generic one that describes the response
/// (client-go's NewGenericServerResponse).
api::StatusError error_from_answer(const Request& request, const HttpHead& head, std::string body);

/// Throws api::StatusError if the object of a successful response is a failure Status (client-go's
/// rest.Result.Get).
void throw_if_failure(const api::Object& object);

/// "get pods web".
std::string describe(const Request& request);

/// The quoted beginning of an untrusted text, for messages.
std::string quoted_beginning(std::string_view text, std::size_t limit = 200);

/// "it is empty" or "it begins ..."; repeats nothing of a possible object.
std::string beginning_of_answer(std::string_view body, std::size_t limit = 200);

/// " (text/html)", or empty without a content type.
std::string type_of(const HttpHead& head);

/// The media type without its parameters, in lower case.
std::string media_type(std::string_view content_type);

/// Also true without a content type, as JSON was requested.
bool is_json(const HttpHead& head);

/// Throws api::DecodeError, with the beginning of the response, if it is neither JSON nor, if
/// requested, protobuf.
Awaitable<void> expect_objects(const Request& request, bool protobuf, const HttpHead& head,
                               HttpExchange& exchange);

}  // namespace lookout::rest::detail
