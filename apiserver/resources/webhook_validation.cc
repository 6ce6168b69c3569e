// Validation of webhook configurations (k8s.io/kubernetes/pkg/apis/admissionregistration).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/required.h"
#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

void validate_name(std::string_view name, const std::string& here, Causes& causes) {
  if (name.empty()) {
    causes.push_back(rules::required(here, ""));
    return;
  }
  const rules::Messages wrong = rules::check_dns1123_subdomain(name);
  if (!wrong.empty()) {
    causes.push_back(rules::invalid(here, name, fmt::format("{}", fmt::join(wrong, ","))));
  } else if (std::count(name.begin(), name.end(), '.') < 2) {
    causes.push_back(rules::invalid(
        here, name, "should be a domain with at least three segments separated by dots"));
  }
}

/// A field that may be absent, of a few words.
template <std::size_t n>
void validate_word(Value value, const std::string& here,
                   const std::array<std::string_view, n>& words, Causes& causes) {
  if (!value.exists() || value.is_null()) return;
  const std::string_view word = value.as_string();
  if (std::find(words.begin(), words.end(), word) == words.end())
    causes.push_back(rules::not_supported(here, word, words));
}

/// A list that must not be empty, and has nothing besides "*" if it has that.
void validate_list(Value list, const std::string& here, std::string_view what, Causes& causes) {
  if (list.empty()) {
    causes.push_back(rules::required(here, ""));
    return;
  }
  bool wildcard = false;
  for (const Value one : list.elements()) wildcard = wildcard || one.as_string() == "*";
  if (wildcard && list.size() > 1) {
    causes.push_back(rules::invalid(
        here, list.to_json(), fmt::format("if '*' is present, must not specify other {}", what)));
  }
}

void validate_rule(Value rule, const std::string& here, Causes& causes) {
  constexpr std::array<std::string_view, 5> kOperations = {"*", "CONNECT", "CREATE", "DELETE",
                                                           "UPDATE"};
  constexpr std::array<std::string_view, 3> kScopes = {"*", "Cluster", "Namespaced"};
  validate_list(rule["operations"], here + ".operations", "operations", causes);
  std::size_t index = 0;
  for (const Value operation : rule["operations"].elements())
    validate_word(operation, fmt::format("{}.operations[{}]", here, index++), kOperations, causes);
  validate_list(rule["apiGroups"], here + ".apiGroups", "API groups", causes);
  validate_list(rule["apiVersions"], here + ".apiVersions", "API versions", causes);
  if (rule["resources"].empty()) causes.push_back(rules::required(here + ".resources", ""));
  validate_word(rule["scope"], here + ".scope", kScopes, causes);
}

void validate_url(std::string_view url, const std::string& here, Causes& causes) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  const std::size_t end = url.find("://");
  const std::string_view scheme = end == std::string_view::npos ? "" : url.substr(0, end);
  const std::string_view rest = end == std::string_view::npos ? url : url.substr(end + 3);
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  if (scheme != "https") {
    causes.push_back(rules::invalid(
        here, scheme, fmt::format("'https' is the only allowed URL scheme{}", kForm)));
  }
  if (scheme.empty() || host.empty())
    causes.push_back(rules::invalid(here, "", fmt::format("host must be specified{}", kForm)));
  // (Neither a password nor a token is repeated in the message.)
  if (host.find('@') != std::string_view::npos)
    causes.push_back(rules::invalid(here, "", "user information is not permitted in the URL"));
  if (rest.find('#') != std::string_view::npos)
    causes.push_back(rules::invalid(here, "", "fragments are not permitted in the URL"));
  if (rest.find('?') != std::string_view::npos)
    causes.push_back(rules::invalid(here, "", "query parameters are not permitted in the URL"));
}

