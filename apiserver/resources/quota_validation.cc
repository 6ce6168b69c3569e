// Validation of quotas and limit ranges.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::resources {
namespace {

using Names = std::initializer_list<std::string_view>;

void check_quota_amounts(const Field& amounts) {
  amounts.each_entry([](std::string_view name, const Field& amount) {
    check_resource_name(amount, name);
    const bool is_standard = is_quota_resource(name);
    if (name.find('/') == std::string_view::npos && !is_standard) {
      amount.causes().push_back(
          rules::invalid(amount.path(), name, "must be a standard resource for quota"));
    }
    check_amount(amount, name);
  });
}

constexpr std::array<std::string_view, 7> kScopes = {"Terminating",
                                                     "NotTerminating",
                                                     "BestEffort",
                                                     "NotBestEffort",
                                                     "PriorityClass",
                                                     "VolumeAttributesClass",
                                                     "CrossNamespacePodAffinity"};

/// Whether a quota with this scope can count the resource.
bool counts(std::string_view scope, std::string_view resource) {
  const bool is_pods = resource == "pods";
  if (scope == "BestEffort") return is_pods;
  if (scope == "VolumeAttributesClass")
    return is_one_of(resource, Names{"persistentvolumeclaims", "requests.storage"});
  if (!is_one_of(scope, kScopes)) return true;
  return is_pods || is_one_of(resource, Names{"cpu", "memory", "limits.cpu", "limits.memory",
                                              "requests.cpu", "requests.memory"});
}

/// Calls `refuse` once for each invalid resource.
template <class Refuse>
void check_counted(const Field& hard, std::string_view scope, Refuse refuse) {
  for (const auto& [name, amount] : (*hard).members()) {
    if (is_quota_resource(name) && !counts(scope, name))
      refuse("unsupported scope applied to resource");
  }
}

template <class Refuse>
void check_conflicts(const std::set<std::string_view>& scopes, Refuse refuse) {
  if (scopes.contains("BestEffort") && scopes.contains("NotBestEffort"))
    refuse("conflicting scopes");
  if (scopes.contains("Terminating") && scopes.contains("NotTerminating"))
    refuse("conflicting scopes");
}

void check_scopes(const Field& spec) {
  const Field scopes = spec["scopes"];
  const auto refuse = [&](const char* why) { scopes.invalid(why); };
  std::set<std::string_view> seen;
  scopes.each([&](const Field& scope) {
    if (!is_one_of(scope.text(), kScopes)) refuse("unsupported scope");
    check_counted(spec["hard"], scope.text(), refuse);
    seen.insert(scope.text());
  });
  check_conflicts(seen, refuse);
}

void check_scope_selector(const Field& spec) {
  const Field selector = spec["scopeSelector"];
  const Field list = selector["matchExpressions"];
  const auto at_list = [&](const Field& expression, const char* field) {
    return expression[field].named(
        fmt::format("{}.{}", selector.path() + ".matchExpressions", field));
  };
  std::set<std::string_view> seen;
  list.each([&](const Field& expression) {
    const Field scope = at_list(expression, "scopeName");
    const Field relation = at_list(expression, "operator");
    const Field values = at_list(expression, "values");
    if (!is_one_of(scope.text(), kScopes)) scope.invalid_text("unsupported scope");
    check_counted(spec["hard"], scope.text(), [&](const char* why) {
      // Shows the selector in Go's syntax.
      std::string shown;
      for (const Value one : (*list).elements()) {
        shown += fmt::format(R"({}{{"ScopeName":"{}","Operator":"{}","Values":{}}})",
                             shown.empty() ? "" : ",", one["scopeName"].as_string(),
                             one["operator"].as_string(),
                             one["values"].exists() ? one["values"].to_json() : "null");
      }
      list.invalid_as(fmt::format(R"({{"MatchExpressions":[{}]}})", shown), why);
    });
    if (is_one_of(scope.text(), Names{"BestEffort", "NotBestEffort", "Terminating",
                                      "NotTerminating", "CrossNamespacePodAffinity"}) &&
        relation.text() != "Exists") {
      relation.invalid_text(
          "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
          "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
          "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
    }
    if (relation.text() == "In" || relation.text() == "NotIn") {
      values.check_present(
          "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
    } else if (relation.text() == "Exists" || relation.text() == "DoesNotExist") {
      if (!values.empty()) {
        values.invalid(
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
      }
    } else {
      relation.invalid_text("not a valid selector operator");
    }
    seen.insert(scope.text());
  });
  check_conflicts(seen, [&](const char* why) { spec["scopes"].named(list.path()).invalid(why); });
}

std::optional<Quantity> amount_of(const Field& amounts, std::string_view name) {
  return Quantity::parse((*amounts)[name].as_string());
}

/// min, default and max of a resource must be in ascending order.
void check_bounds(const Field& limit, std::string_view name) {
  const auto least = amount_of(limit["min"], name);
  const auto most = amount_of(limit["max"], name);
  const bool of_pod = limit["type"].text() == "Pod";
  const auto standard = of_pod ? std::nullopt : amount_of(limit["default"], name);
  const auto request = of_pod ? std::nullopt : amount_of(limit["defaultRequest"], name);
  const auto ratio = amount_of(limit["maxLimitRequestRatio"], name);
  const auto refuse = [&](const char* field, const Quantity& shown, const std::string& why) {
    limit.causes().push_back(rules::invalid(limit[field].key(name).path(), shown.to_string(), why));
  };
  const auto order = [&](const char* field, const std::optional<Quantity>& a, const char* a_name,
                         const std::optional<Quantity>& b, const char* b_name,
                         const std::optional<Quantity>& shown) {
    if (!a || !b || *a <= *b) return;
    refuse(field, *shown,
           fmt::format("{} value {} is greater than {} value {}", a_name, a->to_string(), b_name,
                       b->to_string()));
  };
  order("min", least, "min", most, "max", least);
  order("defaultRequest", least, "min", request, "default request", request);
  order("defaultRequest", request, "default request", most, "max", request);
  order("defaultRequest", request, "default request", standard, "default limit", request);
  order("default", least, "min", standard, "default", least);
  order("default", standard, "default", most, "max", most);
  if (ratio && *ratio < *Quantity::parse("1"))
    refuse("maxLimitRequestRatio", *ratio,
           fmt::format("ratio {} is less than 1", ratio->to_string()));
  if (ratio && least && most && ratio->as_double() > most->as_double() / least->as_double()) {
    refuse("maxLimitRequestRatio", *ratio,
           fmt::format("ratio {} is greater than max/min = {:f}", ratio->to_string(),
                       most->as_double() / least->as_double()));
  }
  if (!may_be_overcommitted(name) && standard && request && !(*standard == *request)) {
    refuse("defaultRequest", *request,
           fmt::format("default value {} must equal to defaultRequest value {} in {}",
                       standard->to_string(), request->to_string(), name));
  }
}

}  // namespace

void validate_resource_quota(const Object& quota, Causes& causes) {
  const Field spec(quota["spec"], "spec", causes);
  check_quota_amounts(spec["hard"]);
  check_scopes(spec);
  check_scope_selector(spec);
}

void validate_resource_quota_update(const Object& quota, const Object& old, Causes& causes) {
  const auto scopes_of = [](const Object& object) {
    std::set<std::string_view> out;
    for (const Value scope : object["spec"]["scopes"].elements()) out.insert(scope.as_string());
    return out;
  };
  if (scopes_of(quota) != scopes_of(old))
    Field(quota["spec"]["scopes"], "spec.scopes", causes).invalid("field is immutable");
}

void validate_resource_quota_status(const Object& quota, const Object& /*old*/, Causes& causes) {
  check_quota_amounts(Field(quota["status"]["hard"], "status.hard", causes));
  check_quota_amounts(Field(quota["status"]["used"], "status.used", causes));
}

void validate_limit_range(const Object& range, Causes& causes) {
  std::set<std::string_view> types;
  Field(range["spec"]["limits"], "spec.limits", causes).each([&](const Field& limit) {
    const Field type = limit["type"];
    const bool of_pod = type.text() == "Pod";
    if (type.check_form(rules::check_qualified_name) &&
        type.text().find('/') == std::string_view::npos &&
        !is_one_of(type.text(), Names{"Pod", "Container", "PersistentVolumeClaim"}))
      type.invalid_text("must be a standard limit type or fully qualified");
    if (!types.insert(type.text()).second) type.duplicate();
    std::set<std::string_view> names;
    const auto check_names = [&](const char* field) {
      limit[field].each_entry([&](std::string_view name, const Field& amount) {
        if (of_pod || type.text() == "Container") {
          check_container_resource_name(amount, name);
        } else {
          check_resource_name(amount, name);
        }
        names.insert(name);
      });
    };
    check_names("max");
    check_names("min");
    for (const char* field : {"default", "defaultRequest"}) {
      if (!of_pod) {
        check_names(field);
      } else if (!limit[field].empty()) {
        limit[field].forbidden("may not be specified when `type` is 'Pod'");
      }
    }
    if (type.text() == "PersistentVolumeClaim" && !limit["min"]["storage"].exists() &&
        !limit["max"]["storage"].exists()) {
      limit["limits"].required(
          "either minimum or maximum storage value is required, but neither was provided");
    }
    check_names("maxLimitRequestRatio");
    for (const std::string_view name : names) check_bounds(limit, name);
  });
}

}  // namespace lookout::apiserver::resources
