// Validation of webhook configurations and admission policies
// (k8s.io/kubernetes/pkg/apis/admissionregistration). CEL expressions are not validated.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/field.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

std::string joined(const rules::Messages& messages) {
  return fmt::format("{}", fmt::join(messages, ","));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\v\f\r") == std::string_view::npos;
}

/// A domain of at least three parts.
void check_full_name(const Field& name) {
  if (!name.check_present()) return;
  const rules::Messages wrong = rules::check_dns1123_subdomain(name.text());
  if (!wrong.empty()) {
    name.invalid_text(joined(wrong));
  } else if (std::count(name.text().begin(), name.text().end(), '.') < 2) {
    name.invalid_text("should be a domain with at least three segments separated by dots");
  }
}

/// A list that must not be empty; with "*", it must have no other elements.
void check_list(const Field& list, std::string_view what) {
  if (!list.check_present()) return;
  const auto elements = (*list).elements();
  const bool wildcard = std::any_of(elements.begin(), elements.end(),
                                    [](Value one) { return one.as_string() == "*"; });
  if (wildcard && (*list).size() > 1)
    list.invalid(fmt::format("if '*' is present, must not specify other {}", what));
}

/// Resources and subresources: "pods", "pods/*", "*/scale".
void check_resources(const Field& resources) {
  std::set<std::string_view> whole;
  std::set<std::string_view> of_all;
  bool has_all = false;
  bool has_plain = false;
  bool has_every = false;
  resources.check_present();
  resources.each([&](const Field& resource) {
    const std::string_view text = resource.text();
    if (!resource.check_present()) return;
    has_every |= text == "*/*";
    has_all |= text == "*";
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      has_plain = text != "*";
      return;
    }
    const std::string_view name = text.substr(0, slash);
    const std::string_view part = text.substr(slash + 1);
    if (whole.contains(name)) {
      resource.invalid_text(fmt::format("if '{}/*' is present, must not specify {}", name, text));
    }
    if (of_all.contains(part)) {
      resource.invalid_text(fmt::format("if '*/{}' is present, must not specify {}", part, text));
    }
    if (part == "*") whole.insert(name);
    if (name == "*") of_all.insert(part);
  });
  if ((*resources).size() > 1 && has_every)
    resources.invalid("if '*/*' is present, must not specify other resources");
  if (has_all && has_plain) {
    resources.invalid("if '*' is present, must not specify other resources without subresources");
  }
}

void check_rule(const Field& rule) {
  check_list(rule["operations"], "operations");
  rule["operations"].each([](const Field& operation) {
    operation.check_word({"*", "CONNECT", "CREATE", "DELETE", "UPDATE"});
  });
  check_list(rule["apiGroups"], "API groups");
  check_list(rule["apiVersions"], "API versions");
  rule["apiVersions"].each([](const Field& version) { version.check_present(); });
  check_resources(rule["resources"]);
  rule["scope"].check_word_if_present({"*", "Cluster", "Namespaced"});
}

void check_url(const Field& url) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  const std::string_view text = url.text();
  const std::size_t end = text.find("://");
  const std::string_view scheme = end == std::string_view::npos ? "" : text.substr(0, end);
  const std::string_view rest = end == std::string_view::npos ? text : text.substr(end + 3);
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  const auto refuse = [&](std::string_view shown, const std::string& why) {
    url.causes().push_back(rules::invalid(url.path(), shown, why));
  };
  if (scheme != "https")
    refuse(scheme, fmt::format("'https' is the only allowed URL scheme{}", kForm));
  if (scheme.empty() || host.empty()) refuse("", fmt::format("host must be specified{}", kForm));
  // The message must not repeat a password or a token.
  if (host.find('@') != std::string_view::npos)
    refuse("", "user information is not permitted in the URL");
  if (rest.find('#') != std::string_view::npos)
    refuse("", "fragments are not permitted in the URL");
  if (rest.find('?') != std::string_view::npos)
    refuse("", "query parameters are not permitted in the URL");
}

void check_url_path(const Field& path) {
  const std::string_view text = path.text();
  if (text.empty() || text == "/") return;
  if (text == "//") return path.invalid_text("segment[0] may not be empty");
  if (!text.starts_with('/')) path.invalid_text("must start with a '/'");
  std::string_view rest = text.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  for (int index = 0;; ++index) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    if (end == 0) path.invalid_text(fmt::format("segment[{}] may not be empty", index));
    const rules::Messages messages =
        end == 0 ? rules::Messages() : rules::check_dns1123_subdomain(rest.substr(0, end));
    for (const auto& message : messages)
      path.invalid_text(fmt::format("segment[{}]: {}", index, message));
    if (end == rest.size()) return;
    rest.remove_prefix(end + 1);
  }
}

