// The errors that the API server reports when it decodes a body into its types.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// The kind that a body is to be of: a resource's, or one that belongs to a subresource, such as
/// Scale.
struct ExpectedKind {
  /// The resource must outlive it.
  ExpectedKind(const resources::ServedResource& resource);  // NOLINT(google-explicit-constructor)
  explicit ExpectedKind(api::GroupVersionKind kind);

  api::GroupVersionKind type;
  /// Another version of the group that has the same fields.
  std::string older_version;
  bool custom = false;
  /// Of a custom resource.
  api::Value schema;
};

/// The errors in a body.
struct DecodingProblems {
  /// A value that is not of its field's type, in the words of Go's decoder. Nothing else counts then.
  std::optional<std::string> error;
  /// The same in the words of the converter that the API server uses for strategic merge patches and
  /// server-side apply (runtime.DefaultUnstructuredConverter).
  std::string converter_error;
  /// `unknown field "spec.foo"`, `duplicate field "spec.replicas"`: what a strict decoder refuses.
  std::vector<std::string> strict;
};

/// Compares a body, which must be valid JSON, with its type: the built-in one, or the schema of the
/// custom resource.
DecodingProblems find_decoding_problems(std::string_view json, const ExpectedKind& expected);
/// The same for an object.
DecodingProblems find_decoding_problems(const api::Object& object, const ExpectedKind& expected);

/// fieldValidation: what becomes of what a strict decoder refuses.
enum class FieldValidation { kIgnore, kWarn, kStrict };

/// A body of JSON as it came, and what was decoded from it.
struct JsonBody {
  std::string_view json;
  const api::Object& object;
  /// The keys that it had twice when it was YAML.
  std::vector<std::string> repeated;
};

/// Throws api::StatusError (400) for a body that does not fit its type, and, if validation is
/// strict, for fields that are unknown or there twice; warnings about these otherwise.
std::vector<std::string> check_fields(const JsonBody& body, const ExpectedKind& expected,
                                      FieldValidation validation);

/// `strict decoding error: unknown field "a", duplicate field "b"`.
std::string strict_decoding_error(const std::vector<std::string>& problems);

/// The value of a Warning header.
std::string warning_header(std::string_view message);

}  // namespace lookout::apiserver::endpoints
