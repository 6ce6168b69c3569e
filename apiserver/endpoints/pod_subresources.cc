#include "apiserver/endpoints/pod_subresources.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "lookout/api/time.h"
#include "lookout/api/validation.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::Object;
using api::StatusError;
using json::Allocator;
using json::Document;
using json::Value;

/// Says that the pod has been scheduled, in place of what was said about it before.
void set_scheduled(Document& pod, Allocator& allocator) {
  Value condition(rapidjson::kObjectType);
  json::set(condition, "type", "PodScheduled", allocator);
  json::set(condition, "status", "True", allocator);
  const auto now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  json::set(condition, "lastTransitionTime", api::format_time(now), allocator);
  Value& status = json::child(pod, "status", allocator);
  Value* conditions = json::find(status, "conditions");
  if (conditions == nullptr || !conditions->IsArray())
    conditions = &json::set(status, "conditions", Value(rapidjson::kArrayType), allocator);
  for (Value& present : conditions->GetArray()) {
    if (json::text(present, "type") == "PodScheduled") {
      present = std::move(condition);
      return;
    }
  }
  conditions->PushBack(condition, allocator);
}

void merge_texts(Document& pod, const Object& binding, const char* field, Allocator& allocator) {
  for (const auto& [key, value] : binding["metadata"][field].members()) {
    json::set(json::child(json::child(pod, "metadata", allocator), field, allocator), key,
              value.as_string(), allocator);
  }
}

}  // namespace

registry::Awaitable<void> bind_pod(const registry::Store& store, registry::Target pod,
                                   Object binding, bool dry_run) {
  const std::string node(binding["target"]["name"].as_string());
  const std::string_view kind = binding["target"]["kind"].as_string();
  std::vector<api::StatusCause> causes;
  if (!kind.empty() && kind != "Node" && kind != "Minion") {
    constexpr std::string_view kKinds[] = {"Node", "<empty>"};
    causes.push_back(api::validation::not_supported("target.kind", kind, kKinds));
  }
  if (node.empty()) causes.push_back(api::validation::required("target.name", ""));
  if (!causes.empty()) throw StatusError::invalid("", "Binding", pod.name, std::move(causes));
  const std::string name = pod.name;
  registry::Store::Change change = [=](const Object& present) {
    const auto conflict = [&](std::string_view why) {
      return StatusError::conflict("", "pods/binding", name, why);
    };
    if (!binding.uid().empty() && binding.uid() != present.uid()) {
      throw conflict(
          fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: "
                      "{}",
                      binding.uid(), present.uid()));
    }
    if (present["metadata"]["deletionTimestamp"].exists())
      throw conflict(fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
    if (const auto host = present["spec"]["nodeName"].as_string(); !host.empty())
      throw conflict(fmt::format("pod {} is already assigned to node \"{}\"", name, host));
    Document document = present.to_document();
    Allocator& allocator = document.GetAllocator();
    json::set(json::child(document, "spec", allocator), "nodeName", node, allocator);
    merge_texts(document, binding, "annotations", allocator);
    merge_texts(document, binding, "labels", allocator);
    set_scheduled(document, allocator);
    return Object::from(document);
  };
  storage::Preconditions none;
  co_await store.update(std::move(pod), std::move(change), registry::Part::kWhole, std::move(none),
                        dry_run);
}

registry::Awaitable<void> evict_pod(const registry::Store& store, registry::Target pod,
                                    Object eviction, bool dry_run) {
  if (!eviction.name().empty() && eviction.name() != pod.name)
    throw StatusError::bad_request("name in URL does not match name in Eviction object");
  const api::Value wanted = eviction["deleteOptions"];
  registry::DeleteOptions options;
  options.grace_period_seconds = wanted["gracePeriodSeconds"].to_int();
  if (const auto uid = wanted["preconditions"]["uid"].to_string_view())
    options.preconditions.uid = std::string(*uid);
  if (const auto version = wanted["preconditions"]["resourceVersion"].to_string_view())
    options.preconditions.resource_version = std::string(*version);
  options.dry_run = dry_run;
  co_await store.remove(std::move(pod), std::move(options));
}

}  // namespace lookout::apiserver::endpoints