/// `swapped`: errors of the service have two field names swapped, as in kube-apiserver.
void check_service(const Field& service, bool swapped) {
  constexpr std::int64_t kMostPorts = 65535;
  const auto check = [&](const char* field, const char* said) {
    service[field].named(fmt::format("{}.{}", service.path(), said)).check_present();
  };
  check(swapped ? "namespace" : "name", "name");
  check(swapped ? "name" : "namespace", "namespace");
  service["port"].check_range(1, kMostPorts,
                              "port is not valid: must be between 1 and 65535, inclusive");
  check_url_path(service["path"]);
}

void check_client(const Field& client, bool swapped) {
  const Field url = client["url"];
  const Field service = client["service"];
  if (url.exists() == service.exists()) {
    client.required("exactly one of url or service is required");
  } else if (url.exists()) {
    check_url(url);
  } else {
    check_service(service, swapped);
  }
}

/// The match conditions of webhooks and policies.
void check_match_conditions(const Field& conditions) {
  constexpr std::size_t kMost = 64;
  if ((*conditions).size() > kMost) conditions.too_many(kMost);
  std::set<std::string_view> names;
  conditions.each([&](const Field& condition) {
    const Field name = condition["name"];
    if (is_blank(condition["expression"].text())) condition["expression"].required();
    name.check_required_form(rules::check_qualified_name);
    if (!name.empty() && !names.insert(name.text()).second) name.duplicate();
  });
}

void check_versions(const Field& versions, std::string_view missing) {
  if (!versions.check_present(missing)) return;
  std::set<std::string_view> seen;
  bool known = false;
  versions.each([&](const Field& version) {
    if (!seen.insert(version.text()).second) return version.invalid_text("duplicate version");
    version.check_form(rules::check_dns1035_label);
    known |= version.text() == "v1" || version.text() == "v1beta1";
  });
  if (!known) versions.invalid("must include at least one of v1, v1beta1");
}

void check_failure_policy(const Field& policy) { policy.check_word_if_present({"Fail", "Ignore"}); }

void check_hook(const Field& hook) {
  constexpr std::int64_t kLongestTimeout = 30;
  check_full_name(hook["name"]);
  hook["rules"].each(check_rule);
  check_failure_policy(hook["failurePolicy"]);
  hook["matchPolicy"].check_word_if_present({"Equivalent", "Exact"});
  const Field effects = hook["sideEffects"];
  if (!effects.exists()) effects.required("must specify one of None, NoneOnDryRun");
  effects.check_word_if_present({"None", "NoneOnDryRun"});
  hook["timeoutSeconds"].check_range(1, kLongestTimeout,
                                     "the timeout value must be between 1 and 30 seconds");
  hook["namespaceSelector"].check_label_selector();
  hook["objectSelector"].check_label_selector();
  hook["reinvocationPolicy"].check_word_if_present({"IfNeeded", "Never"});
  check_client(hook["clientConfig"], true);
  check_match_conditions(hook["matchConditions"]);
  check_versions(hook["admissionReviewVersions"], "must specify one of v1, v1beta1");
}

void check_param_kind(const Field& kind) {
  if (!kind.exists()) return;
  if (const Field version = kind["apiVersion"]; version.check_present()) {
    const std::string_view text = version.text();
    const auto slashes = std::count(text.begin(), text.end(), '/');
    const std::size_t slash = text.find('/');
    const std::string_view group = slashes == 0 ? "" : text.substr(0, slash);
    const std::string_view name = slashes == 0 ? text : text.substr(slash + 1);
    const auto check = [&](std::string_view part, const rules::Messages& wrong) {
      if (!wrong.empty())
        version.causes().push_back(rules::invalid(version.path(), part, joined(wrong)));
    };
    if (slashes > 1) {
      version.invalid_text(fmt::format("unexpected GroupVersion string: {}", text));
    } else {
      if (!group.empty()) check(group, rules::check_dns1123_subdomain(group));
      if (name.empty()) {
        version.invalid_text("version must be specified");
      } else {
        check(name, rules::check_dns1035_label(name));
      }
    }
  }
  if (const Field name = kind["kind"]; name.check_present()) {
    const rules::Messages wrong = rules::check_dns1035_label(base::lower_case(name.text()));
    if (!wrong.empty()) {
      name.invalid_text("may have mixed case, but should otherwise match: " + joined(wrong));
    }
  }
}

