#include "lookout/api/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/validation.h"
#include "lookout/base/ascii.h"
#include "lookout/base/json_strings.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::api {
namespace {

constexpr std::string_view kTooLargeResourceVersion = "Too large resource version";
constexpr std::string_view kCauseTooLargeResourceVersion = "ResourceVersionTooLarge";
constexpr std::string_view kCauseUnexpectedResponse = "UnexpectedServerResponse";

constexpr std::array kKnownReasons = {reason::kUnauthorized,
                                      reason::kForbidden,
                                      reason::kNotFound,
                                      reason::kAlreadyExists,
                                      reason::kConflict,
                                      reason::kGone,
                                      reason::kInvalid,
                                      reason::kServerTimeout,
                                      reason::kStoreReadError,
                                      reason::kTimeout,
                                      reason::kTooManyRequests,
                                      reason::kBadRequest,
                                      reason::kMethodNotAllowed,
                                      reason::kNotAcceptable,
                                      reason::kRequestEntityTooLarge,
                                      reason::kUnsupportedMediaType,
                                      reason::kInternalError,
                                      reason::kExpired,
                                      reason::kServiceUnavailable};

/// "pods", "deployments.apps".
std::string qualified(std::string_view group, std::string_view name) {
  return group.empty() ? std::string(name) : fmt::format("{}.{}", name, group);
}

Status failure(std::int32_t code, std::string_view reason, std::string message) {
  Status status;
  status.code = code;
  status.reason = reason;
  status.message = std::move(message);
  return status;
}

/// A failure with details; `kind` is the resource, or the kind of an invalid object.
Status failure_about(std::int32_t code, std::string_view reason, std::string message,
                     std::string_view group, std::string_view kind, std::string_view name) {
  Status status = failure(code, reason, std::move(message));
  status.group = group;
  status.kind = kind;
  status.name = name;
  status.has_details = true;
  return status;
}

std::string what_of(const Status& status) {
  if (!status.message.empty()) return status.message;
  return fmt::format("the server answered {}{}{}", status.code, status.reason.empty() ? "" : " ",
                     status.reason);
}

const Status* status_of(const std::exception& e) {
  const auto* error = dynamic_cast<const StatusError*>(&e);
  return error == nullptr ? nullptr : &error->status();
}

bool has_reason(const std::exception& e, std::string_view reason) {
  return reason_for_error(e) == reason;
}

/// Matches the reason, or the code if the reason is unknown.
bool has_reason_or_code(const std::exception& e, std::string_view reason, std::int32_t code) {
  const Status* status = status_of(e);
  if (status == nullptr) return false;
  if (status->reason == reason) return true;
  return status->code == code && std::find(kKnownReasons.begin(), kKnownReasons.end(),
                                           status->reason) == kKnownReasons.end();
}

/// Matches the reason, or the code with any reason, as client-go's older predicates do.
bool has_reason_or_any_with_code(const std::exception& e, std::string_view reason,
                                 std::int32_t code) {
  const Status* status = status_of(e);
  return status != nullptr && (status->reason == reason || status->code == code);
}

/// NewGenericServerResponse's error for a code; without a message, the server's is kept.
struct GenericAnswer {
  std::int32_t code;
  std::string_view reason;
  std::string_view message;
};
constexpr std::array<GenericAnswer, 12> kGenericAnswers = {{
    {400, reason::kBadRequest, "the server rejected our request for an unknown reason"},
    {401, reason::kUnauthorized, "the server has asked for the client to provide credentials"},
    {403, reason::kForbidden, ""},
    {404, reason::kNotFound, "the server could not find the requested resource"},
    {405, reason::kMethodNotAllowed,
     "the server does not allow this method on the requested resource"},
    {406, reason::kNotAcceptable, ""},
    {409, reason::kConflict, "the server reported a conflict"},
    {415, reason::kUnsupportedMediaType, ""},
    {422, reason::kInvalid, "the server rejected our request due to an error in our request"},
    {429, reason::kTooManyRequests,
     "the server has received too many requests and has asked us to try again later"},
    {503, reason::kServiceUnavailable, "the server is currently unable to handle the request"},
    {504, reason::kTimeout,
     "the server was unable to return a response in the time allotted, but may still be processing "
     "the request"},
}};

}  // namespace

