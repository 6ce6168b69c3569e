#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/resources/required.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/quantity.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

constexpr std::array<std::string_view, 3> kRestartPolicies = {"Always", "OnFailure", "Never"};
constexpr std::array<std::string_view, 4> kDnsPolicies = {"ClusterFirstWithHostNet", "ClusterFirst",
                                                          "Default", "None"};
constexpr std::array<std::string_view, 3> kPullPolicies = {"Always", "IfNotPresent", "Never"};
constexpr std::array<std::string_view, 3> kProtocols = {"SCTP", "TCP", "UDP"};

void validate_one_of(Value value, const std::string& field,
                     std::span<const std::string_view> supported, Causes& causes) {
  const std::string_view text = value.as_string();
  if (!value.exists() || std::find(supported.begin(), supported.end(), text) != supported.end())
    return;
  causes.push_back(text.empty() ? rules::required(field, "")
                                : rules::not_supported(field, text, supported));
}

/// IANA_SVC_NAME of RFC 6335.
std::vector<std::string> check_port_name(std::string_view name) {
  constexpr std::size_t kMost = 15;
  std::vector<std::string> out;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.size() > kMost) out.emplace_back("must be no more than 15 characters");
  if (!std::all_of(name.begin(), name.end(),
                   [&](char c) { return is_letter(c) || is_digit(c) || c == '-'; }))
    out.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (std::none_of(name.begin(), name.end(), is_letter))
    out.emplace_back("must contain at least one letter (a-z)");
  if (name.find("--") != std::string_view::npos)
    out.emplace_back("must not contain consecutive hyphens");
  if (!name.empty() && (name.front() == '-' || name.back() == '-'))
    out.emplace_back("must not begin or end with a hyphen");
  return out;
}

/// Amounts must not be negative, and what is asked for must not be more than what may be used.
void validate_resources(Value resources, const std::string& field, Causes& causes) {
  const auto parse = [](Value amount) {
    return api::Quantity::parse(amount.is_string() ? std::string(amount.as_string())
                                                   : amount.to_json());
  };
  const auto check = [&](const char* part) {
    for (const auto& [name, amount] : resources[part].members()) {
      const auto quantity = parse(amount);
      if (quantity && *quantity < api::Quantity())
        causes.push_back(rules::invalid(fmt::format("{}.{}[{}]", field, part, name),
                                        amount.as_string(), "must be greater than or equal to 0"));
    }
  };
  check("limits");
  check("requests");
  for (const auto& [name, amount] : resources["requests"].members()) {
    const Value limit = resources["limits"][name];
    if (!limit.exists()) continue;
    const auto wanted = parse(amount);
    const auto most = parse(limit);
    if (wanted && most && *most < *wanted) {
      causes.push_back(rules::invalid(
          field + ".requests", amount.as_string(),
          fmt::format("must be less than or equal to {} limit of {}", name, limit.as_string())));
    }
  }
}

void validate_mounts(Value mounts, const std::string& field,
                     const std::set<std::string_view>& volumes, Causes& causes) {
  std::set<std::string_view> paths;
  std::size_t index = 0;
  for (const Value mount : mounts.elements()) {
    const std::string here = fmt::format("{}[{}]", field, index++);
    const std::string_view name = mount["name"].as_string();
    if (name.empty()) {
      causes.push_back(rules::required(here + ".name", ""));
    } else if (!volumes.contains(name)) {
      causes.push_back({"FieldValueNotFound",
                        fmt::format("Not found: {}", api::detail::quote(name)), here + ".name"});
    }
    const std::string_view path = mount["mountPath"].as_string();
    if (path.empty()) {
      causes.push_back(rules::required(here + ".mountPath", ""));
    } else if (!paths.insert(path).second) {
      causes.push_back(rules::invalid(here + ".mountPath", path, "must be unique"));
    }
  }
}

void validate_ports(Value ports, const std::string& field, Causes& causes) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value port : ports.elements()) {
    const std::string here = fmt::format("{}[{}]", field, index++);
    const std::string_view name = port["name"].as_string();
    if (!name.empty() && !names.insert(name).second)
      causes.push_back(rules::duplicate(here + ".name", name));
    if (!name.empty()) {
      for (const auto& message : check_port_name(name))
        causes.push_back(rules::invalid(here + ".name", name, message));
    }
    const Value number = port["containerPort"];
    if (!number.exists() || number.as_int() == 0) {
      causes.push_back(rules::required(here + ".containerPort", ""));
    } else if (number.as_int() < 1 || number.as_int() > 65535) {
      causes.push_back(rules::invalid(here + ".containerPort", number.as_int(),
                                      "must be between 1 and 65535, inclusive"));
    }
    validate_one_of(port["protocol"], here + ".protocol", kProtocols, causes);
  }
}

