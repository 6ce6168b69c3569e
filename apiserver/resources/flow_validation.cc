// Validation of flow schemas and priority levels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/bootstrap/flow_objects.h"
#include "apiserver/resources/field.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

bool has_wildcard(const Field& list) {
  const auto elements = (*list).elements();
  return std::any_of(elements.begin(), elements.end(),
                     [](Value one) { return one.as_string() == "*"; });
}

/// A list with "*" must have no other elements. Returns whether to check the elements.
bool check_wildcard(const Field& list, std::string_view missing, std::string_view what) {
  if (!list.check_present(missing)) return false;
  if (!has_wildcard(list)) return true;
  if ((*list).size() > 1)
    list.invalid(fmt::format("if '*' is present, must not specify other {}", what));
  return false;
}

void check_verbs(const Field& verbs) {
  constexpr std::string_view kVerbs[] = {"create", "delete", "deletecollection", "get",  "list",
                                         "patch",  "proxy",  "update",           "watch"};
  if (!check_wildcard(verbs, "verbs must contain at least one value", "verbs")) return;
  for (const Value verb : (*verbs).elements()) {
    if (std::find(std::begin(kVerbs), std::end(kVerbs), verb.as_string()) != std::end(kVerbs))
      continue;
    verbs.causes().push_back(
        {"FieldValueNotSupported",
         fmt::format(R"(Unsupported value: {}: supported values: "create", "delete", )"
                     R"("deletecollection", "get", "list", "patch", "proxy", "update", "watch")",
                     (*verbs).to_json()),
         verbs.path()});
    return;
  }
}

void check_url(const Field& url) {
  const std::string_view text = url.text();
  const auto stars = std::count(text.begin(), text.end(), '*');
  if (text.empty()) return url.invalid_text("must not be empty");
  if (text == "/") return;
  if (!text.starts_with('/')) return url.invalid_text("must start with slash");
  if (text.find(' ') != std::string_view::npos)
    return url.invalid_text("must not contain white-space");
  if (text.find("//") != std::string_view::npos)
    return url.invalid_text("must not contain double slash");
  if (stars > 1 || (stars == 1 && !text.ends_with("/*")))
    url.invalid_text("wildcard can only do suffix matching");
}