void check_match(const Field& match) {
  if (!match.exists()) return;
  match["matchPolicy"].check_word({"Equivalent", "Exact"});
  match["namespaceSelector"].check_label_selector();
  match["objectSelector"].check_label_selector();
  for (const char* list : {"resourceRules", "excludeResourceRules"}) {
    match[list].each([](const Field& rule) {
      std::set<std::string_view> names;
      rule["resourceNames"].each([&](const Field& name) {
        name.check_form(rules::check_path_segment_name);
        if (!names.insert(name.text()).second) name.duplicate();
      });
      check_rule(rule);
    });
  }
}

rules::Messages check_variable(std::string_view name) {
  constexpr std::array<std::string_view, 21> kReserved = {
      "true",     "false",   "null",      "in",       "as",  "break",  "const",
      "continue", "else",    "for",       "function", "if",  "import", "let",
      "loop",     "package", "namespace", "return",   "var", "void",   "while"};
  const auto fits = [](char c) { return base::is_alnum(c) || c == '_'; };
  const bool valid = !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
                     std::all_of(name.begin(), name.end(), fits) &&
                     std::find(kReserved.begin(), kReserved.end(), name) == kReserved.end();
  return valid ? rules::Messages() : rules::Messages{"must be a valid CEL identifier"};
}

/// Checks the common parts of both kinds of policies.
void check_policy(const Field& spec) {
  check_failure_policy(spec["failurePolicy"]);
  check_param_kind(spec["paramKind"]);
  const Field match = spec["matchConstraints"];
  if (!match.exists()) {
    match.required();
  } else {
    check_match(match);
    match["resourceRules"].check_present();
  }
}

void check_conditions_and_variables(const Field& spec) {
  check_match_conditions(spec["matchConditions"]);
  spec["variables"].each([](const Field& variable) {
    if (is_blank(variable["name"].text())) {
      variable["name"].required("name is not specified");
    } else {
      variable["name"].check_form(check_variable);
    }
    if (is_blank(variable["expression"].text()))
      variable["expression"].required("expression is not specified");
  });
}

void check_policy_binding(const Field& spec) {
  spec["policyName"].check_required_form(rules::check_dns1123_subdomain);
  if (const Field reference = spec["paramRef"]; reference.exists()) {
    constexpr const char* kBoth = "name and selector are mutually exclusive";
    const Field name = reference["name"];
    const Field selector = reference["selector"];
    name.check_form_if_present(rules::check_path_segment_name);
    if (!name.empty() && selector.exists()) name.forbidden(kBoth);
    selector.check_label_selector();
    if (!name.empty() && selector.exists()) selector.forbidden(kBoth);
    if (name.empty() && !selector.exists())
      reference.required("one of name or selector must be specified");
    reference["parameterNotFoundAction"].check_required_word({"Deny", "Allow"});
  }
  check_match(spec["matchResources"]);
}

void check_message(const Field& message) {
  const std::string_view text = message.text();
  if (text.empty()) return;
  const std::size_t first = text.find_first_not_of(" \t\n\v\f\r");
  if (first == std::string_view::npos)
    return message.invalid_text("must be non-empty if specified");
  const std::string_view trimmed =
      text.substr(first, text.find_last_not_of(" \t\n\v\f\r") - first + 1);
  if (trimmed.find_first_of("\n\r") != std::string_view::npos)
    message.invalid_text("must not contain line breaks");
}

}  // namespace

void validate_webhook_client(Value client, const std::string& here, Causes& causes) {
  check_client(Field(client, here, causes), false);
}

void validate_review_versions(Value versions, const std::string& here, std::string_view missing,
                              Causes& causes) {
  check_versions(Field(versions, here, causes), missing);
}

void validate_webhook_configuration(const Object& object, Causes& causes) {
  std::set<std::string_view> names;
  Field(object["webhooks"], "webhooks", causes).each([&](const Field& hook) {
    check_hook(hook);
    const Field name = hook["name"];
    if (!name.empty() && !names.insert(name.text()).second) name.duplicate();
  });
}

