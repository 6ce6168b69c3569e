#include "apiserver/endpoints/apply.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "apiserver/endpoints/patch_problems.h"
#include "apiserver/endpoints/typed_decoding.h"
#include "apiserver/endpoints/yaml.h"
#include "apiserver/names.h"
#include "apiserver/resources/write_steps.h"
#include "lookout/api/error.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::string_view kPrefix = "error decoding YAML: ";

Document parse_config(const std::string& body) {
  Document config;
  try {
    // JSON is also YAML, but the JSON parser is faster.
    config = body.starts_with('{') ? api::Object::parse(body).to_document() : Document();
  } catch (const api::DecodeError&) {
    config.SetNull();
  }
  if (config.IsObject()) return config;
  try {
    const YamlTree tree(body);
    config = decode_json(to_json(tree.root()), kPrefix);
  } catch (const YamlError& e) {
    throw StatusError::bad_request(fmt::format("{}error converting YAML to JSON: yaml: line {}: {}",
                                               kPrefix, e.line(), e.what()));
  }
  // Go decodes empty text to an object without members.
  if (config.IsNull()) config.SetObject();
  if (!config.IsObject()) {
    throw StatusError::bad_request(fmt::format(
        "{}error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into "
        "Go value of type map[string]interface {{}}",
        kPrefix, json::type_name(config)));
  }
  return config;
}

/// Clients that have read an object omit its managedFields with "managedFields: null".
void remove_null_managed_fields(Document& config) {
  json::Value* const metadata = json::find(config, "metadata");
  if (metadata == nullptr || !metadata->IsObject()) return;
  const auto fields = metadata->FindMember("managedFields");
  if (fields != metadata->MemberEnd() && fields->value.IsNull()) metadata->EraseMember(fields);
}

/// repeated_keys() of a configuration that parse_config() could read.
std::vector<std::string> repeated_in(const std::string& body) {
  // JSON has the same repeated keys as YAML, but parsing it as YAML is slower.
  if (body.starts_with('{') && find_patch_problems(body, PatchForm::kObject).empty()) return {};
  try {
    return repeated_keys(YamlTree(body).root());
  } catch (const YamlError&) {
    return {};  // JSON that is not valid YAML
  }
}

StatusError repeats(const std::vector<std::string>& keys) {
  return StatusError::bad_request(fmt::format(
      "error strict decoding YAML: error converting YAML to JSON: {}", unmarshal_errors(keys)));
}

/// The server's rules for the resulting object.
void check_applied(const Object& applied, const Object& present, const resources::Target& target) {
  const resources::ServedResource& resource = *target.resource;
  if (!present && !applied.uid().empty()) {
    throw StatusError::conflict(
        resource.type.group, resource.type.plural, target.name,
        fmt::format("uid mismatch: the provided object specified uid {}, and no existing object "
                    "was found",
                    applied.uid()));
  }
  resources::check_identity(target, applied);
}

/// The types of fields have been checked; this finds values that Go's types cannot represent.
void check_decodes(const Object& applied, const ExpectedKind& expected) {
  const DecodingProblems problems = find_decoding_problems(applied, expected);
  if (!problems.error) return;
  api::Status status;
  status.code = 500;
  const api::GroupVersionKind& type = expected.type;
  status.message = fmt::format(
      "failed to convert new object ({}/{}; {}/{}, Kind={}) to proper version: unable to convert "
      "unstructured object to {}/{}, Kind={}: {}",
      applied.ns(), applied.name(), type.group, type.version, type.kind, type.group, type.version,
      type.kind, problems.converter_error);
  throw StatusError(std::move(status));
}

}  // namespace

resources::Store::Change parse_apply(const http::Request& request, const resources::Target& target,
                                     const ExpectedKind& expected,
                                     std::shared_ptr<const fields::FieldManager> manager,
                                     const WriteOptions& options,
                                     std::shared_ptr<std::vector<std::string>> warnings) {
  Document parsed = parse_config(request.body);
  remove_null_managed_fields(parsed);
  // Shared, because changes are copied.
  auto config = std::make_shared<const Document>(std::move(parsed));
  std::vector<std::string> repeated;
  if (options.field_validation != FieldValidation::kIgnore) repeated = repeated_in(request.body);
  return [config, manager = std::move(manager), target, expected, options,
          repeated = std::move(repeated), warnings = std::move(warnings)](const Object& present) {
    std::optional<Document> live;
    if (present) live = present.to_document();
    try {
      const Document document = manager->apply(live ? &*live : nullptr, *config, options.force);
      if (!repeated.empty() && options.field_validation == FieldValidation::kStrict)
        throw repeats(repeated);
      *warnings = repeated;
      Object applied = Object::from(document);
      check_applied(applied, present, target);
      check_decodes(applied, expected);
      return applied;
    } catch (const api::DecodeError& e) {
      throw StatusError::bad_request(e.what());
    }
  };
}

}  // namespace lookout::apiserver::endpoints
