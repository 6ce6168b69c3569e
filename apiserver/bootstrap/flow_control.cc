#include "apiserver/bootstrap/flow_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "apiserver/bootstrap/flow_objects.h"
#include "apiserver/controllers/beside.h"
#include "apiserver/controllers/own_writes.h"
#include "apiserver/json.h"
#include "apiserver/names.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::bootstrap {
namespace {

using json::Value;
using resources::ServedResourcePtr;

constexpr const char* kFlowControl = "flowcontrol.apiserver.k8s.io";
constexpr std::string_view kProducer = "api-priority-and-fairness-config-producer-v1";
constexpr std::string_view kConsumer = "api-priority-and-fairness-config-consumer-v1";
/// The annotation that says whether the server manages the spec of an object.
constexpr const char* kAutoUpdate = "apf.kubernetes.io/autoupdate-spec";
constexpr std::chrono::minutes kOften{1};

std::vector<Object> wanted_objects() {
  std::vector<Object> out;
  for (const Object& object : flow_objects()) {
    Document document = object.to_document();
    Allocator& allocator = document.GetAllocator();
    json::set(json::child(*json::find(document, "metadata"), "annotations", allocator), kAutoUpdate,
              "true", allocator);
    out.push_back(Object::from(document));
  }
  return out;
}

/// The value of the annotation; nullopt if it is absent or not a boolean.
std::optional<bool> auto_update_of(const Object& object) {
  const std::string_view text = object["metadata"]["annotations"][kAutoUpdate].as_string();
  for (const char* yes : {"1", "t", "T", "TRUE", "true", "True"})
    if (text == yes) return true;
  for (const char* no : {"0", "f", "F", "FALSE", "false", "False"})
    if (text == no) return false;
  return std::nullopt;
}

/// `present` with the wanted state; unchanged if it has that state.
Object revised_flow_object(const Object& present, const Object& wanted) {
  const std::optional<bool> annotated = auto_update_of(present);
  // Without the annotation, an object that was never changed is managed by the server.
  const bool updates = is_mandatory_flow_object(wanted.name()) ||
                       annotated.value_or(present["metadata"]["generation"].as_int() == 1);
  Document document = present.to_document();
  const Document other = wanted.to_document();
  const Value* spec = json::find(document, "spec");
  const bool differs = updates && (spec == nullptr || *spec != *json::find(other, "spec"));
  if (!differs && annotated == updates) return present;
  Allocator& allocator = document.GetAllocator();
  if (differs) json::take(document, other, "spec", allocator);
  Value& metadata = *json::find(document, "metadata");
  json::set(json::child(metadata, "annotations", allocator), kAutoUpdate,
            updates ? "true" : "false", allocator);
  return Object::from(document);
}

/// The status with the condition Dangling, to be applied to a flow schema; nullopt if the schema
/// has that condition already.
std::optional<Object> status_of(const Object& schema, bool dangling) {
  constexpr const char* kType = "Dangling";
  const std::string_view level = schema["spec"]["priorityLevelConfiguration"]["name"].as_string();
  const char* status = dangling ? "True" : "False";
  const char* reason = dangling ? "NotFound" : "Found";
  const std::string message = fmt::format(
      "This FlowSchema references the PriorityLevelConfiguration object named {} {}",
      api::detail::quote(level), dangling ? "but there is no such object" : "and it exists");
  for (const api::Value condition : schema["status"]["conditions"].elements()) {
    if (condition["type"].as_string() == kType && condition["status"].as_string() == status &&
        condition["reason"].as_string() == reason && condition["message"].as_string() == message)
      return std::nullopt;
  }
  Document config(rapidjson::kObjectType);
  Allocator& allocator = config.GetAllocator();
  json::set(config, "apiVersion", fmt::format("{}/v1", kFlowControl), allocator);
  json::set(config, "kind", "FlowSchema", allocator);
  json::set(json::child(config, "metadata", allocator), "name", schema.name(), allocator);
  Value condition(rapidjson::kObjectType);
  json::set(condition, "type", kType, allocator);
  json::set(condition, "status", status, allocator);
  json::set(condition, "reason", reason, allocator);
  json::set(condition, "message", message, allocator);
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  json::set(condition, "lastTransitionTime", api::format_time(now), allocator);
  Value conditions(rapidjson::kArrayType);
  conditions.PushBack(condition, allocator);
  json::set(json::child(config, "status", allocator), "conditions", std::move(conditions),
            allocator);
  return Object::from(config);
}

}  // namespace

FlowControl::FlowControl(const controllers::Context& context)
    : context_(context),
      schemas_(context_.resources.table()->find(kFlowControl, "v1", "flowschemas")),
      levels_(context_.resources.table()->find(kFlowControl, "v1", "prioritylevelconfigurations")),
      wanted_(wanted_objects()) {}

Awaitable<void> FlowControl::settle() const {
  co_await keep(levels_);
  co_await keep(schemas_);
  co_await settle_statuses();
}

Awaitable<void> FlowControl::keep(ServedResourcePtr resource) const {
  controllers::KeptObjects kept;
  kept.resource = resource;
  std::copy_if(wanted_.begin(), wanted_.end(), std::back_inserter(kept.wanted),
               [&](const Object& object) { return object.kind() == resource->type.kind; });
  kept.revise = revised_flow_object;
  // Another version of the server created the objects with this annotation.
  kept.is_surplus = [](const Object& object) { return auto_update_of(object) == true; };
  return controllers::keep(context_, std::move(kept), kProducer);
}

Awaitable<void> FlowControl::settle_statuses() const {
  const std::vector<Object> levels = co_await controllers::list_all(levels_);
  const std::vector<Object> schemas = co_await controllers::list_all(schemas_);
  std::set<std::string_view> names;
  for (const Object& level : levels) names.insert(level.name());
  std::vector<Object> statuses;
  for (const Object& schema : schemas) {
    const bool dangling =
        !names.contains(schema["spec"]["priorityLevelConfiguration"]["name"].as_string());
    if (auto status = status_of(schema, dangling)) statuses.push_back(std::move(*status));
  }
  std::function<Awaitable<void>(std::size_t)> work = [&](std::size_t index) {
    return apply_status(statuses[index]);
  };
  co_await controllers::run_beside(statuses.size(), controllers::kWritesAtOnce, std::move(work));
}

Awaitable<void> FlowControl::apply_status(Object status) const {
  try {
    co_await controllers::apply(context_, controllers::target_of(schemas_, status), status,
                                resources::Part::kStatus, kConsumer);
  } catch (const StatusError& e) {
    if (!api::is_not_found(e)) throw;
  }
}

Awaitable<void> FlowControl::follow(ServedResourcePtr resource) const {
  storage::WatchOptions options;
  const auto watch = co_await resource->storage->watch("", true, std::move(options));
  auto due = storage::Watch::TimePoint::clock::now() + kOften;
  std::vector<storage::Event> events;
  for (bool more = true; more;) {
    more = co_await watch->next(events, due);
    if (storage::Watch::TimePoint::clock::now() >= due) {
      co_await keep(resource);
      due = storage::Watch::TimePoint::clock::now() + kOften;
    }
    if (!events.empty()) co_await settle_statuses();
  }
}

}  // namespace lookout::apiserver::bootstrap
