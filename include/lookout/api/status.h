// Status: an API server's response to a request that it refuses or that fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/base/attributes.h"

namespace lookout::api {

/// The values of metav1.StatusReason that clients act on; on the wire they are text.
namespace reason {
inline constexpr std::string_view kUnknown = "";
inline constexpr std::string_view kUnauthorized = "Unauthorized";
inline constexpr std::string_view kForbidden = "Forbidden";
inline constexpr std::string_view kNotFound = "NotFound";
inline constexpr std::string_view kAlreadyExists = "AlreadyExists";
inline constexpr std::string_view kConflict = "Conflict";
inline constexpr std::string_view kGone = "Gone";
inline constexpr std::string_view kInvalid = "Invalid";
inline constexpr std::string_view kServerTimeout = "ServerTimeout";
inline constexpr std::string_view kStoreReadError = "StorageReadError";
inline constexpr std::string_view kTimeout = "Timeout";
inline constexpr std::string_view kTooManyRequests = "TooManyRequests";
inline constexpr std::string_view kBadRequest = "BadRequest";
inline constexpr std::string_view kMethodNotAllowed = "MethodNotAllowed";
inline constexpr std::string_view kNotAcceptable = "NotAcceptable";
inline constexpr std::string_view kRequestEntityTooLarge = "RequestEntityTooLarge";
inline constexpr std::string_view kUnsupportedMediaType = "UnsupportedMediaType";
inline constexpr std::string_view kInternalError = "InternalError";
inline constexpr std::string_view kExpired = "Expired";
inline constexpr std::string_view kServiceUnavailable = "ServiceUnavailable";
}  // namespace reason

/// metav1.StatusCause: one of several errors in a request.
struct StatusCause {
  std::string reason;  // "FieldValueInvalid", "FieldValueRequired", "ResourceVersionTooLarge" ...
  std::string message;
  std::string field;

  friend bool operator==(const StatusCause&, const StatusCause&) = default;
};

/// metav1.Status as a plain value.
struct Status {
  /// "Failure", or "Success" for an operation without another result (a deletion).
  std::string status = "Failure";
  std::int32_t code = 0;
  std::string reason;
  std::string message;
  /// The `details` of the Status: the object concerned.
  std::string name;
  std::string group;
  std::string kind;
  std::string uid;
  std::vector<StatusCause> causes;
  std::int32_t retry_after_seconds = 0;
  /// True if there is a `details` member, even an empty one.
  bool has_details = false;
  /// For a paginated list that took too long (410): a token that continues it with inconsistent
  /// results.
  std::string continue_token;

  friend bool operator==(const Status&, const Status&) = default;

  /// Converts from an object; empty if it is not a Status.
  static std::optional<Status> from(const Object& object);
  /// The Status object as an API server sends it.
  Object to_object() const;
};

/// A Status as an exception. what() is the server's message or, if there is none, the
/// code and the reason.
class StatusError : public Error {
 public:
  explicit StatusError(Status status);
  /// Appends a hint to the message of the Status.
  StatusError(Status status, const std::string& hint);

  const Status& status() const LOOKOUT_LIFETIME_BOUND { return status_; }
  std::int32_t code() const { return status_.code; }
  const std::string& reason() const LOOKOUT_LIFETIME_BOUND { return status_.reason; }

  /// The errors of k8s.io/apimachinery/pkg/api/errors, for servers and for tests. `resource` is the
  /// plural ("pods"), `group` its API group ("" for core).
  static StatusError not_found(std::string_view group, std::string_view resource,
                               std::string_view name);
  static StatusError already_exists(std::string_view group, std::string_view resource,
                                    std::string_view name);
  static StatusError conflict(std::string_view group, std::string_view resource,
                              std::string_view name, std::string_view why);
  /// `why` may be empty.
  static StatusError forbidden(std::string_view group, std::string_view resource,
                               std::string_view name, std::string_view why);
  /// The real server says "Unauthorized".
  static StatusError unauthorized(std::string_view message = "Unauthorized");
  static StatusError bad_request(std::string_view message);
  /// `kind` is the kind ("Pod"); the message lists the causes as the API server does. The functions
  /// of validation.h make causes.
  static StatusError invalid(std::string_view group, std::string_view kind, std::string_view name,
                             std::vector<StatusCause> causes);
  static StatusError expired(std::string_view message);
  static StatusError gone(std::string_view message);
  static StatusError method_not_allowed(std::string_view group, std::string_view resource,
                                        std::string_view action);
  static StatusError timeout(std::string_view message, int retry_after_seconds);
  static StatusError server_timeout(std::string_view group, std::string_view resource,
                                    std::string_view operation, int retry_after_seconds);
  static StatusError too_large_resource_version(std::uint64_t requested, std::uint64_t current,
                                                int retry_after_seconds);
  static StatusError too_many_requests(std::string_view message, int retry_after_seconds);
  static StatusError request_entity_too_large(std::string_view message);
  static StatusError internal_error(std::string_view message);
  static StatusError service_unavailable(std::string_view message);
  /// The error for an HTTP status without a Status object (NewGenericServerResponse). `verb` is the
  /// HTTP method; `resource` and `name` may be empty; `unexpected` means that `server_message` did
  /// not come from an API server.
  static StatusError generic(int code, std::string_view verb, std::string_view group,
                             std::string_view resource, std::string_view name,
                             std::string_view server_message, int retry_after_seconds,
                             bool unexpected);

 private:
  Status status_;
};

/// client-go's predicates. They test the reason or, if Kubernetes does not know the reason, the
/// HTTP status. They take any exception, for use in a catch-all:
///
///     } catch (const std::exception& e) {
///       if (!api::is_not_found(e)) throw;
///     }
bool is_not_found(const std::exception& e);
bool is_already_exists(const std::exception& e);
bool is_conflict(const std::exception& e);
bool is_invalid(const std::exception& e);
/// 410 without a more specific reason; is_resource_expired() covers an expired resourceVersion.
bool is_gone(const std::exception& e);
/// The resourceVersion or continue token is too old: list again.
bool is_resource_expired(const std::exception& e);
bool is_not_acceptable(const std::exception& e);
bool is_unsupported_media_type(const std::exception& e);
bool is_method_not_supported(const std::exception& e);
bool is_service_unavailable(const std::exception& e);
bool is_bad_request(const std::exception& e);
bool is_unauthorized(const std::exception& e);
bool is_forbidden(const std::exception& e);
bool is_timeout(const std::exception& e);
bool is_server_timeout(const std::exception& e);
bool is_internal_error(const std::exception& e);
bool is_too_many_requests(const std::exception& e);
bool is_request_entity_too_large(const std::exception& e);
bool is_store_read_error(const std::exception& e);
/// The response did not come from an API server.
bool is_unexpected_server_error(const std::exception& e);
/// The server has not seen the requested resourceVersion yet.
bool is_too_large_resource_version(const std::exception& e);
bool has_status_cause(const std::exception& e, std::string_view cause_reason);
/// The delay that the server asks for before the next attempt.
std::optional<std::chrono::seconds> suggests_client_delay(const std::exception& e);
/// The reason, or "" if the exception is not a StatusError.
std::string_view reason_for_error(const std::exception& e);

}  // namespace lookout::api
