// Validation of custom resource definitions.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/pem.h"
#include "apiserver/resources/api_approval.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/resources/field.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/patterns.h"
#include "apiserver/resources/schema_rules.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/ascii.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

/// Validates a simple JSON path such as ".spec.replicas". Returns whether it is valid.
bool validate_simple_path(std::string_view path, const std::string& field, Causes& causes) {
  if (path.empty()) {
    causes.push_back(rules::required(field, ""));
  } else if (path.front() != '.') {
    causes.push_back(rules::invalid(field, path, "must be a simple json path starting with ."));
  }
  return path.starts_with('.');
}

void validate_columns(Value columns, const std::string& path, Causes& causes) {
  constexpr std::array<std::string_view, 5> kTypes = {"boolean", "date", "integer", "number",
                                                      "string"};
  constexpr std::array<std::string_view, 8> kFormats = {"byte",  "date",  "date-time", "double",
                                                        "float", "int32", "int64",     "password"};
  std::size_t index = 0;
  for (const Value column : columns.elements()) {
    const std::string here = fmt::format("{}.additionalPrinterColumns[{}]", path, index++);
    if (column["name"].as_string().empty()) causes.push_back(rules::required(here + ".name", ""));
    const std::string types = fmt::format("must be one of {}", fmt::join(kTypes, ","));
    const std::string_view type = column["type"].as_string();
    if (type.empty()) {
      causes.push_back(rules::required(here + ".type", types));
    } else if (!is_one_of(type, kTypes)) {
      causes.push_back(rules::invalid(here + ".type", type, types));
    }
    const std::string_view format = column["format"].as_string();
    if (!format.empty() && !is_one_of(format, kFormats)) {
      causes.push_back(rules::invalid(here + ".format", format,
                                      fmt::format("must be one of {}", fmt::join(kFormats, ","))));
    }
    validate_simple_path(column["jsonPath"].as_string(), here + ".JSONPath", causes);
  }
}

void validate_scale(Value scale, const std::string& path, Causes& causes) {
  if (!scale.is_object()) return;
  const std::string here = path + ".subresources.scale.";
  const auto check = [&](const char* name, std::initializer_list<std::string_view> places,
                         const char* why) {
    const std::string_view text = scale[name].as_string();
    if (!validate_simple_path(text, here + name, causes)) return;
    if (std::none_of(places.begin(), places.end(),
                     [&](std::string_view place) { return text.starts_with(place); }))
      causes.push_back(rules::invalid(here + name, text, why));
  };
  check("specReplicasPath", {".spec."}, "should be a json path under .spec");
  check("statusReplicasPath", {".status."}, "should be a json path under .status");
  if (!scale["labelSelectorPath"].as_string().empty()) {
    check("labelSelectorPath", {".spec.", ".status."},
          "should be a json path under either .spec or .status");
  }
}

void validate_selectable_fields(Value fields, Value schema, const std::string& path,
                                Causes& causes) {
  constexpr std::array<std::string_view, 3> kTypes = {"string", "boolean", "integer"};
  constexpr std::size_t kMost = 8;
  std::set<std::string_view> seen;
  std::size_t index = 0;
  std::size_t count = 0;
  for (const Value field : fields.elements()) {
    const std::string here = fmt::format("{}.selectableFields[{}].jsonPath", path, index++);
    const std::string_view text = field["jsonPath"].as_string();
    if (text.empty()) {
      causes.push_back(rules::required(here, ""));
      continue;
    }
    if (!seen.insert(text).second) {
      causes.push_back(rules::duplicate(here, text));
      continue;
    }
    Value part = schema;
    if (text.front() != '.') {
      causes.push_back(rules::invalid(here, text,
                                      fmt::format("is an invalid path: expected [ or . but got: {}",
                                                  text.substr(0, text.find('.')))));
      continue;
    }
    for (std::string_view rest = text; !rest.empty() && part.exists();) {
      const std::size_t end = std::min(rest.find('.', 1), rest.size());
      const std::string_view name = rest.substr(1, end - 1);
      part = name == "metadata" ? Value() : part["properties"][name];
      rest.remove_prefix(end);
    }
    if (!part.exists()) {
      causes.push_back(
          rules::invalid(here, text, "is an invalid path: does not refer to a valid field"));
      continue;
    }
    ++count;
    if (const auto type = part["type"].as_string();
        std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) {
      causes.push_back(rules::invalid(here, text,
                                      "must point to a field of type string, boolean or integer. "
                                      "Enum string fields and strings with formats are allowed."));
    }
  }
  if (count > kMost) {
    causes.push_back({"FieldValueTooMany",
                      fmt::format("Too many: {}: must have at most {} items", count, kMost),
                      path + ".selectableFields"});
  }
}

