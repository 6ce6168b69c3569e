// Validation of jobs and cron jobs.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "apiserver/resources/job_indexes.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/pod_parts.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/base/ascii.h"
#include "lookout/base/cron_schedule.h"

namespace lookout::apiserver::resources {
namespace {

/// Removes and returns the part of the text before the separator.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

using Interval = std::pair<std::int64_t, std::int64_t>;

void check_order(std::int64_t before, std::int64_t index) {
  if (before >= index) {
    throw std::invalid_argument(
        fmt::format("non-increasing order, previous: {}, current: {}", before, index));
  }
}

/// "3", or "3-5".
Interval parse_interval(std::string_view interval, std::int64_t completions) {
  const auto parse = [&](std::string_view part) {
    const auto number = api::detail::parse_int(part);
    if (!number) {
      throw std::invalid_argument(
          fmt::format("cannot convert string to integer for index: {}", quote(part)));
    }
    if (*number >= completions)
      throw std::invalid_argument(fmt::format("too large index: {}", quote(part)));
    return *number;
  };
  if (std::count(interval.begin(), interval.end(), '-') > 1) {
    throw std::invalid_argument(
        fmt::format("the fragment {} violates the requirement that an index interval can have at "
                    "most two parts separated by '-'",
                    quote(interval)));
  }
  const bool has_end = interval.find('-') != std::string_view::npos;
  const std::int64_t first = parse(take_part(interval, '-'));
  const std::int64_t end = has_end ? parse(interval) : first;
  if (has_end) check_order(first, end);
  return {first, end};
}

/// Calls `visit(text)` for each interval.
template <class Visit>
void each_interval(std::string_view text, Visit visit) {
  for (bool more = !text.empty(); more;) {
    more = text.find(',') != std::string_view::npos;
    visit(take_part(text, ','));
  }
}

void check_exit_codes(const Field& codes, Value pod) {
  if (codes["operator"].check_present(R"(valid values: ["In" "NotIn"])"))
    codes["operator"].check_word({"In", "NotIn"});
  if (const Field name = codes["containerName"]; name.exists()) {
    bool known = false;
    for (const char* list : {"containers", "initContainers"}) {
      for (const Value container : pod[list].elements())
        known |= container["name"].as_string() == name.text();
    }
    if (!known) {
      name.invalid_text("must be one of the container or initContainer names in the pod template");
    }
  }
  constexpr std::size_t kMost = 255;
  const Field values = codes["values"];
  if (values.empty()) values.invalid("at least one value is required");
  if ((*values).size() > kMost) values.too_many(kMost);
  std::set<std::int64_t> seen;
  std::optional<std::int64_t> last;
  bool ordered = true;
  values.each([&](const Field& value) {
    if (value.number() == 0 && codes["operator"].text() == "In")
      value.invalid_number("must not be 0 for the In operator");
    if (!seen.insert(value.number()).second) value.duplicate();
    ordered = ordered && (!last || *last <= value.number());
    last = value.number();
  });
  if (!ordered) values.invalid("must be ordered");
}

void check_failure_rule(const Field& rule, const Field& spec) {
  const Field action = rule["action"];
  if (action.check_present(R"(valid values: ["Count" "FailIndex" "FailJob" "Ignore"])") &&
      action.check_word({"Count", "FailIndex", "FailJob", "Ignore"}) &&
      action.text() == "FailIndex" && !spec["backoffLimitPerIndex"].exists())
    action.invalid_text("requires the backoffLimitPerIndex to be set");
  const Field codes = rule["onExitCodes"];
  const Field conditions = rule["onPodConditions"];
  if (codes.exists()) check_exit_codes(codes, *spec["template"]["spec"]);
  constexpr std::size_t kMostPatterns = 20;
  if ((*conditions).size() > kMostPatterns) conditions.too_many(kMostPatterns);
  conditions.each([](const Field& condition) {
    condition["type"].check_form(rules::check_qualified_name);
    if (condition["status"].check_present(R"(valid values: ["False" "True" "Unknown"])"))
      condition["status"].check_word({"False", "True", "Unknown"});
  });
  const auto refuse = [&](std::string_view why) {
    rule.causes().push_back(
        {"FieldValueInvalid", fmt::format("Invalid value: {}", why), rule.path()});
  };
  if (codes.exists() && !conditions.empty())
    refuse("specifying both OnExitCodes and OnPodConditions is not supported");
  if (!codes.exists() && conditions.empty())
    refuse("specifying one of OnExitCodes and OnPodConditions is required");
}

void check_success_rule(const Field& rule, std::int64_t completions) {
  const Field indexes = rule["succeededIndexes"];
  const Field count = rule["succeededCount"];
  if (!indexes.exists() && !count.exists())
    rule.required("at least one of succeededCount or succeededIndexes must be specified");
  std::int64_t named = 0;
  constexpr int kLongest = 64 * 1024;
  if (indexes.text().size() > kLongest)
    indexes.causes().push_back(rules::too_long(indexes.path(), kLongest));
  try {
    named = count_indexes(indexes.text(), completions);
  } catch (const std::invalid_argument& e) {
    indexes.invalid_text(fmt::format("error parsing succeededIndexes: {}", e.what()));
  }
  count.check_not_negative();
  if (count.number() > completions) {
    count.invalid_number(fmt::format(
        "must be less than or equal to {} (the number of specified completions)", completions));
  }
  if (indexes.exists() && count.number() > named) {
    count.invalid_number(
        fmt::format("must be less than or equal to {} (the number of indexes in the specified "
                    "succeededIndexes field)",
                    named));
  }
}

void check_manager(const Field& manager) {
  constexpr int kLongest = 63;
  if (!manager.exists()) return;
  check_domain_path(manager);
  if (manager.text().size() > kLongest)
    manager.causes().push_back(rules::too_long(manager.path(), kLongest));
}

void check_completion_mode(const Field& spec) {
  constexpr std::int64_t kMost = 100000;
  constexpr std::int64_t kMostOfMany = 10000;
  const Field mode = spec["completionMode"];
  const Field completions = spec["completions"];
  const Field failed = spec["maxFailedIndexes"];
  const Field parallelism = spec["parallelism"];
  mode.check_word_if_present({"NonIndexed", "Indexed"});
  if (mode.text() == "Indexed") {
    if (!completions.exists()) completions.required("when completion mode is Indexed");
    if (parallelism.number() > kMost) {
      parallelism.invalid_number(
          "must be less than or equal to 100000 when completion mode is Indexed");
    }
    if (completions.exists() && failed.number() > completions.number())
      failed.invalid_number("must be less than or equal to completions");
    if (failed.number() > kMost) failed.invalid_number("must be less than or equal to 100000");
    if (completions.number() <= kMost || !spec["backoffLimitPerIndex"].exists()) return;
    if (!failed.exists()) failed.required("must be specified when completions is above 100000");
    for (const Field& limited : {parallelism, failed}) {
      if (limited.number() > kMostOfMany) {
        limited.invalid_number(
            "must be less than or equal to 10000 when completions are above 100000 and used with "
            "backoff limit per index");
      }
    }
  } else if (!mode.exists() || mode.text() == "NonIndexed") {
    for (const char* field : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
      if (spec[field].exists()) spec[field].invalid_number("requires indexed completion mode");
    }
  }
}

/// The common rules for jobs and job templates.
void check_job_spec(const Field& spec) {
  for (const char* field : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                            "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"})
    spec[field].check_not_negative();
  if (spec["maxFailedIndexes"].exists() && !spec["backoffLimitPerIndex"].exists())
    spec["backoffLimitPerIndex"].required("when maxFailedIndexes is specified");
  check_manager(spec["managedBy"]);
  check_completion_mode(spec);
  const Field failure = spec["podFailurePolicy"];
  constexpr std::size_t kMostRules = 20;
  if ((*failure["rules"]).size() > kMostRules) failure["rules"].too_many(kMostRules);
  failure["rules"].each([&](const Field& rule) { check_failure_rule(rule, spec); });
  if (const Field success = spec["successPolicy"]; success.exists()) {
    if (spec["completionMode"].text() != "Indexed") {
      success.invalid("requires indexed completion mode");
    } else {
      success["rules"].check_present(
          "at least one rules must be specified when the successPolicy is specified");
      if ((*success["rules"]).size() > kMostRules) success["rules"].too_many(kMostRules);
      success["rules"].each(
          [&](const Field& rule) { check_success_rule(rule, spec["completions"].number()); });
    }
  }
  if (failure.exists()) {
    spec["podReplacementPolicy"].check_word_if_present({"Failed"});
  } else {
    spec["podReplacementPolicy"].check_word_if_present({"Failed", "TerminatingOrFailed"});
  }
  validate_pod_template(spec["template"]);
  const Field restart = spec["template"]["spec"]["restartPolicy"];
  if (restart.empty() || restart.text() == "Always") {
    restart.required(R"(valid values: "OnFailure", "Never")");
  } else if (restart.check_word({"OnFailure", "Never"}) && failure.exists() &&
             restart.text() != "Never") {
    restart.invalid_text(R"(only "Never" is supported when podFailurePolicy is specified)");
  }
}

void check_job(const Field& spec) {
  check_job_spec(spec);
  const Field selector = spec["selector"];
  if (!selector.exists()) {
    selector.required();
  } else {
    selector.check_label_selector();
  }
  const Field labels = spec["template"]["metadata"]["labels"];
  if (!selector.selects(*labels)) labels.invalid("`selector` does not match template `labels`");
}

/// Without spec.manualSelector, the selector must match the generated labels.
void check_generated_selector(const Object& job, const Field& spec) {
  const Field selector = spec["selector"];
  if (spec["manualSelector"].is_true() || !selector.exists()) return;
  const Field labels = spec["template"]["metadata"]["labels"];
  const auto check_label = [&](const char* name, std::string_view expected) {
    const Field label = labels.key(name);
    const std::string why = fmt::format("must be '{}'", expected);
    if (!label.exists()) return label.required(why);
    if (label.text() != expected) labels.named(label.path()).invalid(why);
  };
  check_label("controller-uid", job.uid());
  check_label("job-name", job.name());
  check_label("batch.kubernetes.io/controller-uid", job.uid());
  check_label("batch.kubernetes.io/job-name", job.name());
  bool generated = selector["matchExpressions"].empty();
  for (const auto& [name, value] : (*selector["matchLabels"]).members()) {
    const bool by_uid = name == "controller-uid" || name == "batch.kubernetes.io/controller-uid";
    const bool by_name = name == "job-name" || name == "batch.kubernetes.io/job-name";
    generated &=
        (by_uid && value.as_string() == job.uid()) || (by_name && value.as_string() == job.name());
  }
  if (!generated) selector.invalid("`selector` not auto-generated");
}

/// Accepts only names of time zones; Go's loader would also accept other paths.
bool is_zone_name(std::string_view name) {
  constexpr std::size_t kLongestPart = 14;
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' ||
           c == '.';
  };
  for (;;) {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || part.size() > kLongestPart || part == "." || part == ".." ||
        part.starts_with('-') || !std::all_of(part.begin(), part.end(), fits))
      return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

void check_time_zone(const Field& zone) {
  if (!zone.exists()) return;
  const std::string_view name = zone.text();
  if (name.empty()) return zone.invalid_text("timeZone must be nil or non-empty string");
  if (base::equal_ignoring_case(name, "Local")) {
    zone.invalid_text(
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    // Go's loader accepts this spelling.
    if (name == "Local") return;
  }
  if (!is_zone_name(name)) return zone.invalid_text(fmt::format("unknown time zone {}", name));
  try {
    TimeZone::load(name);
  } catch (const TimeZoneError& e) {
    zone.invalid_text(e.what());
  }
}

void check_schedule(const Field& schedule) {
  if (!schedule.check_present()) return;
  try {
    CronSchedule::parse(schedule.text());
  } catch (const CronScheduleError& e) {
    schedule.invalid_text(e.what());
  }
  if (schedule.text().find("TZ") != std::string_view::npos) {
    schedule.invalid_text("cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  }
}

/// A job's template without the parts that may change. `may_move`: the nodes and the resources of
/// the pods may change.
json::Document template_for_comparison(const Object& job, bool may_move) {
  json::Document document = job.to_document();
  json::Value* spec = json::find(document, "spec");
  json::Value* pod = spec == nullptr ? nullptr : json::find(*spec, "template");
  json::Document out(rapidjson::kObjectType);
  if (pod == nullptr) return out;
  json::Value* pod_spec = json::find(*pod, "spec");
  if (may_move && pod_spec != nullptr) {
    for (const char* field : {"nodeSelector", "tolerations", "schedulingGates"})
      json::erase(*pod_spec, field);
    json::erase(*pod, "metadata");
    if (json::Value* affinity = json::find(*pod_spec, "affinity")) {
      json::erase(*affinity, "nodeAffinity");
      if (affinity->IsObject() && affinity->ObjectEmpty()) json::erase(*pod_spec, "affinity");
    }
    const auto strip = [](json::Value& container) { json::erase(container, "resources"); };
    for (const char* list : {"containers", "initContainers"})
      json::for_each(*pod_spec, list, strip);
  }
  out.CopyFrom(*pod, out.GetAllocator());
  return out;
}

/// Whether a suspended job has no running pods: then the nodes and the resources in its template
/// may change.
bool is_at_rest(Value status) {
  if (status["active"].as_int() > 0) return false;
  if (!status["startTime"].exists()) return true;
  const auto conditions = status["conditions"].elements();
  return std::any_of(conditions.begin(), conditions.end(), [](Value condition) {
    return condition["type"].as_string() == "Suspended" &&
           condition["status"].as_string() == "True";
  });
}

}  // namespace

std::int64_t count_indexes(std::string_view text, std::int64_t completions) {
  std::int64_t count = 0;
  std::optional<std::int64_t> last;
  each_interval(text, [&](std::string_view interval) {
    const auto [first, end] = parse_interval(interval, completions);
    if (last) check_order(*last, first);
    count += end - first + 1;
    last = end;
  });
  return count;
}

std::vector<Interval> valid_intervals(std::string_view text, std::int64_t completions) {
  std::vector<Interval> out;
  each_interval(text, [&](std::string_view interval) {
    try {
      out.push_back(parse_interval(interval, completions));
    } catch (const std::invalid_argument&) {
    }
  });
  return out;
}

void validate_job(const Object& job, Causes& causes) {
  const Field spec(job["spec"], "spec", causes);
  check_generated_selector(job, spec);
  check_job(spec);
  const std::int64_t completions = spec["completions"].number();
  if (spec["completionMode"].text() != "Indexed" || completions <= 0) return;
  const std::string host = fmt::format("{}-{}", job.name(), completions - 1);
  if (rules::check_dns1123_label(host).empty()) return;
  causes.push_back(
      rules::invalid("metadata.name", job.name(),
                     fmt::format("will not able to create pod with invalid DNS label: {}", host)));
}

void validate_job_update(const Object& job, const Object& old, Causes& causes) {
  const Field spec(job["spec"], "spec", causes);
  const Value before = old["spec"];
  // As in Kubernetes, errors in the spec are reported twice.
  check_job(spec);
  const auto stays = [&](const char* field) {
    if (!spec[field].is(before[field])) spec[field].invalid("field is immutable");
  };
  const Field completions = spec["completions"];
  if (spec["completionMode"].text() != "Indexed") {
    stays("completions");
  } else if (completions.exists() && !completions.is(before["completions"]) &&
             completions.number() != spec["parallelism"].number()) {
    completions.invalid("can only be modified in tandem with spec.parallelism");
  }
  stays("selector");
  const bool may_move = before["suspend"].as_bool() && is_at_rest(old["status"]);
  if (!(Object::from(template_for_comparison(job, may_move)) ==
        Object::from(template_for_comparison(old, may_move))))
    spec["template"].invalid("field is immutable");
  for (const char* field :
       {"completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"})
    stays(field);
}

void validate_cron_job(const Object& job, Causes& causes) {
  const Field spec(job["spec"], "spec", causes);
  check_schedule(spec["schedule"]);
  spec["startingDeadlineSeconds"].check_not_negative();
  check_time_zone(spec["timeZone"]);
  spec["concurrencyPolicy"].check_required_word({"Allow", "Forbid", "Replace"});
  const Field of_jobs = spec["jobTemplate"]["spec"];
  check_job_spec(of_jobs);
  if (of_jobs["selector"].exists())
    of_jobs["selector"].invalid("`selector` will be auto-generated");
  if (of_jobs["manualSelector"].is_true()) {
    causes.push_back({"FieldValueNotSupported",
                      R"(Unsupported value: true: supported values: "nil", "false")",
                      of_jobs["manualSelector"].path()});
  }
  spec["successfulJobsHistoryLimit"].check_not_negative();
  spec["failedJobsHistoryLimit"].check_not_negative();
}

void validate_new_cron_job(const Object& job, Causes& causes) {
  constexpr std::size_t kLongestName = 52;
  if (job.name().size() > kLongestName) {
    causes.push_back(
        rules::invalid("metadata.name", job.name(), "must be no more than 52 characters"));
  }
}

}  // namespace lookout::apiserver::resources
