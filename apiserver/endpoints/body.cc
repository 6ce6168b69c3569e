#include "apiserver/endpoints/body.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <array>
#include <utility>

#include "apiserver/endpoints/json_syntax.h"
#include "apiserver/endpoints/negotiation.h"
#include "apiserver/endpoints/request_info.h"
#include "apiserver/endpoints/yaml.h"
#include "apiserver/names.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/go_values.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/status.h"
#include "lookout/api/validation.h"
#include "lookout/base/ascii.h"
#include "lookout/base/json_strings.h"

namespace lookout::apiserver::endpoints {
namespace {

namespace rules = api::validation;
using api::Value;

constexpr std::size_t kSummary = 30;
constexpr std::size_t kMaxFieldManager = 128;

/// The beginning of a body, for a message.
std::string summary_of(std::string_view body) {
  if (body.empty()) return "<empty>";
  const std::string_view beginning = body.substr(0, kSummary);
  std::string out;
  if (body.front() == '{') {
    out = beginning;
  } else {
    for (const char c : beginning) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  if (body.size() > kSummary) out += " ...";
  return out;
}

/// Whether the values of dryRun request a dry run. Invalid values become a cause.
bool is_dry_run(const std::vector<std::string>& values, std::vector<api::StatusCause>& causes) {
  const auto is_all = [](const std::string& value) { return value == "All"; };
  if (std::all_of(values.begin(), values.end(), is_all)) return !values.empty();
  std::vector<std::string> quoted;
  quoted.reserve(values.size());
  for (const std::string& value : values) quoted.push_back(api::detail::quote(value));
  causes.push_back(
      {"FieldValueNotSupported",
       fmt::format("Unsupported value: [{}]: supported values: \"All\"", fmt::join(quoted, ",")),
       "dryRun"});
  return false;
}

std::vector<std::string> dry_run_parameters(const http::Request& request) {
  std::vector<std::string> values;
  for (const auto& [name, value] : request.query) {
    if (name == "dryRun") values.push_back(value);
  }
  return values;
}

/// Whether Kubernetes has such a kind, lists included.
bool is_known_kind(const api::GroupVersionKind& type) {
  if (api::find_builtin(type.group, type.version, type.kind) != nullptr) return true;
  std::string_view kind = type.kind;
  if (!kind.ends_with("List")) return false;
  kind.remove_suffix(4);
  if (kind.empty()) return type.group.empty() && type.version == "v1";
  return api::find_builtin(type.group, type.version, kind) != nullptr;
}

/// Go's name for the type of a JSON value that is not an object; empty for an object, and for text
/// that is not JSON.
std::string_view kind_of_json(std::string_view body) {
  const std::string_view text = base::trim(body);
  if (text == "true" || text == "false") return "bool";
  if (text.starts_with('[')) return "array";
  if (text.starts_with('"')) return "string";
  if (!text.empty() && text.find_first_not_of("+-.0123456789Ee") == std::string_view::npos)
    return "number";
  return {};
}

Object parse_protobuf(std::string_view body, std::string& error) {
  if (!api::is_protobuf(body)) {
    error =
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    return {};
  }
  api::ProtobufDecoder decoder;
  Object object = decoder.decode(body);
  error = decoder.error();
  return object;
}

/// A body in JSON or protobuf. The request must outlive it.
class Body {
 public:
  explicit Body(const http::Request& request)
      : is_protobuf(sends_protobuf(request)), sent_(request.body) {
    if (sends_yaml(request)) yaml_ = read_yaml(sent_);
  }

  const std::string& text() const { return yaml_ ? yaml_->json : sent_; }
  /// The repeated_keys() of a YAML body; empty for JSON.
  std::vector<std::string> repeated() const {
    return yaml_ ? yaml_->repeated : std::vector<std::string>();
  }

  const bool is_protobuf;

 private:
  const std::string& sent_;
  std::optional<YamlBody> yaml_;
};

/// The single object in a body, or the API server's message for an invalid body.
Object parse(const Body& sent, std::string& error) {
  const std::string& body = sent.text();
  if (sent.is_protobuf) return parse_protobuf(body, error);
  // Go decodes null to an object without members.
  if (base::trim(body) == "null") return Object::parse("{}");
  thread_local api::JsonDecoder decoder;
  std::string copy = body;
  Object object = decoder.decode(copy);
  error = "couldn't get version/kind; json parse error: ";
  if (const std::string syntax = object ? "" : json_syntax_error(body); !syntax.empty()) {
    error += syntax;
    return {};
  }
  if (object) {
    for (const char* field : {"apiVersion", "kind"}) {
      const Value value = object[field];
      if (!value.exists() || value.is_null() || value.is_string()) continue;
      error += fmt::format("json: cannot unmarshal {} into Go struct field .{} of type string",
                           api::detail::go_json_name(value), field);
      return {};
    }
    return object;
  }
  const std::string_view kind = kind_of_json(body);
  if (kind.empty()) {
    error += decoder.error();
  } else {
    error += fmt::format(
        "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string "
        "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
        "\"json:\\\"kind,omitempty\\\"\" }}",
        kind);
  }
  return {};
}

StatusError unrecognized(std::string_view kind, std::string_view why, std::string_view body) {
  return StatusError::bad_request(
      fmt::format("the object provided is unrecognized (must be of type {}): {} ({})", kind, why,
                  summary_of(body)));
}

/// Go's package of the types of a group, without a version.
std::string_view package_of(std::string_view group) {
  return group.empty() ? "core" : group.substr(0, group.find('.'));
}

}  // namespace

DecodedBody decode_object(const http::Request& request, const ExpectedKind& expected,
                          FieldValidation validation) {
  const Body sent(request);
  const std::string& body = sent.text();
  std::string error;
  Object object = parse(sent, error);
  if (!object) throw unrecognized(expected.type.kind, error, body);
  const std::string expected_version = expected.type.api_version();
  std::string api_version(object.api_version());
  std::string kind(object.kind());
  if (expected.custom) {
    if (kind.empty())
      throw unrecognized(expected.type.kind, fmt::format("Object 'Kind' is missing in '{}'", body),
                         body);
    if (api_version.empty())
      throw unrecognized(expected.type.kind,
                         fmt::format("Object 'apiVersion' is missing in '{}'", body), body);
  }
  const bool older = !expected.older_version.empty() &&
                     api_version == expected.type.group + "/" + expected.older_version;
  if (api_version.empty() || older) api_version = expected_version;
  if (kind.empty()) kind = expected.type.kind;
  if (std::count(api_version.begin(), api_version.end(), '/') > 1) {
    throw unrecognized(expected.type.kind, "unexpected GroupVersion string: " + api_version, body);
  }
  const auto gvk = api::GroupVersionKind::from(api_version, kind);
  const bool known = gvk == expected.type || is_known_kind(gvk);
  if (!expected.custom && (kind != expected.type.kind || !known)) {
    const std::string why =
        known ? fmt::format("converting ({}.{}) to ({}.{}): unknown conversion", gvk.version,
                            gvk.kind, package_of(expected.type.group), expected.type.kind)
              : fmt::format("no kind {} is registered for version {}", api::detail::quote(kind),
                            api::detail::quote(api_version));
    throw StatusError::bad_request(fmt::format("{} in version {} cannot be handled as a {}: {}",
                                               kind, api::detail::quote(gvk.version),
                                               expected.type.kind, why));
  }
  if (api_version != expected_version) {
    throw StatusError::bad_request(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    api_version, expected_version));
  }
  if (kind != expected.type.kind) {
    throw StatusError::invalid(
        expected.type.group, expected.type.kind, object.name(),
        {rules::invalid("kind", kind, fmt::format("must be {}", expected.type.kind))});
  }
  std::vector<std::string> warnings;
  if (!sent.is_protobuf)
    warnings = check_fields({body, object, sent.repeated()}, expected, validation);
  return {api::with_type(object, expected_version, expected.type.kind), std::move(warnings)};
}

json::Document decode_json(const std::string& body, std::string_view prefix) {
  const auto fail = [&](std::string_view why) {
    return StatusError::bad_request(std::string(prefix).append(why));
  };
  // The object decoder checks the limits.
  api::JsonDecoder decoder;
  if (const std::string syntax = json_syntax_error(body); !syntax.empty()) throw fail(syntax);
  if (base::trim(body).starts_with('{')) {
    std::string copy = body;
    const Object object = decoder.decode(copy);
    if (!object) throw fail(decoder.error());
    return object.to_document();
  }
  // Wrap any other single value in an object.
  json::Document document;
  std::string room;
  const std::string_view text = repair_surrogates(body, room);
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError()) {
    throw fail(fmt::format("{} at byte {}", rapidjson::GetParseError_En(document.GetParseError()),
                           document.GetErrorOffset()));
  }
  std::string wrapped = R"({"patch":)" + body + "}";
  const Object object = decoder.decode(wrapped);
  if (!object) throw fail(decoder.error());
  document = object.to_document();
  json::Value patch = std::move(*json::find(document, "patch"));
  static_cast<json::Value&>(document).Swap(patch);
  return document;
}