/// The versions in Go's syntax, without schemas, columns and so on. (Kubernetes omits them, too, if
/// they are the same in all versions.)
std::string versions_in_go(Value versions) {
  if (versions.empty()) return "null";
  std::string out;
  for (const Value version : versions.elements()) {
    const Value warning = version["deprecationWarning"];
    out += fmt::format(
        R"({}{{"Name":"{}","Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{},)"
        R"("Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,)"
        R"("SelectableFields":null}})",
        out.empty() ? "" : ",", version["name"].as_string(), version["served"].as_bool(),
        version["storage"].as_bool(), version["deprecated"].as_bool(),
        warning.is_string() ? warning.to_json() : "null");
  }
  return "[" + out + "]";
}

/// Objects may still be stored in former storage versions.
void validate_stored_versions(Value stored, Value versions, Causes& causes) {
  const std::string field = "status.storedVersions";
  const auto refuse_all = [&](const std::string& why) {
    causes.push_back(
        {"FieldValueInvalid",
         fmt::format("Invalid value: {}: {}", stored.empty() ? "null" : stored.to_json(), why),
         field});
  };
  if (stored.empty()) return refuse_all("must have at least one stored version");
  const auto has = [](Value list, std::string_view name, bool by_name) {
    const auto elements = list.elements();
    return std::any_of(elements.begin(), elements.end(), [&](Value one) {
      return (by_name ? one["name"] : one).as_string() == name;
    });
  };
  for (const Value version : versions.elements()) {
    const std::string_view name = version["name"].as_string();
    if (version["storage"].as_bool() && !has(stored, name, false))
      refuse_all(fmt::format("must have the storage version {}", name));
  }
  std::size_t index = 0;
  for (const Value one : stored.elements()) {
    const std::string here = fmt::format("{}[{}]", field, index++);
    const std::string_view name = one.as_string();
    if (has(versions, name, true)) continue;
    causes.push_back(rules::invalid(
        here, name,
        fmt::format("missing from spec.versions; {0} was previously a storage version, and must "
                    "remain in spec.versions until a storage migration ensures no data remains "
                    "persisted in {0} and removes {0} from status.storedVersions",
                    name)));
  }
}

/// A warning with unprintable characters would be an invalid header.
void validate_deprecation(Value version, const std::string& here, Causes& causes) {
  const Value warning = version["deprecationWarning"];
  if (!warning.exists()) return;
  const std::string_view text = warning.as_string();
  const auto refuse = [&](const std::string& why) {
    causes.push_back(rules::invalid(here + ".deprecationWarning", text, why));
  };
  if (!version["deprecated"].as_bool()) return refuse("can only be set for deprecated versions");
  constexpr std::size_t kLongest = 256;
  if (text.size() > kLongest) refuse("must be <= 256 characters long");
  if (text.empty()) refuse("must not be an empty string");
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  const auto control = std::find_if(text.begin(), text.end(), is_control);
  if (control == text.end()) return;
  refuse(fmt::format(
      "must only contain printable UTF-8 characters; non-printable character found at index {}",
      control - text.begin()));
}

/// In kube-apiserver, the content of `webhook` has other paths.
void validate_conversion(Value conversion, Causes& causes) {
  constexpr std::array<std::string_view, 2> kStrategies = {"None", "Webhook"};
  constexpr const char* kClient = "spec.conversion.webhookClientConfig";
  constexpr const char* kVersions = "spec.conversion.conversionReviewVersions";
  const std::string_view strategy = conversion["strategy"].as_string();
  if (strategy != kStrategies[0] && strategy != kStrategies[1])
    causes.push_back(rules::not_supported("spec.conversion.strategy", strategy, kStrategies));
  const Value client = conversion["webhook"]["clientConfig"];
  const Value versions = conversion["webhook"]["conversionReviewVersions"];
  if (strategy != "Webhook") {
    constexpr const char* kWhy = "should not be set when strategy is not set to Webhook";
    if (client.is_object()) causes.push_back(rules::forbidden(kClient, kWhy));
    if (!versions.empty()) causes.push_back(rules::forbidden(kVersions, kWhy));
    return;
  }
  if (client.is_object()) {
    validate_webhook_client(client, kClient, causes);
  } else {
    causes.push_back(rules::required(kClient, "required when strategy is set to Webhook"));
  }
  validate_review_versions(versions, kVersions, "", causes);
}

