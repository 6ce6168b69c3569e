#include "apiserver/resources/conditions.h"

#include <chrono>

#include "lookout/api/time.h"

namespace lookout::apiserver::resources {
namespace {

using json::Allocator;

void set_or_leave_out(json::Value& condition, std::string_view field, const std::string& text,
                      Allocator& allocator) {
  if (text.empty()) {
    json::erase(condition, field);
  } else {
    json::set(condition, field, text, allocator);
  }
}

}  // namespace

bool is_condition_true(const api::Object& object, std::string_view type) {
  for (const api::Value condition : object["status"]["conditions"].elements()) {
    if (condition["type"].as_string() == type) return condition["status"].as_string() == "True";
  }
  return false;
}

json::Value& set_condition(json::Value& status, const Condition& condition, Allocator& allocator) {
  // The conditions may be null.
  json::set_default(status, "conditions", json::Value(rapidjson::kArrayType), allocator);
  json::Value& conditions = *json::find(status, "conditions");
  json::Value* entry = nullptr;
  for (json::Value& one : conditions.GetArray()) {
    if (json::text(one, "type") == condition.type) entry = &one;
  }
  if (entry == nullptr) {
    json::Value added(rapidjson::kObjectType);
    json::set(added, "type", condition.type, allocator);
    conditions.PushBack(added, allocator);
    entry = &conditions[conditions.Size() - 1];
  }
  const std::string_view wanted = condition.is_true ? "True" : "False";
  if (json::text(*entry, "status") != wanted) {
    json::set(*entry, "status", wanted, allocator);
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    json::set(*entry, "lastTransitionTime", api::format_time(now), allocator);
  }
  set_or_leave_out(*entry, "reason", condition.reason, allocator);
  set_or_leave_out(*entry, "message", condition.message, allocator);
  return *entry;
}

}  // namespace lookout::apiserver::resources
