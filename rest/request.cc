#include "rest/request.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "lookout/base/ascii.h"
#include "lookout/base/json_text.h"
#include "rest/encodings.h"

namespace lookout::rest::detail {
namespace {

/// Encodes the text as a path segment.
std::string segment(std::string_view what, std::string_view name) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of("/%") != std::string_view::npos) {
    throw InvalidArgument(
        fmt::format("invalid {} {}: it may not be empty, '.' or '..' nor contain '/' or '%'", what,
                    quoted_beginning(name)));
  }
  return base::percent_encode(name);
}

/// The reason in a Status for the status code.
std::string reason_of(const Request& request, int code) {
  return api::StatusError::generic(code, request.method, {}, {}, {}, {}, 0, true).status().reason;
}

/// For a redirect: its target, without parts that may be secret.
std::string target_of_redirect(const HttpHead& head) {
  std::string_view address = head.location;
  address = address.substr(0, address.find_first_of("?#"));
  const std::size_t scheme = address.find("//");
  const std::size_t host = scheme == std::string_view::npos ? 0 : scheme + 2;
  const std::size_t user = address.substr(0, address.find('/', host)).rfind('@');
  if (user != std::string_view::npos) address = address.substr(user + 1);
  if (address.empty()) return {};
  return fmt::format("; it redirects to {}, which the client does not follow",
                     quoted_beginning(address));
}

/// A hint for a 404 if the server does not serve the resource.
std::string hint_of_unknown(const Request& request) {
  if (request.resource.starts_with('/')) return {};
  if (!request.subresource.empty()) {
    return fmt::format(
        "; the server does not know {}/{} in this version of the API: is the resource installed, "
        "and "
        "does it have this subresource?",
        request.resource, request.subresource);
  }
  return fmt::format("; the server does not know {} in this version of the API: is it installed?",
                     request.resource);
}

/// kube-apiserver sends a Status with this message if it does not serve the resource.
constexpr std::string_view kUnknownResource = "the server could not find the requested resource";

/// The object in the body of an error response; empty if there is none.
api::Object decode_status(const HttpHead& head, std::string& body) {
  if (is_protobuf(head)) return api::ProtobufDecoder().decode(body);
  return is_json(head) ? api::JsonDecoder().decode(body) : api::Object();
}

}  // namespace

std::string Request::target() const {
  std::string out = path;
  char separator = path.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [key, value] : query) {
    out += separator;
    out += base::percent_encode(key) + '=' + base::percent_encode(value);
    separator = '&';
  }
  return out;
}

std::string resource_path(const api::Resource& resource, std::string_view ns, std::string_view name,
                          std::string_view subresource) {
  // The other parts are in the path only if these are present.
  if (!resource.group.empty()) segment("API group", resource.group);
  segment("API version", resource.version);
  std::string out = resource.root_path();
  if (!ns.empty() && resource.namespaced) out += "/namespaces/" + segment("namespace", ns);
  out += '/' + segment("resource", resource.plural);
  if (!name.empty()) out += '/' + segment("name", name);
  while (!subresource.empty()) {
    const std::size_t slash = subresource.find('/');
    const std::string_view part = subresource.substr(0, slash);
    if (segment("subresource", part) != part) {
      throw InvalidArgument(fmt::format("invalid subresource {}", quoted_beginning(part)));
    }
    out.append(1, '/').append(part);
    subresource.remove_prefix(slash == std::string_view::npos ? subresource.size() : slash + 1);
  }
  return out;
}

std::string namespace_for(const api::Resource& resource, const std::string& client_namespace,
                          const api::Object& object) {
  const std::string_view own = object.ns();
  if (client_namespace.empty()) return std::string(own);
  if (resource.namespaced && !own.empty() && own != client_namespace) {
    throw InvalidArgument(fmt::format("{} {} is in the namespace {}, the client writes to {}",
                                      resource.qualified_name(), object.name(), own,
                                      client_namespace));
  }
  return client_namespace;
}

void check_raw_path(std::string_view path) {
  const bool printable =
      std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c < 0x7F && c != '#'; });
  // Any other beginning would continue the host name.
  if (!path.starts_with('/') || !printable) {
    throw InvalidArgument(fmt::format(
        "invalid path {}: it must begin with '/', and everything but printable ASCII must be "
        "percent-encoded",
        quoted_beginning(path)));
  }
}

bool is_long_running(std::string_view path) {
  const std::size_t question = path.find('?');
  std::string_view query = question == std::string_view::npos ? "" : path.substr(question + 1);
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    if (pair == "watch" || pair == "watch=true" || pair == "watch=1") return true;
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
  }
  path = path.substr(0, question);
  for (const std::string_view name : {"/log", "/attach", "/exec", "/portforward", "/proxy"}) {
    if (path.ends_with(name)) return true;
  }
  return path.find("/proxy/") != std::string_view::npos;
}

void check_header_value(std::string_view value) {
  if (std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }))
    throw InvalidArgument(fmt::format("invalid header value {}", quoted_beginning(value)));
}

