// Validation of custom resource definitions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/conditions.h"
#include "apiserver/resources/field.h"
#include "apiserver/resources/patterns.h"
#include "apiserver/resources/schema_rules.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

/// Whether it is one. (More of it is not looked at when a definition is made.)
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

/// The versions as they are in Go. (Schemas, columns and so on are left out, as they are there when
/// all versions have the same.)
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

/// Every version that was ever the storage version may still be stored.
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

/// A warning that is not printable would make a header that clients cannot read.
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

/// (The API server has what `webhook` holds in other places inside.)
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

/// The names of a definition; the accepted ones may be empty.
void validate_names(Value names, const std::string& path, bool are_required, Causes& causes) {
  const auto is_missing = [&](std::string_view value, const std::string& field) {
    if (value.empty() && are_required) causes.push_back(rules::required(field, ""));
    return value.empty();
  };
  for (const char* name : {"plural", "singular"}) {
    const std::string_view value = names[name].as_string();
    const std::string field = fmt::format("{}.{}", path, name);
    if (is_missing(value, field)) continue;
    for (const auto& message : rules::check_dns1035_label(value))
      causes.push_back(rules::invalid(field, value, message));
  }
  for (const char* name : {"kind", "listKind"}) {
    const std::string_view value = names[name].as_string();
    const std::string field = fmt::format("{}.{}", path, name);
    if (is_missing(value, field)) continue;
    for (const auto& message : rules::check_dns1035_label(base::lower_case(value))) {
      causes.push_back(rules::invalid(
          field, value, "may have mixed case, but should otherwise match: " + message));
    }
  }
  if (const auto kind = names["kind"].as_string();
      !kind.empty() && kind == names["listKind"].as_string()) {
    causes.push_back(
        rules::invalid(path + ".listKind", kind, "kind and listKind may not be the same"));
  }
  for (const char* name : {"shortNames", "categories"}) {
    std::size_t at = 0;
    for (const Value one : names[name].elements()) {
      const std::string field = fmt::format("{}.{}[{}]", path, name, at++);
      for (const auto& message : rules::check_dns1035_label(one.as_string()))
        causes.push_back(rules::invalid(field, one.as_string(), message));
    }
  }
}

}  // namespace

void validate_custom_resource_definition(const Object& definition, Causes& causes) {
  const Value spec = definition["spec"];
  const Value names = spec["names"];
  const std::string_view group = spec["group"].as_string();
  const std::string_view plural = names["plural"].as_string();
  if (!definition.name().empty() && definition.name() != fmt::format("{}.{}", plural, group)) {
    causes.push_back(rules::invalid("metadata.name", definition.name(),
                                    R"(must be spec.names.plural+"."+spec.group)"));
  }
  if (group.empty()) {
    causes.push_back(rules::required("spec.group", ""));
  } else {
    const rules::Messages wrong = rules::check_dns1123_subdomain(group);
    if (!wrong.empty()) {
      causes.push_back(
          rules::invalid("spec.group", group, fmt::format("{}", fmt::join(wrong, ","))));
    } else if (group.find('.') == std::string_view::npos)
      causes.push_back(
          rules::invalid("spec.group", group, "should be a domain with at least one dot"));
  }
  constexpr const char* kApproved = "api-approved.kubernetes.io";
  const bool is_protected = group == "k8s.io" || group == "kubernetes.io" ||
                            group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
  if (is_protected && definition["metadata"]["annotations"][kApproved].as_string().empty()) {
    causes.push_back(
        rules::required(fmt::format("metadata.annotations[{}]", kApproved),
                        fmt::format("protected groups must have approval annotation \"{}\", see "
                                    "https://github.com/kubernetes/enhancements/pull/1111",
                                    kApproved)));
  }
  const std::string_view scope = spec["scope"].as_string();
  constexpr std::array<std::string_view, 2> kScopes = {"Cluster", "Namespaced"};
  if (scope.empty()) {
    causes.push_back(rules::required("spec.scope", ""));
  } else if (scope != kScopes[0] && scope != kScopes[1]) {
    causes.push_back(rules::not_supported("spec.scope", scope, kScopes));
  }
  std::size_t stored = 0;
  std::size_t index = 0;
  bool has_default = false;
  bool unique = true;
  std::set<std::string_view> versions;
  for (const Value version : spec["versions"].elements()) {
    const std::string here = fmt::format("spec.versions[{}]", index++);
    const std::string_view name = version["name"].as_string();
    for (const auto& message : rules::check_dns1035_label(name))
      causes.push_back(rules::invalid(here + ".name", name, message));
    unique &= versions.insert(name).second;
    if (version["storage"].as_bool()) ++stored;
    validate_deprecation(version, here, causes);
    if (!version["schema"]["openAPIV3Schema"].exists()) {
      causes.push_back(rules::required(here + ".schema.openAPIV3Schema", ""));
      continue;
    }
    // A schema that all versions share is at another place inside the API server.
    const Value schema = version["schema"]["openAPIV3Schema"];
    const std::string path = spec["versions"].size() == 1
                                 ? std::string("spec.validation.openAPIV3Schema")
                                 : here + ".schema.openAPIV3Schema";
    const bool has_status = version["subresources"]["status"].exists();
    validate_schema_rules(schema, path, has_status, causes);
    validate_patterns(schema, path, causes);
    if (const auto type = schema["type"].as_string(); !type.empty() && type != "object") {
      causes.push_back(rules::invalid(path + ".type", type, "must be object at the root"));
      if (has_status) {
        causes.push_back(rules::invalid(path + ".type", type,
                                        "only \"object\" is allowed as the type at the root of the "
                                        "schema if the status subresource is enabled"));
      }
    }
    // So are columns, subresources and fields.
    const std::string shared = spec["versions"].size() == 1 ? "spec" : here;
    validate_columns(version["additionalPrinterColumns"], shared, causes);
    validate_scale(version["subresources"]["scale"], shared, causes);
    validate_selectable_fields(version["selectableFields"], schema, shared, causes);
    has_default |= has_defaults(schema);
  }
  if (spec["preserveUnknownFields"].as_bool()) {
    const auto refuse = [&](const char* why) {
      causes.push_back({"FieldValueInvalid", fmt::format("Invalid value: true: {}", why),
                        "spec.preserveUnknownFields"});
    };
    if (has_default) refuse("must be false in order to use defaults in the schema");
    refuse(
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        "spec.versions[*].schema instead");
  }
  const auto refuse_versions = [&](const char* why) {
    causes.push_back({"FieldValueInvalid",
                      fmt::format("Invalid value: {}: {}", versions_in_go(spec["versions"]), why),
                      "spec.versions"});
  };
  if (!unique) refuse_versions("must contain unique version names");
  if (stored != 1) refuse_versions("must have exactly one version marked as storage version");
  // (The name of the first version is kept in another place, too.)
  const std::string_view first = spec["versions"][0]["name"].as_string();
  if (!first.empty()) {
    for (const auto& message : rules::check_dns1035_label(first))
      causes.push_back(rules::invalid("spec.version", first, message));
  }
  validate_conversion(spec["conversion"], causes);
  validate_names(names, "spec.names", true, causes);
  validate_stored_versions(definition["status"]["storedVersions"], spec["versions"], causes);
}

void validate_definition_status(const Object& definition, const Object& /*old*/, Causes& causes) {
  validate_names(definition["status"]["acceptedNames"], "status.acceptedNames", false, causes);
}

void validate_custom_resource_definition_update(const Object& definition, const Object& old,
                                                Causes& causes) {
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
}

}  // namespace lookout::apiserver::resources
