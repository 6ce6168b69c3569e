#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/registry/strategies.h"

namespace lookout::apiserver::registry {
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

void validate_ports(Value ports, const std::string& field, Causes& causes) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value port : ports.elements()) {
    const std::string here = fmt::format("{}[{}]", field, index++);
    const std::string_view name = port["name"].as_string();
    if (!name.empty() && !names.insert(name).second)
      causes.push_back(rules::duplicate(here + ".name", name));
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
                         std::set<std::string, std::less<>>& names, Causes& causes) {
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
    validate_one_of(container["imagePullPolicy"], here + ".imagePullPolicy", kPullPolicies, causes);
    std::size_t variable = 0;
    for (const Value env : container["env"].elements()) {
      if (env["name"].as_string().empty())
        causes.push_back(rules::required(fmt::format("{}.env[{}].name", here, variable), ""));
      ++variable;
    }
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

void validate_pod_spec(Value spec, const std::string& field, Causes& causes) {
  std::set<std::string, std::less<>> names;
  validate_containers(spec["containers"], field + ".containers", true, names, causes);
  validate_containers(spec["initContainers"], field + ".initContainers", false, names, causes);
  validate_one_of(spec["restartPolicy"], field + ".restartPolicy", kRestartPolicies, causes);
  validate_one_of(spec["dnsPolicy"], field + ".dnsPolicy", kDnsPolicies, causes);
  if (const auto grace = spec["terminationGracePeriodSeconds"].to_int(); grace && *grace < 0) {
    causes.push_back(rules::invalid(field + ".terminationGracePeriodSeconds", *grace,
                                    "must be greater than or equal to 0"));
  }
  const auto name_at = [&](const char* name) {
    const std::string_view value = spec[name].as_string();
    if (value.empty()) return;
    for (const auto& message : rules::check_dns1123_subdomain(value))
      causes.push_back(rules::invalid(field + "." + name, value, message));
  };
  name_at("nodeName");
  name_at("serviceAccountName");
  std::set<std::string_view> volumes;
  std::size_t index = 0;
  for (const Value volume : spec["volumes"].elements()) {
    const std::string here = fmt::format("{}.volumes[{}].name", field, index++);
    const std::string_view name = volume["name"].as_string();
    if (name.empty()) {
      causes.push_back(rules::required(here, ""));
    } else if (!volumes.insert(name).second) {
      causes.push_back(rules::duplicate(here, name));
    }
  }
}

void validate_pod(const Object& pod, Causes& causes) {
  validate_pod_spec(pod["spec"], "spec", causes);
}

void validate_pod_update(const Object& pod, const Object& old, Causes& causes) {
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

}  // namespace lookout::apiserver::registry
