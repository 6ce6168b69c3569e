// Conditions: status.conditions of an object.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/api/draft.h"
#include "lookout/api/object.h"
#include "lookout/api/time.h"
#include "lookout/base/attributes.h"

namespace lookout::controller {

enum class ConditionStatus { kTrue, kFalse, kUnknown };

/// metav1.Condition.
struct Condition {
  LOOKOUT_OPTION std::string type;  ///< "Ready"
  ConditionStatus status = ConditionStatus::kUnknown;
  LOOKOUT_OPTION std::string reason;  ///< a CamelCase word; the API requires one
  LOOKOUT_OPTION std::string message = {};
  /// Empty: the generation of the object in the draft.
  std::optional<std::int64_t> observed_generation = {};
};

/// Writes the condition into status.conditions; returns true if anything changed. The transition
/// time is set to `now` when the status changes; otherwise it stays, so that a second call with the
/// same condition changes nothing. Conditions of other types stay. apimachinery's
/// meta.SetStatusCondition. Throws InvalidArgument without a type or a reason, and for text that is
/// not UTF-8.
bool set_condition(
    const api::ObjectDraft& draft, const Condition& condition,
    api::Time now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
/// Returns true if the object had such a condition.
bool remove_condition(const api::ObjectDraft& draft, std::string_view type);

/// The status of a condition; empty if the object has none of this type.
std::optional<ConditionStatus> condition_status(const api::Object& object, std::string_view type);
inline bool is_condition_true(const api::Object& object, std::string_view type) {
  return condition_status(object, type) == ConditionStatus::kTrue;
}

}  // namespace lookout::controller
