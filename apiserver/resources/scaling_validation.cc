// Validation of cron jobs and autoscalers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/resources/required.h"
#include "apiserver/resources/strategies.h"
#include "lookout/base/ascii.h"
#include "lookout/base/cron_schedule.h"

namespace lookout::apiserver::resources {
namespace {

namespace rules = api::validation;
using api::Object;
using api::Value;

/// Nothing but the characters of a zone's name, which Go's loader would also take from elsewhere.
bool is_zone_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '_' || c == '-' ||
           c == '+' || c == '.';
  });
}

void validate_time_zone(Value time_zone, Causes& causes) {
  if (!time_zone.exists()) return;
  const std::string_view name = time_zone.as_string();
  const auto refuse = [&](std::string_view why) {
    causes.push_back(rules::invalid("spec.timeZone", name, why));
  };
  if (name.empty()) return refuse("timeZone must be nil or non-empty string");
  if (base::equal_ignoring_case(name, "Local"))
    refuse("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  if (!is_zone_name(name)) return refuse(fmt::format("unknown time zone {}", name));
  try {
    TimeZone::load(name);
  } catch (const TimeZoneError& e) {
    refuse(e.what());
  }
}

void validate_schedule(Value spec, Causes& causes) {
  const std::string_view schedule = spec["schedule"].as_string();
  if (schedule.empty()) {
    causes.push_back(rules::required("spec.schedule", ""));
    return;
  }
  try {
    CronSchedule::parse(schedule);
  } catch (const CronScheduleError& e) {
    causes.push_back(rules::invalid("spec.schedule", schedule, e.what()));
  }
  if (schedule.find("TZ") != std::string_view::npos) {
    causes.push_back(
        rules::invalid("spec.schedule", schedule,
                       "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
  }
}

}  // namespace

void validate_cron_job(const Object& job, Causes& causes) {
  const Value spec = job["spec"];
  validate_schedule(spec, causes);
  require_not_negative(spec["startingDeadlineSeconds"], "spec.startingDeadlineSeconds", causes);
  constexpr std::array<std::string_view, 3> kConcurrency = {"Allow", "Forbid", "Replace"};
  const auto concurrency = spec["concurrencyPolicy"].as_string();
  if (std::ranges::find(kConcurrency, concurrency) == kConcurrency.end())
    causes.push_back(rules::not_supported("spec.concurrencyPolicy", concurrency, kConcurrency));
  validate_time_zone(spec["timeZone"], causes);
  const Value pod = spec["jobTemplate"]["spec"]["template"]["spec"];
  const std::string template_spec = "spec.jobTemplate.spec.template.spec";
  validate_pod_spec(pod, template_spec, causes);
  require_not_negative(spec["successfulJobsHistoryLimit"], "spec.successfulJobsHistoryLimit",
                       causes);
  require_not_negative(spec["failedJobsHistoryLimit"], "spec.failedJobsHistoryLimit", causes);
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