void validate_admission_policy(const Object& policy, Causes& causes) {
  constexpr std::size_t kMostAnnotations = 20;
  constexpr const char* kOne = "validations or auditAnnotations must contain at least one item";
  const Field spec(policy["spec"], "spec", causes);
  const Field annotations = spec["auditAnnotations"];
  check_policy(spec);
  check_conditions_and_variables(spec);
  if (spec["validations"].empty() && annotations.empty()) {
    spec["validations"].required(kOne);
    annotations.required(kOne);
    return;
  }
  spec["validations"].each([](const Field& validation) {
    if (is_blank(validation["expression"].text()))
      validation["expression"].required("expression is not specified");
    const Field expression = validation["messageExpression"];
    if (!expression.empty() && is_blank(expression.text()))
      expression.invalid_text("must be non-empty if specified");
    check_message(validation["message"]);
    validation["reason"].check_word_if_present({"Forbidden", "Invalid", "RequestEntityTooLarge"});
  });
  if ((*annotations).size() > kMostAnnotations)
    annotations.invalid("must not have more than 20 auditAnnotations");
  std::set<std::string_view> keys;
  annotations.each([&](const Field& annotation) {
    const Field key = annotation["key"];
    const std::string name = fmt::format("{}/{}", policy.name(), key.text());
    for (const auto& message : rules::check_qualified_name(name))
      causes.push_back(rules::invalid(key.path(), name, message));
    if (is_blank(annotation["valueExpression"].text()))
      annotation["valueExpression"].required("valueExpression is not specified");
    if (!keys.insert(key.text()).second) key.duplicate();
  });
}

void validate_admission_policy_binding(const Object& binding, Causes& causes) {
  const Field spec(binding["spec"], "spec", causes);
  check_policy_binding(spec);
  const Field actions = spec["validationActions"];
  std::set<std::string_view> seen;
  actions.each([&](const Field& action) {
    action.check_word({"Audit", "Deny", "Warn"});
    if (!seen.insert(action.text()).second) action.duplicate();
  });
  if (seen.contains("Deny") && seen.contains("Warn")) {
    actions.invalid(
        "must not contain both Deny and Warn (repeating the same validation failure information in "
        "the API response and headers serves no purpose)");
  }
  actions.check_present("at least one validation action is required");
}

void validate_mutating_policy(const Object& policy, Causes& causes) {
  const Field spec(policy["spec"], "spec", causes);
  check_policy(spec);
  const Field match = spec["matchConstraints"];
  match["resourceRules"].each([&](const Field& rule) {
    rule["operations"].each([&](const Field& operation) {
      operation.named(match.path() + ".resourceRules.operations")
          .check_word({"*", "CONNECT", "CREATE", "UPDATE"});
    });
  });
  check_conditions_and_variables(spec);
  spec["mutations"].check_present("mutations must contain at least one item");
  spec["mutations"].each([](const Field& mutation) {
    const Field type = mutation["patchType"];
    if (!type.check_required_word({"ApplyConfiguration", "JSONPatch"})) return;
    const bool is_patch = type.text() == "JSONPatch";
    const Field wanted = mutation[is_patch ? "jsonPatch" : "applyConfiguration"];
    const Field other = mutation[is_patch ? "applyConfiguration" : "jsonPatch"];
    if (!wanted.exists()) {
      wanted.required(fmt::format("must be specified when patchType is {}", type.text()));
    } else if (is_blank(wanted["expression"].text())) {
      wanted["expression"].required();
    }
    if (other.exists()) {
      other.causes().push_back(
          rules::invalid(other.path(), is_patch ? "{applyConfiguration}" : "{jsonPatch}",
                         fmt::format("must not be specified when patchType is {}", type.text())));
    }
  });
  spec["reinvocationPolicy"].check_required_word({"IfNeeded", "Never"});
}

void validate_mutating_policy_binding(const Object& binding, Causes& causes) {
  check_policy_binding(Field(binding["spec"], "spec", causes));
}

void validate_admission_policy_status(const Object& policy, const Object& /*old*/, Causes& causes) {
  const Field status(policy["status"], "status", causes);
  status["typeChecking"]["expressionWarnings"].each([](const Field& warning) {
    warning["warning"].check_present();
    warning["fieldRef"].check_present();
  });
  check_conditions(status["conditions"]);
}

}  // namespace lookout::apiserver::resources