void validate_containers(Value containers, const std::string& field, bool demanded,
                         std::set<std::string, std::less<>>& names,
                         const std::set<std::string_view>& volumes, Causes& causes) {
  if (demanded && containers.elements().empty()) {
    causes.push_back(rules::required(field, ""));
    return;
  }
  std::size_t index = 0;
  for (const Value container : containers.elements()) {
    const std::string here = fmt::format("{}[{}]", field, index++);
    const std::string_view name = container["name"].as_string();
    if (name.empty()) {
      causes.push_back(rules::required(here + ".name", ""));
    } else {
      for (const auto& message : rules::check_dns1123_label(name))
        causes.push_back(rules::invalid(here + ".name", name, message));
      if (!names.emplace(name).second) causes.push_back(rules::duplicate(here + ".name", name));
    }
    const std::string_view image = container["image"].as_string();
    if (image.empty()) {
      causes.push_back(rules::required(here + ".image", ""));
    } else if (image.front() == ' ' || image.back() == ' ') {
      causes.push_back(
          rules::invalid(here + ".image", image, "must not have leading or trailing whitespace"));
    }
    validate_ports(container["ports"], here + ".ports", causes);
    std::size_t variable = 0;
    for (const Value env : container["env"].elements()) {
      const std::string at = fmt::format("{}.env[{}].name", here, variable++);
      const std::string_view env_name = env["name"].as_string();
      if (env_name.empty()) {
        causes.push_back(rules::required(at, ""));
      } else if (env_name.find('=') != std::string_view::npos ||
                 std::any_of(env_name.begin(), env_name.end(),
                             [](char c) { return c < ' ' || c > '~'; })) {
        causes.push_back(rules::invalid(
            at, env_name,
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='"));
      }
    }
    validate_mounts(container["volumeMounts"], here + ".volumeMounts", volumes, causes);
    validate_one_of(container["imagePullPolicy"], here + ".imagePullPolicy", kPullPolicies, causes);
    validate_resources(container["resources"], here + ".resources", causes);
  }
}

/// The parts of a container that may change on a running pod, taken out.
json::Document without_changeable_parts(const Object& pod) {
  json::Document document = pod.to_document();
  json::Value* spec = json::find(document, "spec");
  if (spec == nullptr) return document;
  const auto strip = [](json::Value& container) {
    json::erase(container, "image");
    json::erase(container, "imagePullPolicy");
  };
  json::for_each(*spec, "containers", strip);
  json::for_each(*spec, "initContainers", strip);
  json::erase(*spec, "activeDeadlineSeconds");
  json::erase(*spec, "tolerations");
  json::erase(*spec, "terminationGracePeriodSeconds");
  json::erase(document, "metadata");
  json::erase(document, "status");
  return document;
}

/// Tolerations may be added, and may last longer or shorter.
bool keeps_tolerations(Value before, Value after) {
  const auto same = [](Value a, Value b) {
    return a["key"] == b["key"] && a["operator"] == b["operator"] && a["value"] == b["value"] &&
           a["effect"] == b["effect"];
  };
  for (const Value old : before.elements()) {
    bool found = false;
    for (const Value toleration : after.elements()) found |= same(old, toleration);
    if (!found) return false;
  }
  return true;
}

}  // namespace

void validate_pod_spec(Value spec, const std::string& field, Causes& causes, Value claims) {
  std::set<std::string, std::less<>> names;
  std::set<std::string_view> volumes;
  std::size_t index = 0;
  for (const Value volume : spec["volumes"].elements()) {
    const std::string here = fmt::format("{}.volumes[{}].name", field, index++);
    const std::string_view name = volume["name"].as_string();
    if (name.empty()) {
      causes.push_back(rules::required(here, ""));
      continue;
    }
    for (const auto& message : rules::check_dns1123_label(name))
      causes.push_back(rules::invalid(here, name, message));
    if (!volumes.insert(name).second) causes.push_back(rules::duplicate(here, name));
  }
  for (const Value claim : claims.elements()) volumes.insert(claim["metadata"]["name"].as_string());
  validate_containers(spec["containers"], field + ".containers", true, names, volumes, causes);
  validate_containers(spec["initContainers"], field + ".initContainers", false, names, volumes,
                      causes);
  validate_one_of(spec["restartPolicy"], field + ".restartPolicy", kRestartPolicies, causes);
  validate_one_of(spec["dnsPolicy"], field + ".dnsPolicy", kDnsPolicies, causes);
  require_not_negative(spec["terminationGracePeriodSeconds"],
                       field + ".terminationGracePeriodSeconds", causes);
  const auto name_at = [&](const char* name) {
    const std::string_view value = spec[name].as_string();
    if (value.empty()) return;
    for (const auto& message : rules::check_dns1123_subdomain(value))
      causes.push_back(rules::invalid(field + "." + name, value, message));
  };
  name_at("serviceAccountName");
  name_at("nodeName");
  constexpr std::int64_t kLongest = 2147483647;
  if (const auto deadline = spec["activeDeadlineSeconds"].to_int();
      deadline && (*deadline < 1 || *deadline > kLongest)) {
    causes.push_back(rules::invalid(field + ".activeDeadlineSeconds", *deadline,
                                    "must be between 1 and 2147483647, inclusive"));
  }
  for (const char* name : {"hostname", "subdomain"}) {
    const std::string_view value = spec[name].as_string();
    if (value.empty()) continue;
    for (const auto& message : rules::check_dns1123_label(value))
      causes.push_back(rules::invalid(field + "." + name, value, message));
  }
}

void validate_pod(const Object& pod, Causes& causes) {
  validate_pod_spec(pod["spec"], "spec", causes);
}

void validate_pod_update(const Object& pod, const Object& old, Causes& causes) {
  for (const char* list : {"containers", "initContainers"}) {
    if (pod["spec"][list].size() == old["spec"][list].size()) continue;
    causes.push_back(rules::forbidden(std::string("spec.") + list,
                                      "pod updates may not add or remove containers"));
    return;
  }
  // The API server adds a comparison of the two specs in Go's syntax, which nobody could repeat.
  constexpr std::string_view kOnly =
      "pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
      "`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
      "negative)";
  const bool same =
      Object::from(without_changeable_parts(pod)) == Object::from(without_changeable_parts(old)) &&
      pod["spec"]["terminationGracePeriodSeconds"] ==
          old["spec"]["terminationGracePeriodSeconds"] &&
      keeps_tolerations(old["spec"]["tolerations"], pod["spec"]["tolerations"]);
  if (!same) causes.push_back(rules::forbidden("spec", kOnly));
}

}  // namespace lookout::apiserver::resources
