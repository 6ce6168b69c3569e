// Putting requests together: paths, queries, and errors out of answers.
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

/// A request before it meets connections and credentials.
struct Request {
  std::string method = "GET";
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
  std::string accept = "application/json";
  std::string content_type;
  std::string body;
  /// The answer goes on: a watch or a log.
  bool streaming = false;
  bool watch = false;
  bool list = false;
  /// libcurl does not notice that a compressed answer is cut: whoever reads it must.
  bool may_be_compressed = true;
  /// How long the server was asked to go on with a watch; 0: it decides.
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

/// "/api/v1/namespaces/shop/pods/web/status". Throws InvalidArgument for what cannot be part of a
/// path (client-go's IsValidPathSegmentName).
std::string resource_path(const api::Resource& resource, std::string_view ns, std::string_view name,
                          std::string_view subresource);

/// The namespace to write an object to: the client's, or the object's own if the client has none.
/// Throws InvalidArgument if both have one and they differ: a patch would change another object of
/// the same name.
std::string namespace_for(const api::Resource& resource, const std::string& client_namespace,
                          const api::Object& object);

/// Throws InvalidArgument for what is no path (with or without a query) of the server's, and for
/// what would break out of a header.
void check_raw_path(std::string_view path);
/// Whether the answer may go on for ever by its nature: a watch, the log of a pod, a proxy (as
/// kube-apiserver's BasicLongRunningRequestCheck has it).
bool is_long_running(std::string_view path);
void check_header_value(std::string_view value);

void add_list_options(Request& request, const ListOptions& options);
void add_write_options(Request& request, bool dry_run, const std::string& field_manager,
                       const std::string& field_validation);
std::string delete_options_body(const DeleteOptions& options);

/// The error that a failure answer stands for: the Status in it, or, if there is none, one that
/// says what came instead (client-go's NewGenericServerResponse).
api::StatusError error_from_answer(const Request& request, const HttpHead& head, std::string body);

/// Throws api::StatusError if the object, which came with success, is a Status of a failure
/// (client-go's rest.Result.Get).
void throw_if_failure(const api::Object& object);

/// "get pods web".
std::string describe(const Request& request);

/// The beginning of a text that came from outside, fit for a message.
std::string quoted_beginning(std::string_view text, std::size_t limit = 200);

/// "it is empty", or "it begins ..."; nothing of what may be an object.
std::string beginning_of_answer(std::string_view body, std::size_t limit = 200);

/// " (text/html)", or nothing where no type was given.
std::string type_of(const HttpHead& head);

/// The media type without its parameters, in lower case.
std::string media_type(std::string_view content_type);

/// Also where no type was given: it is what was asked for.
bool is_json(const HttpHead& head);

/// Throws api::DecodeError if the answer is neither JSON nor, where it was asked for, protobuf,
/// saying how it begins.
Awaitable<void> expect_objects(const Request& request, bool protobuf, const HttpHead& head,
                               HttpExchange& exchange);

}  // namespace lookout::rest::detail