void add_list_options(Request& request, const ListOptions& options) {
  request.add_query("labelSelector", options.label_selector);
  request.add_query("fieldSelector", options.field_selector);
  request.add_query("resourceVersion", options.resource_version);
  request.add_query("resourceVersionMatch", options.resource_version_match);
  if (options.limit > 0) request.add_query("limit", std::to_string(options.limit));
  request.add_query("continue", options.continue_token);
  if (options.timeout.count() > 0)
    request.add_query("timeoutSeconds", std::to_string(options.timeout.count()));
  if (options.allow_watch_bookmarks) request.add_query("allowWatchBookmarks", "true");
  if (options.send_initial_events)
    request.add_query("sendInitialEvents", *options.send_initial_events ? "true" : "false");
}

void add_write_options(Request& request, bool dry_run, const std::string& field_manager,
                       const std::string& field_validation) {
  if (dry_run) request.add_query("dryRun", "All");
  request.add_query("fieldManager", field_manager);
  request.add_query("fieldValidation", field_validation);
}

std::string_view name_of(PropagationPolicy policy) {
  // In the order of PropagationPolicy.
  constexpr std::array kNames = {"", "Orphan", "Background", "Foreground"};
  return kNames.at(static_cast<std::size_t>(policy));
}

std::string delete_options_body(const DeleteOptions& options) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  base::write_text(writer, "kind", "DeleteOptions");
  base::write_text(writer, "apiVersion", "v1");
  if (options.grace_period_seconds) {
    writer.Key("gracePeriodSeconds");
    writer.Int64(*options.grace_period_seconds);
  }
  if (!options.precondition_uid.empty() || !options.precondition_resource_version.empty()) {
    writer.Key("preconditions");
    writer.StartObject();
    if (!options.precondition_uid.empty())
      base::write_text(writer, "uid", options.precondition_uid);
    if (!options.precondition_resource_version.empty())
      base::write_text(writer, "resourceVersion", options.precondition_resource_version);
    writer.EndObject();
  }
  if (options.propagation_policy != PropagationPolicy::kDefault)
    base::write_text(writer, "propagationPolicy", name_of(options.propagation_policy));
  if (options.dry_run) {
    writer.Key("dryRun");
    writer.StartArray();
    writer.String("All");
    writer.EndArray();
  }
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

api::StatusError error_from_answer(const Request& request, const HttpHead& head, std::string body) {
  std::string beginning = body.empty() ? "an empty body" : quoted_beginning(body);
  if (auto status = api::Status::from(decode_status(head, body))) {
    if (status->code == 0) status->code = head.status;
    if (status->retry_after_seconds == 0 && head.retry_after) {
      status->has_details = true;
      status->retry_after_seconds = static_cast<std::int32_t>(head.retry_after->count());
    }
    const std::string hint = status->message == kUnknownResource ? hint_of_unknown(request) : "";
    return {std::move(*status), hint};
  }
  api::Status status;
  status.code = head.status;
  status.reason = reason_of(request, head.status);
  status.has_details = true;
  status.kind = request.resource;
  status.name = request.name;
  if (head.retry_after)
    status.retry_after_seconds = static_cast<std::int32_t>(head.retry_after->count());
  status.causes.push_back({"UnexpectedServerResponse", beginning, ""});
  status.message =
      fmt::format("the server answered {} with HTTP {} and no Kubernetes Status but {}",
                  describe(request), head.status, beginning);
  std::string hint;
  if (head.status == 404) hint = hint_of_unknown(request);
  if (head.status >= 300 && head.status < 400) hint = target_of_redirect(head);
  return {std::move(status), hint};
}

void throw_if_failure(const api::Object& object) {
  auto status = api::Status::from(object);
  if (status && status->status != "Success") throw api::StatusError(std::move(*status));
}

std::string quoted_beginning(std::string_view text, std::size_t limit) {
  std::string out = "\"";
  for (const char c : text.substr(0, limit)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + (text.size() > limit ? "\"..." : "\"");
}

std::string describe(const Request& request) {
  return request.verb + " " + request.resource + (request.name.empty() ? "" : " " + request.name);
}

std::string beginning_of_answer(std::string_view body, std::size_t limit) {
  if (body.empty()) return "it is empty";
  // A partial object may be a Secret, too.
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (body[first] == '{' || body[first] == '['))
    return "it begins like JSON";
  const auto is_binary = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r' && c != '\n';
  };
  if (const auto begin = body.substr(0, limit); std::any_of(begin.begin(), begin.end(), is_binary))
    return "it is not a string";
  return "it begins " + quoted_beginning(body, limit);
}

std::string type_of(const HttpHead& head) {
  return head.content_type.empty() ? "" : fmt::format(" ({})", head.content_type);
}

std::string media_type(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  std::string out(type);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool is_json(const HttpHead& head) {
  const std::string type = media_type(head.content_type);
  return type.empty() || type == "application/json";
}

Awaitable<void> expect_objects(const Request& request, bool protobuf, const HttpHead& head,
                               HttpExchange& exchange) {
  if (is_json(head) || (protobuf && is_protobuf(head))) co_return;
  const std::string body = co_await exchange.read();
  throw api::DecodeError(fmt::format("{}: expected {}, got{}; {}", describe(request),
                                     protobuf ? "protobuf or JSON" : "JSON", type_of(head),
                                     beginning_of_answer(body)));
}

}  // namespace lookout::rest::detail

namespace lookout::rest {

bool is_object_missing(const std::exception& e) {
  if (!api::is_not_found(e) || api::is_unexpected_server_error(e)) return false;
  const auto* const answer = dynamic_cast<const api::StatusError*>(&e);
  return answer == nullptr || answer->status().message != detail::kUnknownResource;
}

}  // namespace lookout::rest