std::optional<Status> Status::from(const Object& object) {
  if (object.kind() != "Status" ||
      (object.api_version() != "v1" && object.api_version() != "meta.k8s.io/v1"))
    return std::nullopt;
  const k8s::meta::v1::Status view(object);
  Status out;
  out.status = view.status();
  out.code = view.code().value_or(0);
  out.reason = view.reason();
  out.message = view.message();
  out.continue_token = object["metadata"]["continue"].as_string();
  if (const auto details = view.details(); details) {
    out.has_details = true;
    out.name = details.name();
    out.group = details.group();
    out.kind = details.kind();
    out.uid = details.uid();
    out.retry_after_seconds = details.retry_after_seconds().value_or(0);
    for (const auto cause : details.causes()) {
      out.causes.push_back(
          {std::string(cause.reason()), std::string(cause.message()), std::string(cause.field())});
    }
  }
  return out;
}

Object Status::to_object() const {
  detail::FlatWriter writer;
  const auto text = [&](std::string_view field, std::string_view value) {
    if (value.empty()) return;
    writer.key(field);
    writer.string(repair_utf8(std::string(value)));
  };
  const auto number = [&](std::string_view field, std::int32_t value) {
    if (value == 0) return;
    writer.key(field);
    writer.integer(value);
  };
  writer.begin_object();
  text("kind", "Status");
  text("apiVersion", "v1");
  writer.key("metadata");
  writer.begin_object();
  text("continue", continue_token);
  writer.end_object();
  text("status", status);
  text("message", message);
  text("reason", reason);
  if (has_details || !name.empty() || !group.empty() || !kind.empty() || !uid.empty() ||
      !causes.empty() || retry_after_seconds != 0) {
    writer.key("details");
    writer.begin_object();
    text("name", name);
    text("group", group);
    text("kind", kind);
    text("uid", uid);
    if (!causes.empty()) {
      writer.key("causes");
      writer.begin_array();
      for (const auto& cause : causes) {
        writer.begin_object();
        text("reason", cause.reason);
        text("message", cause.message);
        text("field", cause.field);
        writer.end_object();
      }
      writer.end_array();
    }
    number("retryAfterSeconds", retry_after_seconds);
    writer.end_object();
  }
  number("code", code);
  writer.end_object();
  return writer.finish();
}

StatusError::StatusError(Status status) : Error(what_of(status)), status_(std::move(status)) {}
StatusError::StatusError(Status status, const std::string& hint)
    : Error(what_of(status) + hint), status_(std::move(status)) {}

StatusError StatusError::not_found(std::string_view group, std::string_view resource,
                                   std::string_view name) {
  return StatusError(
      failure_about(404, reason::kNotFound,
                    fmt::format("{} {} not found", qualified(group, resource), detail::quote(name)),
                    group, resource, name));
}

StatusError StatusError::already_exists(std::string_view group, std::string_view resource,
                                        std::string_view name) {
  return StatusError(failure_about(
      409, reason::kAlreadyExists,
      fmt::format("{} {} already exists", qualified(group, resource), detail::quote(name)), group,
      resource, name));
}

StatusError StatusError::conflict(std::string_view group, std::string_view resource,
                                  std::string_view name, std::string_view why) {
  return StatusError(
      failure_about(409, reason::kConflict,
                    fmt::format("Operation cannot be fulfilled on {} {}: {}",
                                qualified(group, resource), detail::quote(name), why),
                    group, resource, name));
}

StatusError StatusError::forbidden(std::string_view group, std::string_view resource,
                                   std::string_view name, std::string_view why) {
  std::string message = "forbidden";
  if (!group.empty() || !resource.empty()) {
    message = fmt::format("{}{}{} is forbidden", qualified(group, resource),
                          name.empty() ? "" : " ", name.empty() ? "" : detail::quote(name));
  }
  if (!why.empty()) message += fmt::format(": {}", why);
  return StatusError(
      failure_about(403, reason::kForbidden, std::move(message), group, resource, name));
}

StatusError StatusError::unauthorized(std::string_view message) {
  return StatusError(failure(401, reason::kUnauthorized,
                             std::string(message.empty() ? "not authorized" : message)));
}

StatusError StatusError::bad_request(std::string_view message) {
  return StatusError(failure(400, reason::kBadRequest, std::string(message)));
}