namespace {

/// Like Go's unicode.IsPrint.
bool is_printable(std::string_view character) {
  const std::string quoted = api::detail::quote(character);
  return quoted.size() == character.size() + 2 || character == "\"" || character == "\\";
}

void check_field_manager(std::string_view manager, std::vector<api::StatusCause>& causes) {
  if (manager.size() > kMaxFieldManager)
    causes.push_back(rules::too_long("fieldManager", kMaxFieldManager));
  for (std::size_t at = 0; at < manager.size();) {
    const api::detail::Rune rune = api::detail::first_rune(manager.substr(at));
    // In Go, invalid UTF-8 is the replacement character, which is printable.
    if (rune.valid && !is_printable(manager.substr(at, rune.size))) {
      causes.push_back(rules::invalid("fieldManager", manager,
                                      fmt::format("invalid character U+{:04X} (at position {})",
                                                  static_cast<std::uint32_t>(rune.code), at)));
    }
    at += rune.size;
  }
}

}  // namespace

WriteOptions parse_write_options(const http::Request& request, std::string_view kind) {
  std::vector<api::StatusCause> causes;
  WriteOptions options;
  const std::string_view manager = request.parameter("fieldManager").value_or("");
  if (kind == "PatchOptions") {
    const bool applies = media_type(request.header("content-type")) == kApplyPatch;
    const auto force = request.parameter("force");
    if (applies && manager.empty())
      causes.push_back(rules::required("fieldManager", "is required for apply patch"));
    if (!applies && force)
      causes.push_back(rules::forbidden("force", "may not be specified for non-apply patch"));
    options.force = applies && is_true(force.value_or("false"));
  }
  check_field_manager(manager, causes);
  options.dry_run = is_dry_run(dry_run_parameters(request), causes);
  constexpr std::array<std::string_view, 4> kValidations = {"", "Ignore", "Strict", "Warn"};
  const std::string_view validation = request.parameter("fieldValidation").value_or("");
  if (std::find(kValidations.begin(), kValidations.end(), validation) == kValidations.end())
    causes.push_back(rules::not_supported("fieldValidation", validation, kValidations));
  if (validation == "Ignore") options.field_validation = FieldValidation::kIgnore;
  if (validation == "Strict") options.field_validation = FieldValidation::kStrict;
  if (!causes.empty()) throw StatusError::invalid("meta.k8s.io", kind, "", std::move(causes));
  return options;
}

