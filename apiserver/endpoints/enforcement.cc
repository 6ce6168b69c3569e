#include "apiserver/endpoints/enforcement.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "apiserver/resources/schema_rules.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::Value;

struct Unenforced {
  std::string_view group;
  std::string_view plural;
  std::string_view warning;
};
constexpr std::string_view kAdmission = "admissionregistration.k8s.io";
constexpr std::array<Unenforced, 4> kUnenforced = {{
    {kAdmission, "mutatingadmissionpolicies", "admission policies are not applied"},
    {kAdmission, "mutatingadmissionpolicybindings", "admission policies are not applied"},
    {kAdmission, "validatingadmissionpolicies", "admission policies are not applied"},
    {kAdmission, "validatingadmissionpolicybindings", "admission policies are not applied"},
}};

}  // namespace

std::vector<std::string> unenforced(const resources::ServedResource& resource,
                                    const api::Object& object) {
  std::vector<std::string> out;
  const auto warn = [&](std::string_view what) {
    out.push_back(fmt::format("this server keeps the object, but {}", what));
  };
  const std::string& group = resource.type.group;
  const std::string& plural = resource.type.plural;
  if (object.kind() != resource.type.kind) return out;
  for (const Unenforced& one : kUnenforced) {
    if (one.group == group && one.plural == plural) warn(one.warning);
  }
  for (const Value hook : object["webhooks"].elements()) {
    if (group != kAdmission || hook["matchConditions"].empty()) continue;
    warn("match conditions are not evaluated: webhooks are called as if they held");
    break;
  }
  const Value spec = object["spec"];
  if (group == "apiregistration.k8s.io" && plural == "apiservices" && spec["service"].is_object())
    warn("requests are not passed on to the service");
  if (group == "apiextensions.k8s.io" && plural == "customresourcedefinitions") {
    for (const Value version : spec["versions"].elements()) {
      if (!resources::has_cel_rules(version["schema"]["openAPIV3Schema"])) continue;
      warn("rules in x-kubernetes-validations are not enforced");
      break;
    }
  }
  return out;
}

}  // namespace lookout::apiserver::endpoints