StatusError StatusError::invalid(std::string_view group, std::string_view kind,
                                 std::string_view name, std::vector<StatusCause> causes) {
  std::string message =
      fmt::format("{} {} is invalid", qualified(group, kind), detail::quote(name));
  if (!causes.empty()) message += ": " + validation::to_string(causes);
  Status status = failure_about(422, reason::kInvalid, std::move(message), group, kind, name);
  status.causes = std::move(causes);
  return StatusError(std::move(status));
}

StatusError StatusError::expired(std::string_view message) {
  return StatusError(failure(410, reason::kExpired, std::string(message)));
}

StatusError StatusError::gone(std::string_view message) {
  return StatusError(failure(410, reason::kGone, std::string(message)));
}

StatusError StatusError::method_not_allowed(std::string_view group, std::string_view resource,
                                            std::string_view action) {
  return StatusError(failure_about(405, reason::kMethodNotAllowed,
                                   fmt::format("{} is not supported on resources of kind {}",
                                               action, detail::quote(qualified(group, resource))),
                                   group, resource, {}));
}

StatusError StatusError::timeout(std::string_view message, int retry_after_seconds) {
  Status status =
      failure_about(504, reason::kTimeout, fmt::format("Timeout: {}", message), {}, {}, {});
  status.retry_after_seconds = retry_after_seconds;
  return StatusError(std::move(status));
}

StatusError StatusError::server_timeout(std::string_view group, std::string_view resource,
                                        std::string_view operation, int retry_after_seconds) {
  Status status = failure_about(
      500, reason::kServerTimeout,
      fmt::format("The {} operation against {} could not be completed at this time, please try "
                  "again.",
                  operation, qualified(group, resource)),
      group, resource, operation);
  status.retry_after_seconds = retry_after_seconds;
  return StatusError(std::move(status));
}

StatusError StatusError::too_large_resource_version(std::uint64_t requested, std::uint64_t current,
                                                    int retry_after_seconds) {
  Status status =
      timeout(fmt::format("{}: {}, current: {}", kTooLargeResourceVersion, requested, current),
              retry_after_seconds)
          .status_;
  status.causes.push_back(
      {std::string(kCauseTooLargeResourceVersion), std::string(kTooLargeResourceVersion), {}});
  return StatusError(std::move(status));
}

StatusError StatusError::too_many_requests(std::string_view message, int retry_after_seconds) {
  Status status = failure_about(429, reason::kTooManyRequests, std::string(message), {}, {}, {});
  status.retry_after_seconds = retry_after_seconds;
  return StatusError(std::move(status));
}

StatusError StatusError::request_entity_too_large(std::string_view message) {
  return StatusError(failure(413, reason::kRequestEntityTooLarge,
                             fmt::format("Request entity too large: {}", message)));
}

StatusError StatusError::internal_error(std::string_view message) {
  Status status = failure_about(500, reason::kInternalError,
                                fmt::format("Internal error occurred: {}", message), {}, {}, {});
  status.causes.push_back({{}, std::string(message), {}});
  return StatusError(std::move(status));
}

StatusError StatusError::service_unavailable(std::string_view message) {
  return StatusError(failure(503, reason::kServiceUnavailable, std::string(message)));
}

StatusError StatusError::generic(int code, std::string_view verb, std::string_view group,
                                 std::string_view resource, std::string_view name,
                                 std::string_view server_message, int retry_after_seconds,
                                 bool unexpected) {
  std::string_view reason = reason::kUnknown;
  std::string message = fmt::format(
      "the server responded with the status code {} but did not return more information", code);
  const auto answer = std::find_if(kGenericAnswers.begin(), kGenericAnswers.end(),
                                   [&](const GenericAnswer& a) { return a.code == code; });
  if (answer != kGenericAnswers.end()) {
    reason = answer->reason;
    message = answer->message.empty() ? server_message : answer->message;
    if (code == 409 && verb == "POST") reason = reason::kAlreadyExists;
    if (code == 406 && (server_message.empty() || server_message == "unknown"))
      message = "the server was unable to respond with a content type that the client supports";
  } else if (code >= 500) {
    reason = reason::kInternalError;
    message = fmt::format("an error on the server ({}) has prevented the request from succeeding",
                          detail::quote(server_message));
  }
  if (!group.empty() || !resource.empty()) {
    message += fmt::format(" ({} {}{}{})", base::lower_case(verb), qualified(group, resource),
                           name.empty() ? "" : " ", name);
  }
  Status status = failure_about(code, reason, std::move(message), group, resource, name);
  status.retry_after_seconds = retry_after_seconds;
  if (unexpected) {
    status.causes.push_back(
        {std::string(kCauseUnexpectedResponse), std::string(server_message), {}});
  }
  return StatusError(std::move(status));
}