void check_label(std::string_view text, const std::string& field, Causes& causes) {
  if (const rules::Messages wrong = rules::check_dns1035_label(text); !wrong.empty())
    causes.push_back(rules::invalid(field, text, fmt::format("{}", fmt::join(wrong, ","))));
}

/// The names of a definition; the accepted ones may be empty.
void validate_names(Value names, const std::string& path, bool are_required, Causes& causes) {
  const auto field = [&](const char* name) { return fmt::format("{}.{}", path, name); };
  if (are_required) {
    for (const char* name : {"plural", "singular", "kind", "listKind"}) {
      if (names[name].as_string().empty()) causes.push_back(rules::required(field(name), ""));
    }
  }
  for (const char* name : {"plural", "singular"}) {
    if (const auto text = names[name].as_string(); !text.empty())
      check_label(text, field(name), causes);
  }
  for (const char* name : {"kind", "listKind"}) {
    const std::string_view text = names[name].as_string();
    const rules::Messages wrong = rules::check_dns1035_label(base::lower_case(text));
    if (text.empty() || wrong.empty()) continue;
    causes.push_back(rules::invalid(
        field(name), text,
        fmt::format("may have mixed case, but should otherwise match: {}", fmt::join(wrong, ","))));
  }
  const auto check_all = [&](const char* list) {
    std::size_t at = 0;
    for (const Value one : names[list].elements())
      check_label(one.as_string(), fmt::format("{}.{}[{}]", path, list, at++), causes);
  };
  check_all("shortNames");
  if (const auto kind = names["kind"].as_string();
      !kind.empty() && kind == names["listKind"].as_string()) {
    causes.push_back(
        rules::invalid(field("listKind"), kind, "kind and listKind may not be the same"));
  }
  check_all("categories");
}

/// Parts of versions.
struct Parts {
  bool schema = true;
  bool subresources = true;
  bool columns = true;
  bool fields = true;

  Parts others() const { return {!schema, !subresources, !columns, !fields}; }
};

/// The parts that are the same in all versions. kube-apiserver has them in the spec, not in the
/// versions.
Parts shared_parts(Value versions) {
  Parts out;
  const Value first = versions[0];
  const auto is_same = [&](Value version, const char* list) {
    return version[list] == first[list] || (version[list].empty() && first[list].empty());
  };
  for (const Value version : versions.elements()) {
    out.schema = out.schema && version["schema"] == first["schema"];
    out.subresources = out.subresources && version["subresources"] == first["subresources"];
    out.columns = out.columns && is_same(version, "additionalPrinterColumns");
    out.fields = out.fields && is_same(version, "selectableFields");
  }
  return out;
}

void validate_group(std::string_view group, Causes& causes) {
  if (group.empty()) return causes.push_back(rules::required("spec.group", ""));
  if (const rules::Messages wrong = rules::check_dns1123_subdomain(group); !wrong.empty()) {
    causes.push_back(rules::invalid("spec.group", group, fmt::format("{}", fmt::join(wrong, ","))));
  } else if (group.find('.') == std::string_view::npos) {
    causes.push_back(
        rules::invalid("spec.group", group, "should be a domain with at least one dot"));
  }
}

void validate_scope(std::string_view scope, Causes& causes) {
  constexpr std::array<std::string_view, 2> kScopes = {"Cluster", "Namespaced"};
  if (scope.empty()) {
    causes.push_back(rules::required("spec.scope", ""));
  } else if (!is_one_of(scope, kScopes)) {
    causes.push_back(rules::not_supported("spec.scope", scope, kScopes));
  }
}

void validate_whole_schema(Value schema, const std::string& path, bool has_status, Causes& causes) {
  if (!schema.exists()) return;
  validate_schema_rules(schema, path, has_status, causes);
  validate_patterns(schema, path, causes);
  const auto type = schema["type"].as_string();
  if (type.empty() || type == "object") return;
  causes.push_back(rules::invalid(path + ".type", type, "must be object at the root"));
  if (has_status) {
    causes.push_back(rules::invalid(path + ".type", type,
                                    "only \"object\" is allowed as the type at the root of the "
                                    "schema if the status subresource is enabled"));
  }
}