void check_subject(const Field& subject) {
  struct Kind {
    const char* name;
    const char* field;
  };
  constexpr Kind kKinds[] = {
      {"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}};
  const Field kind = subject["kind"];
  if (!kind.check_word({"Group", "ServiceAccount", "User"})) return;
  for (const Kind& one : kKinds) {
    if (kind.text() != one.name) continue;
    const Field named = subject[one.field];
    if (!named.exists()) {
      named.required(fmt::format("{} is required when subject kind is '{}'", one.field, one.name));
      continue;
    }
    const bool has_name = named["name"].check_present();
    if (kind.text() != "ServiceAccount") continue;
    if (has_name && named["name"].text() != "*")
      named["name"].check_form(rules::check_dns1123_subdomain);
    if (named["namespace"].check_present("must specify namespace for service account"))
      named["namespace"].check_form(rules::check_dns1123_label);
  }
  for (const Kind& one : kKinds) {
    if (kind.text() != one.name && subject[one.field].exists()) {
      subject[one.field].forbidden(
          fmt::format("{} is forbidden when subject kind is not '{}'", one.field, one.name));
    }
  }
}

void check_resource_rule(const Field& rule) {
  check_verbs(rule["verbs"]);
  check_wildcard(rule["apiGroups"], "resource rules must supply at least one api group",
                 "api groups");
  check_wildcard(rule["resources"], "resource rules must supply at least one resource",
                 "resources");
  const Field namespaces = rule["namespaces"];
  if (namespaces.empty() && rule["clusterScope"].is_true()) return;
  if (!check_wildcard(namespaces,
                      "resource rules that are not cluster scoped must supply at least one "
                      "namespace",
                      "namespaces"))
    return;
  namespaces.each([](const Field& ns) {
    for (const auto& message : rules::check_dns1123_label(ns.text()))
      ns.invalid_text("each member of this list must be '*' or a DNS-1123 label; " + message);
  });
}

/// The number of hash bits for this many shuffle-sharding hands.
int entropy_bits(std::int64_t queues, std::int64_t hand) {
  double bits = 0;
  for (std::int64_t i = 0; i < hand; ++i) bits += std::log2(static_cast<double>(queues - i));
  return static_cast<int>(std::ceil(bits));
}

void check_queuing(const Field& queuing) {
  constexpr std::int64_t kMostQueues = 10'000'000;
  constexpr int kMostBits = 60;
  const auto check_positive = [](const Field& number) {
    if (number.number() > 0) return true;
    number.invalid_number("must be positive");
    return false;
  };
  const Field queues = queuing["queues"];
  const Field hand = queuing["handSize"];
  check_positive(queuing["queueLengthLimit"]);
  if (check_positive(queues) && queues.number() > kMostQueues)
    queues.invalid_number("must not be greater than 10000000");
  if (!check_positive(hand)) return;
  if (hand.number() > queues.number()) {
    hand.invalid_number(fmt::format("should not be greater than queues ({})", queues.number()));
  } else if (entropy_bits(queues.number(), hand.number()) > kMostBits) {
    hand.invalid_number(fmt::format(
        "required entropy bits of deckSize {} and handSize {} should not be greater than 60",
        queues.number(), hand.number()));
  }
}

void check_shares(const Field& level) {
  constexpr std::int64_t kWhole = 100;
  level["nominalConcurrencyShares"].check_range(0, INT64_MAX, "must be a non-negative integer");
  if (const Field response = level["limitResponse"]; response.exists()) {
    const Field queuing = response["queuing"];
    if (response["type"].check_word({"Queue", "Reject"})) {
      if (response["type"].text() == "Reject") {
        if (queuing.exists())
          queuing.forbidden("must be nil if limited.limitResponse.type is not Limited");
      } else if (!queuing.exists()) {
        queuing.required("must not be empty if limited.limitResponse.type is Limited");
      } else {
        check_queuing(queuing);
      }
    }
  }
  level["lendablePercent"].check_range(0, kWhole);
  level["borrowingLimitPercent"].check_range(0, INT64_MAX,
                                             "if specified, must be a non-negative integer");
}

/// Kubernetes' internal types of flow control.
namespace flow_types {

/// A field of Kubernetes' internal types, in their order.
struct GoField {
  std::string_view name;  // in JSON
  /// How Go writes the field if it is absent; kStructure: with its fields.
  std::string_view absent;
  std::span<const GoField> fields = {};  // of the structure, or of the elements of a list
};
constexpr std::string_view kNull = "null";  // of pointers and lists
constexpr std::string_view kEmptyText = R"("")";
constexpr std::string_view kStructure;

constexpr GoField kName[] = {{"name", kEmptyText}};
constexpr GoField kAccount[] = {{"namespace", kEmptyText}, {"name", kEmptyText}};
constexpr GoField kSubject[] = {{"kind", kEmptyText},
                                {"user", kNull, kName},
                                {"group", kNull, kName},
                                {"serviceAccount", kNull, kAccount}};
constexpr GoField kResourceRule[] = {{"verbs", kNull},
                                     {"apiGroups", kNull},
                                     {"resources", kNull},
                                     {"clusterScope", "false"},
                                     {"namespaces", kNull}};
constexpr GoField kPathRule[] = {{"verbs", kNull}, {"nonResourceURLs", kNull}};
constexpr GoField kRule[] = {{"subjects", kNull, kSubject},
                             {"resourceRules", kNull, kResourceRule},
                             {"nonResourceRules", kNull, kPathRule}};
constexpr GoField kMethod[] = {{"type", kEmptyText}};
constexpr GoField kSchemaSpec[] = {{"priorityLevelConfiguration", kStructure, kName},
                                   {"matchingPrecedence", "0"},
                                   {"distinguisherMethod", kNull, kMethod},
                                   {"rules", kNull, kRule}};
constexpr GoField kQueuing[] = {{"queues", "0"}, {"handSize", "0"}, {"queueLengthLimit", "0"}};
constexpr GoField kResponse[] = {{"type", kEmptyText}, {"queuing", kNull, kQueuing}};
constexpr GoField kLimited[] = {{"nominalConcurrencyShares", "0"},
                                {"limitResponse", kStructure, kResponse},
                                {"lendablePercent", kNull},
                                {"borrowingLimitPercent", kNull}};
constexpr GoField kExempt[] = {{"nominalConcurrencyShares", kNull}, {"lendablePercent", kNull}};
constexpr GoField kLevelSpec[] = {
    {"type", kEmptyText}, {"limited", kNull, kLimited}, {"exempt", kNull, kExempt}};

}  // namespace flow_types

std::string go_json(Value value, std::span<const flow_types::GoField> fields);

std::string go_json(Value value, const flow_types::GoField& field) {
  if (!value.exists() && field.absent != flow_types::kStructure) return std::string(field.absent);
  if (field.fields.empty()) return value.to_json();
  if (!value.is_array()) return go_json(value, field.fields);
  std::vector<std::string> elements;
  for (const Value element : value.elements()) elements.push_back(go_json(element, field.fields));
  return fmt::format("[{}]", fmt::join(elements, ","));
}

/// A structure as Go writes its internal type, which has no names for JSON.
std::string go_json(Value value, std::span<const flow_types::GoField> fields) {
  std::vector<std::string> members;
  for (const flow_types::GoField& field : fields) {
    std::string name(field.name == "apiGroups" ? "aPIGroups" : field.name);
    name.front() = static_cast<char>(name.front() - 'a' + 'A');
    members.push_back(fmt::format(R"("{}":{})", name, go_json(value[field.name], field)));
  }
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

/// Mandatory objects must have their mandatory specs.
void check_mandatory(const Object& object, const Field& spec) {
  if (!bootstrap::is_mandatory_flow_object(object.name())) return;
  for (const Object& fixed : bootstrap::flow_objects()) {
    if (fixed.name() != object.name() || fixed.kind() != object.kind()) continue;
    if (spec.is(fixed["spec"])) continue;
    const bool is_schema = object.kind() == "FlowSchema";
    const std::span<const flow_types::GoField> fields =
        is_schema ? std::span<const flow_types::GoField>(flow_types::kSchemaSpec)
                  : std::span<const flow_types::GoField>(flow_types::kLevelSpec);
    spec.invalid_as(go_json(*spec, fields),
                    fmt::format("spec of '{}' must equal the fixed value", object.name()));
  }
}

}  // namespace

void validate_flow_schema(const Object& schema, Causes& causes) {
  constexpr std::int64_t kMost = 10000;
  const Field spec(schema["spec"], "spec", causes);
  check_mandatory(schema, spec);
  const Field precedence = spec["matchingPrecedence"];
  precedence.check_range(1, INT64_MAX, "must be a positive value");
  precedence.check_range(INT64_MIN, kMost, "must not be greater than 10000");
  if (precedence.number() == 1 && schema.name() != "exempt")
    precedence.invalid_number("only the schema named 'exempt' may have matchingPrecedence 1");
  if (const Field method = spec["distinguisherMethod"]; method.exists()) {
    const std::string_view type = method["type"].text();
    if (type != "ByNamespace" && type != "ByUser") {
      causes.push_back({"FieldValueNotSupported",
                        fmt::format(R"(Unsupported value: {{"Type":"{}"}}: supported values: )"
                                    R"("ByNamespace", "ByUser")",
                                    type),
                        method["type"].path()});
    }
  }
  const Field level = spec["priorityLevelConfiguration"]["name"];
  if (level.check_present("must reference a priority level"))
    level.check_form(rules::check_dns1123_subdomain);
  spec["rules"].each([](const Field& rule) {
    rule["subjects"].check_present("subjects must contain at least one value");
    rule["subjects"].each(check_subject);
    if (rule["resourceRules"].empty() && rule["nonResourceRules"].empty())
      rule.required("at least one of resourceRules and nonResourceRules has to be non-empty");
    rule["resourceRules"].each(check_resource_rule);
    rule["nonResourceRules"].each([](const Field& one) {
      check_verbs(one["verbs"]);
      const Field urls = one["nonResourceURLs"];
      if (check_wildcard(urls, "nonResourceURLs must contain at least one value",
                         "non-resource URLs"))
        urls.each(check_url);
    });
  });
}

void validate_priority_level(const Object& level, Causes& causes) {
  const Field spec(level["spec"], "spec", causes);
  const Field type = spec["type"];
  const bool is_exempt = type.text() == "Exempt";
  if ((level.name() == "exempt") != is_exempt)
    type.invalid_text("must be 'Exempt' if and only if `name` is 'exempt'");
  // The amounts of the mandatory level "exempt" may change.
  if (!is_exempt) check_mandatory(level, spec);
  if (!type.check_word({"Exempt", "Limited"})) return;
  if (is_exempt) {
    if (spec["limited"].exists())
      spec["limited"].forbidden("must be nil if the type is not Limited");
    check_shares(spec["exempt"]);
    return;
  }
  if (spec["exempt"].exists()) spec["exempt"].forbidden("must be nil if the type is Limited");
  if (!spec["limited"].exists())
    return spec["limited"].required("must not be empty when type is Limited");
  check_shares(spec["limited"]);
}

void validate_flow_status(const Object& object, const Object& /*old*/, Causes& causes) {
  std::set<std::string_view> types;
  Field(object["status"]["conditions"], "status.conditions", causes)
      .each([&](const Field& condition) {
        const Field type = condition["type"];
        if (!types.insert(type.text()).second) type.duplicate();
        type.check_present();
      });
}

}  // namespace lookout::apiserver::resources
