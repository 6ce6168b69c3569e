// Status transitions of jobs. Other controllers than Kubernetes' may manage a job, so the server
// enforces the transitions that clients expect.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/resources/field.h"
#include "apiserver/resources/job_indexes.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::resources {
namespace {

bool has_condition(Value status, std::string_view type, std::string_view wanted = "True") {
  for (const Value condition : status["conditions"].elements()) {
    if (condition["type"].as_string() == type) return condition["status"].as_string() == wanted;
  }
  return false;
}

/// The conditions of a job.
struct Conditions {
  explicit Conditions(Value status)
      : complete(has_condition(status, "Complete")),
        failed(has_condition(status, "Failed")),
        failing(has_condition(status, "FailureTarget")),
        succeeding(has_condition(status, "SuccessCriteriaMet")) {}
  bool finished() const { return complete || failed; }

  bool complete;
  bool failed;
  bool failing;
  bool succeeding;
};

class StatusChange {
 public:
  StatusChange(const Object& job, const Object& old, Causes& causes)
      : spec_(job["spec"]),
        status_(job["status"], "status", causes),
        before_(old["status"]),
        now_(*status_),
        then_(before_) {}

  void check() const {
    check_counts();
    check_uncounted();
    check_completion();
    check_end();
    check_indexes();
    const bool finished_changed = now_.finished() != then_.finished();
    if ((finished_changed || changed("terminating")) && count("terminating") > 0 && now_.finished())
      status_["terminating"].invalid_number("terminating>0 is invalid for finished job");
    if ((changed("ready") || changed("active")) && status_["ready"].exists() &&
        count("ready") > count("active"))
      status_["ready"].invalid_number("cannot set more ready pods than active");
    if (now_.succeeding && now_.failed)
      refuse("cannot set SuccessCriteriaMet=True and Failed=true conditions");
    if (now_.succeeding && now_.failing)
      refuse("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    if (spec_["successPolicy"].exists() && !now_.succeeding && now_.complete) {
      refuse("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
    }
    check_steps();
  }

 private:
  bool changed(const char* field) const { return !status_[field].is(before_[field]); }
  std::int64_t count(const char* field) const { return status_[field].number(); }
  void refuse(std::string_view why) const {
    status_.causes().push_back(
        {"FieldValueInvalid", fmt::format("Invalid value: {}", why), "status.conditions"});
  }

  void check_counts() const {
    for (const char* field : {"active", "succeeded", "failed", "ready", "terminating"})
      status_[field].check_not_negative();
  }

  void check_uncounted() const {
    std::set<std::string_view> seen;
    for (const char* list : {"succeeded", "failed"}) {
      status_["uncountedTerminatedPods"][list].each([&](const Field& uid) {
        if (uid.empty()) {
          uid.invalid_text("must not be empty");
        } else if (!seen.insert(uid.text()).second) {
          uid.duplicate();
        }
      });
    }
  }

  void check_completion() const {
    const bool complete_changed = now_.complete != then_.complete;
    const Field time = status_["completionTime"];
    if ((complete_changed || now_.failed != then_.failed) && now_.complete && now_.failed)
      refuse("cannot set Complete=True and Failed=true conditions");
    if ((complete_changed || now_.failing != then_.failing) && now_.complete && now_.failing)
      refuse("cannot set Complete=True and FailureTarget=true conditions");
    if (complete_changed || changed("completionTime")) {
      if (time.exists() && !now_.complete)
        time.invalid("cannot set completionTime when there is no Complete=True condition");
      if (!time.exists() && now_.complete)
        time.required("completionTime is required for Complete jobs");
    }
    if (changed("startTime") || changed("completionTime")) {
      const auto start = api::parse_time(status_["startTime"].text());
      const auto end = api::parse_time(time.text());
      if (start && end && *end < *start) time.invalid("must be equal to or after `startTime`");
    }
  }

  /// Checks a job that has failed or is complete.
  void check_end() const {
    if ((now_.failed != then_.failed || changed("failedIndexes")) && now_.failed && !now_.failing)
      refuse("cannot set Failed=True condition without the FailureTarget=true condition");
    if ((now_.complete != then_.complete || now_.succeeding != then_.succeeding) && now_.complete &&
        !now_.succeeding)
      refuse("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    const bool finished_changed = now_.finished() != then_.finished();
    if (!now_.finished()) return;
    if ((finished_changed || changed("active")) && count("active") > 0)
      status_["active"].invalid_number("active>0 is invalid for finished job");
    const bool idle =
        spec_["suspend"].as_bool() && spec_["completions"].to_int() == std::int64_t{0};
    if ((finished_changed || changed("startTime")) && !idle && !status_["startTime"].exists())
      status_["startTime"].required("startTime is required for finished job");
    const Field uncounted = status_["uncountedTerminatedPods"];
    if ((finished_changed || changed("uncountedTerminatedPods")) &&
        !(uncounted["succeeded"].empty() && uncounted["failed"].empty())) {
      const auto shown = [&](const char* list) {
        return uncounted[list].exists() ? (*uncounted[list]).to_json() : std::string("null");
      };
      // Shows the value in Go's syntax.
      uncounted.invalid_as(
          fmt::format(R"({{"Succeeded":{},"Failed":{}}})", shown("succeeded"), shown("failed")),
          "must be empty for finished job");
    }
  }

  void check_indexes() const {
    const Field completed = status_["completedIndexes"];
    const Field failed = status_["failedIndexes"];
    const bool completed_changed = completed.text() != before_["completedIndexes"].as_string();
    const bool failed_changed = changed("failedIndexes");
    const Value completions = spec_["completions"];
    const bool has_limit = spec_["backoffLimitPerIndex"].exists();
    const auto check_format = [&](const Field& indexes) {
      try {
        count_indexes(indexes.text(), completions.as_int());
      } catch (const std::invalid_argument& e) {
        indexes.invalid_text(fmt::format("error parsing {}: {}",
                                         indexes.path().substr(std::string_view("status.").size()),
                                         e.what()));
      }
    };
    if (completed_changed && completions.exists()) check_format(completed);
    if (failed_changed && completions.exists() && has_limit && failed.exists())
      check_format(failed);
    if (completed_changed && !completed.empty() && spec_["completionMode"].as_string() != "Indexed")
      completed.invalid_text(
          "cannot set non-empty completedIndexes when non-indexed completion mode");
    if (failed_changed && !has_limit && failed.exists())
      failed.invalid_text("cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    if ((failed_changed || completed_changed) && completions.exists() && failed.exists())
      check_overlap(failed, completed.text(), completions.as_int());
  }

  static void check_overlap(const Field& failed, std::string_view completed,
                            std::int64_t completions) {
    const auto complete = valid_intervals(completed, completions);
    for (const auto& [first, last] : valid_intervals(failed.text(), completions)) {
      for (const auto& [from, to] : complete) {
        if (from > last || first > to) continue;
        return failed.invalid_text(fmt::format(
            "failedIndexes and completedIndexes overlap at index: {}", std::max(from, first)));
      }
    }
  }

  void check_steps() const {
    const std::pair<bool, const char*> kept[] = {{then_.failed && !now_.failed, "Failed"},
                                                 {then_.complete && !now_.complete, "Complete"},
                                                 {then_.failing && !now_.failing, "FailureTarget"}};
    for (const auto& [gone, type] : kept) {
      if (gone) refuse(fmt::format("cannot disable the terminal {}=True condition", type));
    }
    if (count("failed") < before_["failed"].as_int())
      status_["failed"].invalid_number("cannot decrease the failed counter");
    // Indexed jobs can be scaled down.
    const bool scales = spec_["completionMode"].as_string() == "Indexed" &&
                        spec_["completions"] == spec_["parallelism"];
    if (!scales && count("succeeded") < before_["succeeded"].as_int())
      status_["succeeded"].invalid_number("cannot decrease the succeeded counter");
    const Field end = status_["completionTime"];
    if (end.exists() && before_["completionTime"].exists() && changed("completionTime"))
      end.invalid("field is immutable");
    const bool resumes =
        has_condition(before_, "Suspended") && has_condition(*status_, "Suspended", "False");
    if (changed("startTime") && !resumes && before_["startTime"].exists() &&
        !spec_["suspend"].as_bool())
      status_["startTime"].invalid("field is immutable for unsuspended job once set");
    if (then_.succeeding && !now_.succeeding)
      refuse("cannot disable the SuccessCriteriaMet=True condition");
    if (then_.complete && !then_.succeeding && now_.succeeding) {
      refuse("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
    }
  }

  Value spec_;
  Field status_;
  Value before_;
  Conditions now_;
  Conditions then_;
};

}  // namespace

void validate_job_status(const Object& job, const Object& old, Causes& causes) {
  StatusChange(job, old, causes).check();
}

}  // namespace lookout::apiserver::resources