/// Validates these parts of a version, which are below `path`. The schema is at `schema_path`.
void validate_parts(Value version, const Parts& what, const std::string& path,
                    const std::string& schema_path, bool has_status, Causes& causes) {
  const Value schema = what.schema ? version["schema"]["openAPIV3Schema"] : Value();
  if (what.schema) validate_whole_schema(schema, schema_path, has_status, causes);
  if (what.subresources) validate_scale(version["subresources"]["scale"], path, causes);
  if (what.columns) validate_columns(version["additionalPrinterColumns"], path, causes);
  const Value fields = version["selectableFields"];
  if (!what.fields || fields.empty()) return;
  if (schema.exists()) return validate_selectable_fields(fields, schema, path, causes);
  causes.push_back(rules::invalid(path + ".selectableFields", "",
                                  path == "spec"
                                      ? "may only be set when validations.schema is included"
                                      : "may only be set when `version.schema.openAPIV3Schema` is "
                                        "not included"));
}

/// Validates a version without the shared parts.
void validate_version(Value version, const std::string& here, const Parts& shared, Causes& causes) {
  check_label(version["name"].as_string(), here + ".name", causes);
  validate_deprecation(version, here, causes);
  validate_parts(version, shared.others(), here, here + ".schema.openAPIV3Schema",
                 version["subresources"]["status"].exists(), causes);
}

void validate_versions(Value versions, const Parts& shared, Causes& causes) {
  std::size_t stored = 0;
  std::size_t index = 0;
  bool unique = true;
  std::set<std::string_view> names;
  for (const Value version : versions.elements()) {
    unique &= names.insert(version["name"].as_string()).second;
    if (version["storage"].as_bool()) ++stored;
    validate_version(version, fmt::format("spec.versions[{}]", index++), shared, causes);
  }
  const auto refuse = [&](const char* why) {
    causes.push_back({"FieldValueInvalid",
                      fmt::format("Invalid value: {}: {}", versions_in_go(versions), why),
                      "spec.versions"});
  };
  if (!unique) refuse("must contain unique version names");
  if (stored != 1) refuse("must have exactly one version marked as storage version");
  // The name of the first version is also in spec.version.
  if (const auto first = versions[0]["name"].as_string(); !first.empty())
    check_label(first, "spec.version", causes);
}

void refuse_unknown_fields(const char* why, Causes& causes) {
  causes.push_back({"FieldValueInvalid", fmt::format("Invalid value: true: {}", why),
                    "spec.preserveUnknownFields"});
}

/// Each version needs a schema. Defaults require pruning of unknown fields.
void validate_schemas_exist(Value spec, Causes& causes) {
  std::size_t index = 0;
  bool has_default = false;
  for (const Value version : spec["versions"].elements()) {
    const Value schema = version["schema"]["openAPIV3Schema"];
    if (!schema.exists()) {
      causes.push_back(
          rules::required(fmt::format("spec.versions[{}].schema.openAPIV3Schema", index), ""));
    }
    ++index;
    has_default |= has_defaults(schema);
  }
  if (has_default && spec["preserveUnknownFields"].as_bool())
    refuse_unknown_fields("must be false in order to use defaults in the schema", causes);
}

/// Why a bundle of certificates (in base64) cannot be loaded; null if it can.
const char* fault_of_bundle(std::string_view text) {
  const std::string bytes = decode_base64(text).value_or(std::string());
  const std::vector<PemBlock> blocks = read_pem(bytes);
  const auto is_certificate = [](const PemBlock& block) {
    return block.name == "CERTIFICATE" && block.headers.empty();
  };
  const auto is_valid = [&](const PemBlock& block) {
    if (!is_certificate(block)) return false;
    const auto* data = reinterpret_cast<const unsigned char*>(block.data.data());
    X509* const certificate = d2i_X509(nullptr, &data, static_cast<long>(block.data.size()));
    X509_free(certificate);
    return certificate != nullptr;
  };
  if (std::any_of(blocks.begin(), blocks.end(), is_valid)) return nullptr;
  ERR_clear_error();
  if (std::any_of(blocks.begin(), blocks.end(), is_certificate))
    return "failed to parse certificate: x509: malformed certificate";
  return blocks.empty() ? "unable to parse bytes as PEM block"
                        : "no valid certificate authority data seen";
}

