#include "apiserver/admission/hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "lookout/api/detail/texts.h"
#include "lookout/api/status.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::admission {
namespace {

using api::Object;
using api::Value;
using api::detail::texts_of;

bool has(const std::vector<std::string>& items, std::string_view wanted) {
  return std::any_of(items.begin(), items.end(),
                     [&](const std::string& item) { return item == "*" || item == wanted; });
}

bool matches_scope(const Rule& rule, const Subject& subject) {
  if (rule.scope.empty() || rule.scope == "*") return true;
  // Namespaces are cluster-scoped, although their requests have the name as the namespace.
  const bool is_namespace =
      subject.group.empty() && subject.version == "v1" && subject.resource == "namespaces";
  const bool namespaced = !is_namespace && !subject.ns.empty();
  if (rule.scope == "Namespaced") return namespaced;
  return rule.scope == "Cluster" && !namespaced;
}

bool matches_resource(const Rule& rule, const Subject& subject) {
  return std::any_of(rule.resources.begin(), rule.resources.end(), [&](const std::string& entry) {
    const std::string_view text = entry;
    const std::size_t slash = text.find('/');
    const std::string_view resource = text.substr(0, slash);
    const std::string_view subresource =
        slash == std::string_view::npos ? std::string_view{} : text.substr(slash + 1);
    return (resource == "*" || resource == subject.resource) &&
           (subresource == "*" || subresource == subject.subresource);
  });
}

/// An absent selector selects everything.
HookSelector selector_of(Value selector) {
  HookSelector out;
  if (!selector.is_object()) return out;
  try {
    out.selector = api::labels::from(k8s::meta::v1::LabelSelector(selector));
  } catch (const api::SelectorError& e) {
    out.error = e.reason();
  }
  return out;
}

Rule rule_of(Value rule) {
  return {texts_of(rule["operations"]), texts_of(rule["apiGroups"]), texts_of(rule["apiVersions"]),
          texts_of(rule["resources"]), std::string(rule["scope"].as_string())};
}

bool selects(const api::labels::Selector& selector, const Object& object) {
  return object && selector.matches(object.labels());
}

}  // namespace

bool matches(const Rule& rule, const Subject& subject) {
  return matches_scope(rule, subject) && has(rule.operations, subject.operation) &&
         has(rule.groups, subject.group) && has(rule.versions, subject.version) &&
         matches_resource(rule, subject);
}

std::optional<Version> wanted_version(const Hook& hook, const Subject& subject,
                                      const Version& requested,
                                      const std::vector<Version>& equivalents) {
  for (const Rule& rule : hook.rules) {
    if (matches(rule, subject)) return requested;
  }
  if (!hook.equivalent) return std::nullopt;
  for (const Rule& rule : hook.rules) {
    for (const Version& other : equivalents) {
      Subject seen = subject;
      seen.group = other.group;
      seen.version = other.version;
      seen.resource = other.resource;
      if (matches(rule, seen)) return other;
    }
  }
  return std::nullopt;
}

bool selects_objects(const Hook& hook, const Object& object, const Object& old) {
  if (!hook.objects.error.empty()) throw api::StatusError::internal_error(hook.objects.error);
  const api::labels::Selector& selector = hook.objects.selector;
  return selector.empty() || selects(selector, object) || selects(selector, old);
}

std::vector<std::shared_ptr<const Hook>> hooks_of(const Object& configuration) {
  std::vector<std::shared_ptr<const Hook>> out;
  std::map<std::string, int> count;
  const Value hooks = configuration["webhooks"];
  out.reserve(hooks.size());
  for (const Value one : hooks.elements()) {
    auto hook = std::make_shared<Hook>();
    hook->configuration = configuration.name();
    hook->name = one["name"].as_string();
    hook->uid = fmt::format("{}/{}/{}", hook->configuration, hook->name, count[hook->name]++);
    const Value rules = one["rules"];
    hook->rules.reserve(rules.size());
    for (const Value rule : rules.elements()) hook->rules.push_back(rule_of(rule));
    hook->equivalent = one["matchPolicy"].as_string() != "Exact";
    hook->namespaces = selector_of(one["namespaceSelector"]);
    hook->objects = selector_of(one["objectSelector"]);
    hook->ignores_failures = one["failurePolicy"].as_string() == "Ignore";
    if (const auto timeout = one["timeoutSeconds"].to_int())
      hook->timeout = std::chrono::seconds(std::clamp<std::int64_t>(*timeout, 1, 30));
    hook->side_effects = one["sideEffects"].as_string();
    hook->reinvoked = one["reinvocationPolicy"].as_string() == "IfNeeded";
    hook->review_versions = texts_of(one["admissionReviewVersions"]);
    hook->address = webhooks::address_of(one["clientConfig"]);
    out.push_back(std::move(hook));
  }
  return out;
}

}  // namespace lookout::apiserver::admission
