// The errors that the API server reports when it decodes a body into its types.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/served_resource.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// The expected kind of a body: the resource's or that of a subresource, such as Scale.
struct ExpectedKind {
  /// The resource must outlive it.
  ExpectedKind(const resources::ServedResource& resource);  // NOLINT(google-explicit-constructor)
  explicit ExpectedKind(api::GroupVersionKind kind);

  api::GroupVersionKind type;
  /// Another version of the group that has the same fields.
  std::string older_version;
  bool custom = false;
  /// The schema of a custom resource.
  api::Value schema;
};

/// The errors in a body.
struct DecodingProblems {
  /// A value that does not match its field's type, with the message of Go's decoder. Overrides the rest.
  std::optional<std::string> error;
  /// The same in the words of the converter that the API server uses for strategic merge patches and
  /// server-side apply (runtime.DefaultUnstructuredConverter).
  std::string converter_error;
  /// The errors of a strict decoder: `unknown field "spec.foo"`, `duplicate field "spec.replicas"`.
  std::vector<std::string> strict;
};

/// Compares a body, which must be valid JSON, with its type: the built-in one, or the schema of the
/// custom resource.
DecodingProblems find_decoding_problems(std::string_view json, const ExpectedKind& expected);
/// The same for an object.
DecodingProblems find_decoding_problems(const api::Object& object, const ExpectedKind& expected);

/// fieldValidation: how to handle the errors of a strict decoder.
enum class FieldValidation { kIgnore, kWarn, kStrict };

/// A received JSON body and its object.
struct JsonBody {
  std::string_view json;
  const api::Object& object;
  /// The repeated keys of the original YAML.
  std::vector<std::string> repeated;
};

/// Throws api::StatusError (400) for a body that does not match its type and, with strict validation,
/// for unknown and repeated fields; otherwise returns warnings about these.
std::vector<std::string> check_fields(const JsonBody& body, const ExpectedKind& expected,
                                      FieldValidation validation);

/// `strict decoding error: unknown field "a", duplicate field "b"`.
std::string strict_decoding_error(const std::vector<std::string>& problems);

}  // namespace lookout::apiserver::endpoints