void validate_service(Value service, const std::string& here, Causes& causes) {
  constexpr std::int64_t kMostPorts = 65535;
  if (service["name"].as_string().empty())
    causes.push_back(rules::required(here + ".name", "service name is required"));
  if (service["namespace"].as_string().empty())
    causes.push_back(rules::required(here + ".namespace", "service namespace is required"));
  if (const auto port = service["port"].to_int(); port && (*port < 1 || *port > kMostPorts)) {
    causes.push_back(rules::invalid(here + ".port", *port,
                                    "port is not valid: must be between 1 and 65535, inclusive"));
  }
  const std::string_view path = service["path"].as_string();
  if (!path.empty() && !path.starts_with('/'))
    causes.push_back(rules::invalid(here + ".path", path, "must start with a '/'"));
}

void validate_hook(Value hook, const std::string& here, Causes& causes) {
  constexpr std::array<std::string_view, 2> kPolicies = {"Fail", "Ignore"};
  constexpr std::array<std::string_view, 2> kMatches = {"Equivalent", "Exact"};
  constexpr std::array<std::string_view, 2> kEffects = {"None", "NoneOnDryRun"};
  constexpr std::array<std::string_view, 2> kReinvocations = {"IfNeeded", "Never"};
  constexpr std::int64_t kLongestTimeout = 30;
  validate_name(hook["name"].as_string(), here + ".name", causes);
  std::size_t index = 0;
  for (const Value rule : hook["rules"].elements())
    validate_rule(rule, fmt::format("{}.rules[{}]", here, index++), causes);
  validate_word(hook["failurePolicy"], here + ".failurePolicy", kPolicies, causes);
  validate_word(hook["matchPolicy"], here + ".matchPolicy", kMatches, causes);
  if (!hook["sideEffects"].is_string()) {
    causes.push_back(
        rules::required(here + ".sideEffects", "must specify one of None, NoneOnDryRun"));
  }
  validate_word(hook["sideEffects"], here + ".sideEffects", kEffects, causes);
  const auto timeout = hook["timeoutSeconds"].to_int();
  if (timeout && (*timeout < 1 || *timeout > kLongestTimeout)) {
    causes.push_back(rules::invalid(here + ".timeoutSeconds", *timeout,
                                    "the timeout value must be between 1 and 30 seconds"));
  }
  validate_webhook_client(hook["clientConfig"], here + ".clientConfig", causes);
  validate_word(hook["reinvocationPolicy"], here + ".reinvocationPolicy", kReinvocations, causes);
  validate_review_versions(hook["admissionReviewVersions"], here + ".admissionReviewVersions",
                           "must specify one of v1, v1beta1", causes);
}

}  // namespace

void validate_webhook_client(Value client, const std::string& here, Causes& causes) {
  const bool by_url = client["url"].is_string();
  const bool by_service = client["service"].is_object();
  if (by_url == by_service) {
    causes.push_back(rules::required(here, "exactly one of url or service is required"));
  } else if (by_url) {
    validate_url(client["url"].as_string(), here + ".url", causes);
  } else {
    validate_service(client["service"], here + ".service", causes);
  }
}

void validate_review_versions(Value versions, const std::string& here, std::string_view missing,
                              Causes& causes) {
  if (versions.empty()) {
    causes.push_back(rules::required(here, missing));
    return;
  }
  std::set<std::string_view> seen;
  bool known = false;
  std::size_t index = 0;
  for (const Value one : versions.elements()) {
    const std::string place = fmt::format("{}[{}]", here, index++);
    const std::string_view version = one.as_string();
    if (!seen.insert(version).second)
      causes.push_back(rules::invalid(place, version, "duplicate version"));
    for (const std::string& wrong : rules::check_dns1035_label(version))
      causes.push_back(rules::invalid(place, version, wrong));
    known = known || version == "v1" || version == "v1beta1";
  }
  if (!known) {
    causes.push_back(
        rules::invalid(here, versions.to_json(), "must include at least one of v1, v1beta1"));
  }
}

void validate_webhook_configuration(const Object& object, Causes& causes) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value hook : object["webhooks"].elements()) {
    const std::string here = fmt::format("webhooks[{}]", index++);
    validate_hook(hook, here, causes);
    const std::string_view name = hook["name"].as_string();
    if (!name.empty() && !names.insert(name).second)
      causes.push_back(rules::duplicate(here + ".name", name));
  }
}

}  // namespace lookout::apiserver::resources
