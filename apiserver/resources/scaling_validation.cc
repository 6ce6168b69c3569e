// Validation of cron jobs and autoscalers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resources/required.h"
#include "apiserver/resources/strategies.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(' ', end);
  }
  return out;
}

}  // namespace

void validate_cron_job(const Object& job, Causes& causes) {
  const Value spec = job["spec"];
  const auto schedule = spec["schedule"].as_string();
  if (schedule.empty()) {
    causes.push_back(rules::required("spec.schedule", ""));
  } else if (schedule.front() != '@') {
    if (const auto fields = words(schedule); fields.size() != 5) {
      causes.push_back(rules::invalid("spec.schedule", schedule,
                                      fmt::format("expected exactly 5 fields, found {}: [{}]",
                                                  fields.size(), fmt::join(fields, " "))));
    }
  }
  const Value pod = spec["jobTemplate"]["spec"]["template"]["spec"];
  const std::string template_spec = "spec.jobTemplate.spec.template.spec";
  validate_pod_spec(pod, template_spec, causes);
  const auto policy = pod["restartPolicy"].as_string();
  constexpr std::array<std::string_view, 2> kPolicies = {"OnFailure", "Never"};
  if (policy != kPolicies[0] && policy != kPolicies[1]) {
    causes.push_back(
        rules::required(template_spec + ".restartPolicy", R"(valid values: "OnFailure", "Never")"));
  }
  constexpr std::size_t kLongestName = 52;
  if (job.name().size() > kLongestName) {
    causes.push_back(
        rules::invalid("metadata.name", job.name(), "must be no more than 52 characters"));
  }
}

void validate_autoscaler(const Object& object, Causes& causes) {
  const Value spec = object["spec"];
  const auto least = spec["minReplicas"].to_int();
  const std::int64_t most = spec["maxReplicas"].as_int();
  if (least && *least < 1)
    causes.push_back(
        rules::invalid("spec.minReplicas", *least, "must be greater than or equal to 1"));
  if (most < 1)
    causes.push_back(rules::invalid("spec.maxReplicas", most, "must be greater than 0"));
  if (least && most < *least) {
    causes.push_back(
        rules::invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"));
  }
  require(spec["scaleTargetRef"]["kind"], "spec.scaleTargetRef.kind", causes);
  require(spec["scaleTargetRef"]["name"], "spec.scaleTargetRef.name", causes);
}

}  // namespace lookout::apiserver::resources