/// The webhook of a served definition needs valid certificates, unless the previous ones were invalid.
void validate_bundle(const Object& definition, const Object& old, Causes& causes) {
  const auto bundle_of = [](const Object& one) {
    return one["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].as_string();
  };
  const std::string_view bundle = bundle_of(definition);
  if (bundle.empty() || definition["spec"]["conversion"]["strategy"].as_string() != "Webhook" ||
      !is_condition_true(old, "Established") ||
      (!bundle_of(old).empty() && fault_of_bundle(bundle_of(old)) != nullptr))
    return;
  if (const char* const fault = fault_of_bundle(bundle); fault != nullptr) {
    causes.push_back(rules::invalid("spec.conversion.webhookClientConfig.caBundle", bundle,
                                    fmt::format("unable to load root certificates: {}", fault)));
  }
}

/// Rejects invalid states, unless the old definition has the same state. `old` is empty for a new
/// definition.
void validate_policies(const Object& definition, const Object& old, Causes& causes) {
  using State = ApiApproval::State;
  if (is_protected_group(definition["spec"]["group"].as_string())) {
    const ApiApproval approval = ApiApproval::of(definition);
    const std::string field = fmt::format("metadata.annotations[{}]", ApiApproval::kAnnotation);
    const bool is_same = old && ApiApproval::of(old).state == approval.state;
    if (approval.state == State::kMissing && !is_same) {
      causes.push_back(rules::required(field, approval.reason));
    } else if (approval.state == State::kInvalid && !is_same) {
      causes.push_back(rules::invalid(
          field, definition["metadata"]["annotations"][ApiApproval::kAnnotation].as_string(),
          approval.reason));
    }
  }
  if (definition["spec"]["preserveUnknownFields"].as_bool() &&
      !(old && old["spec"]["preserveUnknownFields"].as_bool())) {
    refuse_unknown_fields(
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        "spec.versions[*].schema instead",
        causes);
  }
}

}  // namespace

void validate_custom_resource_definition(const Object& definition, Causes& causes) {
  const Value spec = definition["spec"];
  const Value names = spec["names"];
  const Value versions = spec["versions"];
  const std::string_view group = spec["group"].as_string();
  const std::string_view plural = names["plural"].as_string();
  if (!definition.name().empty() && definition.name() != fmt::format("{}.{}", plural, group)) {
    causes.push_back(rules::invalid("metadata.name", definition.name(),
                                    R"(must be spec.names.plural+"."+spec.group)"));
  }
  validate_group(group, causes);
  validate_scope(spec["scope"].as_string(), causes);
  validate_schemas_exist(spec, causes);
  const Parts shared = shared_parts(versions);
  validate_versions(versions, shared, causes);
  validate_names(names, "spec.names", true, causes);
  const auto elements = versions.elements();
  const bool has_status = std::any_of(elements.begin(), elements.end(), [](Value version) {
    return version["subresources"]["status"].exists();
  });
  validate_parts(versions[0], shared, "spec", "spec.validation.openAPIV3Schema", has_status,
                 causes);
  validate_conversion(spec["conversion"], causes);
  validate_names(definition["status"]["acceptedNames"], "status.acceptedNames", false, causes);
  validate_stored_versions(definition["status"]["storedVersions"], versions, causes);
}

void validate_new_custom_resource_definition(const Object& definition, Causes& causes) {
  validate_policies(definition, Object(), causes);
}

void validate_definition_status(const Object& definition, const Object& /*old*/, Causes& causes) {
  validate_names(definition["status"]["acceptedNames"], "status.acceptedNames", false, causes);
}

void validate_custom_resource_definition_update(const Object& definition, const Object& old,
                                                Causes& causes) {
  validate_bundle(definition, old, causes);
  const auto stays = [&](std::string_view path, Value now, Value before) {
    if (!(now == before))
      causes.push_back(rules::invalid(path, now.as_string(), "field is immutable"));
  };
  if (is_condition_true(old, "Established")) {
    stays("spec.scope", definition["spec"]["scope"], old["spec"]["scope"]);
    stays("spec.names.kind", definition["spec"]["names"]["kind"], old["spec"]["names"]["kind"]);
  }
  stays("spec.group", definition["spec"]["group"], old["spec"]["group"]);
  stays("spec.names.plural", definition["spec"]["names"]["plural"], old["spec"]["names"]["plural"]);
  validate_policies(definition, old, causes);
}

}  // namespace lookout::apiserver::resources
