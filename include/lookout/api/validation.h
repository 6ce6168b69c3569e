// Validation of names and values, with Kubernetes' error messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/status.h"

/// The rules and the messages of k8s.io/apimachinery/pkg/util/validation and
/// pkg/api/validate/content.
///
/// Each check returns a list of errors in the API server's words; empty if the value is valid.
namespace lookout::api::validation {

using Messages = std::vector<std::string>;

/// A label or annotation key, a finalizer, a condition type: "name" or "example.com/name".
Messages check_qualified_name(std::string_view value);
/// The value of a label; may be empty.
Messages check_label_value(std::string_view value);
/// The name of a namespace, a container, a port: "my-name".
Messages check_dns1123_label(std::string_view value);
/// The name of most objects: "my-name.example.com".
Messages check_dns1123_subdomain(std::string_view value);
/// The name of a service: a DNS-1123 label that starts with a letter.
Messages check_dns1035_label(std::string_view value);
/// The name of a role, or of another object whose name is free but becomes part of a URL.
Messages check_path_segment_name(std::string_view value);
/// A key of the data of a config map or secret.
Messages check_config_map_key(std::string_view value);

/// The errors of pkg/util/validation/field, as causes for StatusError::invalid(). `field` is the
/// path ("spec.replicas"); `detail` adds information and may be empty.
StatusCause required(std::string_view field, std::string_view detail);
StatusCause invalid(std::string_view field, std::string_view value, std::string_view detail);
StatusCause invalid(std::string_view field, std::int64_t value, std::string_view detail);
StatusCause forbidden(std::string_view field, std::string_view detail);
StatusCause duplicate(std::string_view field, std::string_view value);
StatusCause not_supported(std::string_view field, std::string_view value,
                          std::span<const std::string_view> supported);
StatusCause too_long(std::string_view field, int max_bytes);

/// Prints all causes in one line as field.ErrorList does: "field: message"; several in brackets,
/// without duplicates. Empty for no causes.
std::string to_string(std::span<const StatusCause> causes);

}  // namespace lookout::api::validation