bool is_not_found(const std::exception& e) { return has_reason_or_code(e, reason::kNotFound, 404); }
bool is_already_exists(const std::exception& e) { return has_reason(e, reason::kAlreadyExists); }
bool is_conflict(const std::exception& e) { return has_reason_or_code(e, reason::kConflict, 409); }
bool is_invalid(const std::exception& e) { return has_reason_or_code(e, reason::kInvalid, 422); }
bool is_gone(const std::exception& e) { return has_reason_or_code(e, reason::kGone, 410); }
bool is_resource_expired(const std::exception& e) { return has_reason(e, reason::kExpired); }
bool is_not_acceptable(const std::exception& e) {
  return has_reason_or_code(e, reason::kNotAcceptable, 406);
}
bool is_unsupported_media_type(const std::exception& e) {
  return has_reason_or_code(e, reason::kUnsupportedMediaType, 415);
}
bool is_method_not_supported(const std::exception& e) {
  return has_reason_or_code(e, reason::kMethodNotAllowed, 405);
}
bool is_service_unavailable(const std::exception& e) {
  return has_reason_or_code(e, reason::kServiceUnavailable, 503);
}
bool is_bad_request(const std::exception& e) {
  return has_reason_or_code(e, reason::kBadRequest, 400);
}
bool is_unauthorized(const std::exception& e) {
  return has_reason_or_code(e, reason::kUnauthorized, 401);
}
bool is_forbidden(const std::exception& e) {
  return has_reason_or_code(e, reason::kForbidden, 403);
}
bool is_timeout(const std::exception& e) { return has_reason_or_code(e, reason::kTimeout, 504); }
bool is_server_timeout(const std::exception& e) { return has_reason(e, reason::kServerTimeout); }
bool is_internal_error(const std::exception& e) {
  return has_reason_or_code(e, reason::kInternalError, 500);
}
bool is_too_many_requests(const std::exception& e) {
  return has_reason_or_any_with_code(e, reason::kTooManyRequests, 429);
}
bool is_request_entity_too_large(const std::exception& e) {
  return has_reason_or_any_with_code(e, reason::kRequestEntityTooLarge, 413);
}
bool is_store_read_error(const std::exception& e) { return has_reason(e, reason::kStoreReadError); }
bool is_unexpected_server_error(const std::exception& e) {
  return has_status_cause(e, kCauseUnexpectedResponse);
}

bool is_too_large_resource_version(const std::exception& e) {
  if (has_status_cause(e, kCauseTooLargeResourceVersion)) return true;
  // Servers up to 1.18 have only a message.
  const Status* status = status_of(e);
  return status != nullptr && is_timeout(e) && status->has_details &&
         (std::any_of(status->causes.begin(), status->causes.end(),
                      [](const StatusCause& c) { return c.message == kTooLargeResourceVersion; }) ||
          status->message.find(kTooLargeResourceVersion) != std::string::npos);
}

bool has_status_cause(const std::exception& e, std::string_view cause_reason) {
  const Status* status = status_of(e);
  return status != nullptr &&
         std::any_of(status->causes.begin(), status->causes.end(),
                     [&](const StatusCause& cause) { return cause.reason == cause_reason; });
}

std::optional<std::chrono::seconds> suggests_client_delay(const std::exception& e) {
  const Status* status = status_of(e);
  if (status == nullptr || !status->has_details) return std::nullopt;
  if (status->reason != reason::kServerTimeout && status->retry_after_seconds <= 0)
    return std::nullopt;
  return std::chrono::seconds(status->retry_after_seconds);
}

std::string_view reason_for_error(const std::exception& e) {
  const Status* status = status_of(e);
  return status == nullptr ? reason::kUnknown : std::string_view(status->reason);
}

}  // namespace lookout::api