namespace {

/// Fields of DeleteOptions that are not validated yet.
struct UncheckedOptions {
  std::optional<std::string> policy;
  std::optional<bool> orphan;
  std::vector<std::string> dry_run;
};

/// Sets them in `options`. Throws api::StatusError (422) if a value is not allowed.
void set_checked(const UncheckedOptions& unchecked, resources::DeleteOptions& options) {
  constexpr std::array<std::string_view, 4> kPolicies = {"Foreground", "Background", "Orphan",
                                                         "nil"};
  const auto& [policy, orphan, dry_run] = unchecked;
  std::vector<api::StatusCause> causes;
  if (policy && orphan) {
    causes.push_back(rules::invalid("propagationPolicy", *policy,
                                    "orphanDependents and deletionPropagation cannot be both set"));
  }
  if (policy && std::find(kPolicies.begin(), kPolicies.end() - 1, *policy) == kPolicies.end() - 1)
    causes.push_back(rules::not_supported("propagationPolicy", *policy, kPolicies));
  options.denies_orphans = orphan && !*orphan;
  if (policy == "Orphan" || orphan.value_or(false)) {
    options.propagation = resources::Propagation::kOrphan;
  } else if (policy == "Foreground") {
    options.propagation = resources::Propagation::kForeground;
  } else if (policy == "Background" || orphan) {
    options.propagation = resources::Propagation::kBackground;
  }
  options.dry_run = is_dry_run(dry_run, causes);
  if (!causes.empty())
    throw StatusError::invalid("meta.k8s.io", "DeleteOptions", "", std::move(causes));
}

std::optional<std::string> text_of(const Value& value) {
  const auto text = value.to_string_view();
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

}  // namespace

resources::DeleteOptions delete_options_of(const Value& body) {
  resources::DeleteOptions options;
  UncheckedOptions unchecked;
  options.grace_period_seconds = body["gracePeriodSeconds"].to_int();
  options.preconditions.uid = text_of(body["preconditions"]["uid"]);
  options.preconditions.resource_version = text_of(body["preconditions"]["resourceVersion"]);
  unchecked.orphan = body["orphanDependents"].to_bool();
  unchecked.policy = text_of(body["propagationPolicy"]);
  for (const Value value : body["dryRun"].elements())
    unchecked.dry_run.emplace_back(value.as_string());
  set_checked(unchecked, options);
  return options;
}

resources::DeleteOptions parse_delete_options(const http::Request& request) {
  if (!request.body.empty()) {
    const Body sent(request);
    std::string error;
    const Object body = parse(sent, error);
    if (!body) throw StatusError::bad_request(error);
    if (body.kind() == "CreateOptions" || body.kind() == "UpdateOptions")
      throw StatusError::bad_request("decoded object cannot be converted to DeleteOptions");
    if (!body.kind().empty() && body.kind() != "DeleteOptions") {
      throw StatusError::bad_request(fmt::format("no kind {} is registered for version {}",
                                                 api::detail::quote(body.kind()),
                                                 api::detail::quote(body.api_version())));
    }
    if (!sent.is_protobuf) {
      const ExpectedKind expected({"", "v1", "DeleteOptions"});
      const DecodingProblems problems = find_decoding_problems(sent.text(), expected);
      if (problems.error) throw StatusError::bad_request(*problems.error);
    }
    return delete_options_of(body.body());
  }
  resources::DeleteOptions options;
  UncheckedOptions unchecked;
  const auto text = [&](std::string_view name) -> std::optional<std::string> {
    const auto value = request.parameter(name);
    if (!value || value->empty()) return std::nullopt;
    return std::string(*value);
  };
  if (const auto grace = request.parameter("gracePeriodSeconds"))
    options.grace_period_seconds = parse_number(*grace);
  options.preconditions.uid = text("uid");
  options.preconditions.resource_version = text("resourceVersion");
  if (const auto policy = request.parameter("propagationPolicy"))
    unchecked.policy = std::string(*policy);
  if (const auto value = request.parameter("orphanDependents")) unchecked.orphan = is_true(*value);
  unchecked.dry_run = dry_run_parameters(request);
  set_checked(unchecked, options);
  return options;
}

}  // namespace lookout::apiserver::endpoints
