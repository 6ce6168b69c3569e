#include "apiserver/resources/priority_admission.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/resources/forbidden_pod.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::resources {
namespace {

/// The default class; if there are several, the one with the lowest value. Empty if there is none.
Awaitable<Object> default_class(ServedResourcePtr classes) {
  storage::ListOptions options;
  options.match = storage::VersionMatch::kNotOlderThan;
  storage::ListResult list = co_await classes->storage->list("", true, std::move(options));
  Object out;
  std::vector<Object> some;
  for (;;) {
    const bool more = co_await list.objects->next(some, 100);
    if (!more) break;
    for (const Object& one : some) {
      if (!one["globalDefault"].as_bool()) continue;
      if (!out || one["value"].as_int() < out["value"].as_int()) out = one;
    }
  }
  co_return out;
}

}  // namespace

Awaitable<Object> admit_priority(ServedResourcePtr classes, Object pod) {
  const std::string name(pod["spec"]["priorityClassName"].as_string());
  Object chosen;
  if (name.empty()) {
    ServedResourcePtr all = classes;
    chosen = co_await default_class(std::move(all));
  } else {
    // The object may come from a cache, as in kube-apiserver.
    chosen = co_await classes->storage->get(name, 1);
    if (!chosen) chosen = co_await classes->storage->get(name);
    if (!chosen)
      throw forbidden_pod(pod, fmt::format("no PriorityClass with name {} was found", name));
  }
  const std::int64_t priority = chosen ? chosen["value"].as_int() : 0;
  std::string policy(chosen["preemptionPolicy"].as_string());
  if (policy.empty()) policy = "PreemptLowerPriority";
  const auto spec = pod["spec"];
  if (spec["priority"].exists() && spec["priority"].as_int() != priority) {
    throw forbidden_pod(
        pod, fmt::format("the integer value of priority ({}) must not be provided in pod "
                         "spec; priority admission controller computed {} from the given "
                         "PriorityClass name",
                         spec["priority"].as_int(), priority));
  }
  if (spec["preemptionPolicy"].exists() && spec["preemptionPolicy"].as_string() != policy) {
    throw forbidden_pod(
        pod, fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod "
                         "spec; priority admission controller computed {} from the given "
                         "PriorityClass name",
                         spec["preemptionPolicy"].as_string(), policy));
  }
  json::Document document = pod.to_document();
  json::Value* const to = json::find(document, "spec");
  // Validation rejects a spec that is not an object.
  if (to == nullptr || !to->IsObject()) co_return pod;
  auto& allocator = document.GetAllocator();
  if (name.empty() && chosen)
    json::set(*to, "priorityClassName", std::string(chosen.name()), allocator);
  json::set(*to, "priority", json::Value(priority), allocator);
  json::set(*to, "preemptionPolicy", policy, allocator);
  co_return Object::from(document);
}

Awaitable<void> check_only_default(ServedResourcePtr classes, Object priority_class, bool is_new) {
  if (!priority_class["globalDefault"].as_bool()) co_return;
  const Object present = co_await default_class(std::move(classes));
  if (!present || (!is_new && present.name() == priority_class.name())) co_return;
  throw StatusError::forbidden(
      "scheduling.k8s.io", "priorityclasses", priority_class.name(),
      fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                  present.name()));
}

}  // namespace lookout::apiserver::resources
