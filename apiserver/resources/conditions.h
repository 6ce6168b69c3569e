// Conditions in an object's status.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/json.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

struct Condition {
  std::string_view type;
  bool is_true = false;
  std::string reason = {};
  std::string message = {};
};

/// Whether status.conditions has that condition, with the status True.
bool is_condition_true(const api::Object& object, std::string_view type);

/// Sets a condition, replacing the previous one. lastTransitionTime changes only with the status. Omits
/// an empty reason or message. Returns the condition in the list.
json::Value& set_condition(json::Value& status, const Condition& condition,
                           json::Allocator& allocator);

}  // namespace lookout::apiserver::resources
