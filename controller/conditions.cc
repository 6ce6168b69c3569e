#include "lookout/controller/conditions.h"

#include <cstddef>
#include <string_view>

#include "lookout/api/error.h"
#include "lookout/base/enum_names.h"
#include "lookout/base/structural_scanner.h"
#include "lookout/k8s/meta/v1_draft.h"

namespace lookout::controller {
namespace {

std::string_view to_string(ConditionStatus status) {
  static constexpr auto kNames =
      base::enum_names<ConditionStatus>({{ConditionStatus::kTrue, "True"},
                                         {ConditionStatus::kFalse, "False"},
                                         {ConditionStatus::kUnknown, "Unknown"}});
  return kNames.name_of(status);
}

api::ListDraft<k8s::meta::v1::ConditionDraft> conditions_of(const api::ObjectDraft& draft) {
  return api::ListDraft<k8s::meta::v1::ConditionDraft>(draft["status"]["conditions"]);
}

}  // namespace

bool set_condition(const api::ObjectDraft& draft, const Condition& condition, api::Time now) {
  if (condition.type.empty() || condition.reason.empty())
    throw InvalidArgument("a condition needs a type and a reason");
  // Check before writing any part of the condition.
  for (const std::string_view text :
       {std::string_view(condition.type), std::string_view(condition.reason),
        std::string_view(condition.message)}) {
    if (find_invalid_utf8(text) != std::string_view::npos)
      throw InvalidArgument("the texts of a condition must be UTF-8");
  }
  const auto generation = condition.observed_generation
                              ? condition.observed_generation
                              : k8s::meta::v1::ObjectMetaDraft(draft["metadata"]).generation();
  const std::string_view status = to_string(condition.status);
  const auto all = conditions_of(draft);
  for (const auto& each : all) {
    if (each.type() != condition.type) continue;
    bool changed = false;
    if (each.status() != status) {
      each.set_status(status).set_last_transition_time(now);
      changed = true;
    }
    if (each.reason() != condition.reason) {
      each.set_reason(condition.reason);
      changed = true;
    }
    if (each.message() != condition.message) {
      each.set_message(condition.message);
      changed = true;
    }
    if (generation && each.observed_generation() != generation) {
      each.set_observed_generation(*generation);
      changed = true;
    }
    return changed;
  }
  const auto added = all.append();
  added.set_type(condition.type).set_status(status).set_reason(condition.reason);
  added.set_message(condition.message).set_last_transition_time(now);
  if (generation) added.set_observed_generation(*generation);
  return true;
}

bool remove_condition(const api::ObjectDraft& draft, std::string_view type) {
  const auto all = conditions_of(draft);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].type() != type) continue;
    all.erase(i);
    return true;
  }
  return false;
}

std::optional<ConditionStatus> condition_status(const api::Object& object, std::string_view type) {
  const api::Value conditions = object["status"]["conditions"];
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const api::Value each = conditions[i];
    if (each["type"].as_string() != type) continue;
    const std::string_view status = each["status"].as_string();
    return status == "True"    ? ConditionStatus::kTrue
           : status == "False" ? ConditionStatus::kFalse
                               : ConditionStatus::kUnknown;
  }
  return std::nullopt;
}

}  // namespace lookout::controller
