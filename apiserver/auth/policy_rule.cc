#include "apiserver/auth/policy_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/texts.h"

namespace lookout::apiserver::auth {
namespace {

using Strings = std::vector<std::string>;
using api::detail::texts_of;

constexpr std::string_view kAll = "*";

bool has(const Strings& set, std::string_view text) {
  return std::find(set.begin(), set.end(), text) != set.end();
}

bool has_or_all(const Strings& set, std::string_view text) {
  return has(set, kAll) || has(set, text);
}

/// "/healthz/*" matches everything below "/healthz/".
bool url_covers(std::string_view rule, std::string_view url) {
  if (rule == url) return true;
  if (!rule.ends_with('*')) return false;
  return url.starts_with(rule.substr(0, rule.find_last_not_of('*') + 1));
}

bool has_url(const Strings& urls, std::string_view url) {
  return std::any_of(urls.begin(), urls.end(),
                     [&](const std::string& rule) { return url_covers(rule, url); });
}

/// `resource` may have a subresource: "pods/log". A rule may be "*", "pods/log", or "*/log".
bool has_resource(const Strings& resources, std::string_view resource) {
  if (has_or_all(resources, resource)) return true;
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return false;
  return has(resources, fmt::format("*{}", resource.substr(slash)));
}

/// `part` is as missing_rules() returns it.
bool covers(const PolicyRule& rule, const PolicyRule& part) {
  const bool names_match =
      rule.names.empty() || (!part.names.empty() && has(rule.names, part.names[0]));
  const auto all = [](const Strings& wanted, auto&& matches) {
    return std::all_of(wanted.begin(), wanted.end(), matches);
  };
  return names_match && has_or_all(rule.verbs, part.verbs[0]) &&
         all(part.groups, [&](const auto& group) { return has_or_all(rule.groups, group); }) &&
         all(part.resources,
             [&](const auto& name) { return has_resource(rule.resources, name); }) &&
         all(part.urls, [&](const auto& url) { return has_url(rule.urls, url); });
}

PolicyRules parts_of(const PolicyRule& rule) {
  PolicyRules parts;
  for (const std::string& group : rule.groups) {
    for (const std::string& resource : rule.resources) {
      for (const std::string& verb : rule.verbs) {
        if (rule.names.empty()) parts.push_back({{verb}, {group}, {resource}});
        for (const std::string& name : rule.names)
          parts.push_back({{verb}, {group}, {resource}, {name}});
      }
    }
  }
  for (const std::string& url : rule.urls) {
    for (const std::string& verb : rule.verbs) parts.push_back({{verb}, {}, {}, {}, {url}});
  }
  return parts;
}

/// Merges parts that differ only in the verb.
PolicyRules compact(const PolicyRules& parts) {
  PolicyRules out;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const PolicyRule& part : parts) {
    if (part.names.empty() && part.urls.empty()) {
      const auto [place, is_new] =
          places.try_emplace({part.groups[0], part.resources[0]}, out.size());
      if (!is_new) {
        Strings& verbs = out[place->second].verbs;
        verbs.insert(verbs.end(), part.verbs.begin(), part.verbs.end());
        continue;
      }
    }
    out.push_back(part);
  }
  return out;
}

std::string text_of(const PolicyRule& rule) {
  Strings fields;
  const auto add = [&](std::string_view name, const Strings& values) {
    if (values.empty()) return;
    Strings quoted;
    quoted.reserve(values.size());
    for (const std::string& value : values) quoted.push_back(api::detail::quote(value));
    fields.push_back(fmt::format("{}:[{}]", name, fmt::join(quoted, " ")));
  };
  add("APIGroups", rule.groups);
  add("Resources", rule.resources);
  add("NonResourceURLs", rule.urls);
  add("ResourceNames", rule.names);
  add("Verbs", rule.verbs);
  return fmt::format("{{{}}}", fmt::join(fields, ", "));
}

}  // namespace

PolicyRules rules_of(const api::Object& role) {
  PolicyRules rules;
  for (const api::Value rule : role["rules"].elements()) {
    rules.push_back({texts_of(rule["verbs"]), texts_of(rule["apiGroups"]),
                     texts_of(rule["resources"]), texts_of(rule["resourceNames"]),
                     texts_of(rule["nonResourceURLs"])});
  }
  return rules;
}

bool allows(const PolicyRule& rule, const Attributes& action) {
  if (!has_or_all(rule.verbs, action.verb)) return false;
  if (!action.is_resource_request) return has_url(rule.urls, action.path);
  if (!has_or_all(rule.groups, action.group)) return false;
  if (!rule.names.empty() && !has(rule.names, action.name)) return false;
  if (action.subresource.empty()) return has_or_all(rule.resources, action.resource);
  return has_resource(rule.resources, action.resource + "/" + action.subresource);
}

PolicyRules missing_rules(const PolicyRules& held, const PolicyRules& wanted) {
  PolicyRules missing;
  for (const PolicyRule& rule : wanted) {
    for (PolicyRule& part : parts_of(rule)) {
      const bool covered = std::any_of(held.begin(), held.end(),
                                       [&](const PolicyRule& own) { return covers(own, part); });
      if (!covered) missing.push_back(std::move(part));
    }
  }
  return missing;
}

std::string describe(const PolicyRules& missing) {
  std::set<std::string> lines;
  for (const PolicyRule& rule : compact(missing)) lines.insert(text_of(rule));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace lookout::apiserver::auth
