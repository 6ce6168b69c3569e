#include "apiserver/endpoints/eviction.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/endpoints/body.h"
#include "apiserver/names.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/labels.h"
#include "lookout/api/time.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::endpoints {
namespace {

using api::StatusError;
using resources::DeleteOptions;
using resources::Store;
using resources::Target;

/// The maximum number of attempts if the pod changes concurrently.
constexpr int kAttempts = 20;
/// The limit of status.disruptedPods.
constexpr std::size_t kMaxDisruptedPods = 2000;
/// Seconds; for Retry-After.
constexpr std::int32_t kPatience = 10;

/// Whether no budget applies: the pod has not started, has ended, or is being deleted.
bool ignores_budgets(const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].as_string();
  return phase == "Pending" || phase == "Succeeded" || phase == "Failed" ||
         resources::is_deleting(pod);
}

/// Whether the pod is pending; such a pod may become ready at any time.
bool is_pending(const Object& pod) {
  return pod["status"]["phase"].as_string() == "Pending" && !resources::is_deleting(pod);
}

StatusError too_disturbing(std::string why, std::int32_t retry_after) {
  api::Status status =
      StatusError::too_many_requests(
          "Cannot evict pod as it would violate the pod's disruption budget.", retry_after)
          .status();
  status.causes.push_back({"DisruptionBudget", std::move(why), ""});
  return StatusError(std::move(status));
}

StatusError not_seen_yet(const Object& budget) {
  return too_disturbing(
      fmt::format("The disruption budget {} is still being processed by the server.",
                  budget.name()),
      kPatience);
}

/// Why the budget allows no disruption.
std::string reason_of(const Object& budget) {
  const std::string_view name = budget.name();
  const api::Value status = budget["status"];
  std::string_view reason;
  std::string_view message;
  for (const api::Value condition : status["conditions"].elements()) {
    if (condition["type"].as_string() != "DisruptionAllowed") continue;
    if (condition["status"].as_string() != "False") continue;
    reason = condition["reason"].as_string();
    message = condition["message"].as_string();
  }
  if (reason == "SyncFailed" && !message.empty()) {
    return fmt::format(
        "The disruption budget {} does not allow evicting pods currently because it failed sync: "
        "{}",
        name, message);
  }
  const std::int64_t healthy = status["currentHealthy"].as_int();
  const std::int64_t desired = status["desiredHealthy"].as_int();
  if (healthy <= desired) {
    return fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                       desired, healthy);
  }
  std::string text =
      fmt::format("The disruption budget {} does not allow evicting pods currently", name);
  if (!message.empty()) text += fmt::format(" ({}): {}", reason, message);
  return text;
}

/// The budget with one disruption less, for this pod.
Object count_disruption(const Object& budget, const std::string& pod) {
  const api::Value status = budget["status"];
  if (status["observedGeneration"].as_int() < budget["metadata"]["generation"].as_int())
    throw not_seen_yet(budget);
  const auto forbidden = [&](std::string_view why) {
    return StatusError::forbidden("policy", "poddisruptionbudget", budget.name(), why);
  };
  const std::int64_t allowed = status["disruptionsAllowed"].as_int();
  if (allowed < 0) throw forbidden("pdb disruptions allowed is negative");
  if (status["disruptedPods"].size() > kMaxDisruptedPods) {
    throw forbidden(
        "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (allowed == 0) throw too_disturbing(reason_of(budget), 0);
  Document document = budget.to_document();
  Allocator& allocator = document.GetAllocator();
  json::Value& counts = json::child(document, "status", allocator);
  json::set(counts, "disruptionsAllowed", json::Value(allowed - 1), allocator);
  if (allowed == 1) {
    json::Value& condition = resources::set_condition(
        counts, {"DisruptionAllowed", false, "InsufficientPods"}, allocator);
    json::set(condition, "observedGeneration", json::Value(status["observedGeneration"].as_int()),
              allocator);
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  json::set(json::child(counts, "disruptedPods", allocator), pod, api::format_time(now), allocator);
  return Object::from(document);
}

/// The budgets that select the pod.
Awaitable<std::vector<Object>> budgets_of(resources::ServedResourcePtr budgets, Object pod) {
  storage::ListOptions options;
  storage::ListResult list =
      co_await budgets->storage->list(std::string(pod.ns()) + "/", true, std::move(options));
  std::vector<Object> found;
  std::vector<Object> some;
  for (;;) {
    const bool more = co_await list.objects->next(some, 100);
    if (!more) break;
    for (const Object& budget : some) {
      const api::Value selector = budget["spec"]["selector"];
      try {
        if (selector.is_object() &&
            api::labels::from(k8s::meta::v1::LabelSelector(selector)).matches(pod.labels()))
          found.push_back(budget);
      } catch (const api::SelectorError&) {
        // An invalid selector selects nothing.
      }
    }
  }
  co_return found;
}

/// Whether the budget allows the eviction without a disruption, because the pod is not ready.
bool may_go_unready(const Object& pod, const Object& budget) {
  if (resources::is_condition_true(pod, "Ready")) return false;
  if (budget["spec"]["unhealthyPodEvictionPolicy"].as_string() == "AlwaysAllow") return true;
  const std::int64_t desired = budget["status"]["desiredHealthy"].as_int();
  return desired > 0 && budget["status"]["currentHealthy"].as_int() >= desired;
}

/// Sets the condition DisruptionTarget, and deletes the pod.
Awaitable<void> mark_and_remove(const Store& store, Target pod, DeleteOptions options) {
  if (!options.dry_run) {
    Target marked = pod;
    Store::Change change = [pod, preconditions = options.preconditions](const Object& present) {
      resources::check_preconditions(pod, preconditions, present);
      Document document = present.to_document();
      Allocator& allocator = document.GetAllocator();
      resources::set_condition(
          json::child(document, "status", allocator),
          {"DisruptionTarget", true, "EvictionByEvictionAPI", "Eviction API: evicting"}, allocator);
      return Object::from(document);
    };
    const Store::Updated updated =
        co_await store.update(std::move(marked), std::move(change), resources::Part::kStatus);
    if (options.preconditions.resource_version)
      options.preconditions.resource_version = std::string(updated.object.resource_version());
  }
  co_await store.remove(std::move(pod), std::move(options));
}

/// Deletes the pod if no budget applies; otherwise returns it.
Awaitable<Object> remove_without_budget(const Store& store, Target pod, DeleteOptions asked) {
  for (int attempt = 1;; ++attempt) {
    const Object present = co_await store.get(pod);
    if (!ignores_budgets(present)) co_return present;
    DeleteOptions options = asked;
    const bool is_own = is_pending(present) && !asked.preconditions.resource_version;
    // Fail if the pod becomes ready concurrently.
    if (is_own) options.preconditions.resource_version = std::string(present.resource_version());
    try {
      co_await mark_and_remove(store, pod, std::move(options));
      co_return Object();
    } catch (const StatusError& e) {
      if (!api::is_conflict(e) || !is_own || attempt == kAttempts) throw;
    }
  }
}

DeleteOptions options_of(const Object& eviction, bool dry_run) {
  const auto& wanted = eviction["deleteOptions"];
  constexpr const char* kUnsafe = "ignoreStoreReadErrorWithClusterBreakingPotential";
  if (wanted[kUnsafe].as_bool()) {
    std::vector<api::StatusCause> causes = {
        {"FieldValueInvalid",
         "Invalid value: true: can not be set for pod eviction, try after removing the option",
         fmt::format("deleteOptions.{}", kUnsafe)}};
    throw StatusError::invalid("policy", "Eviction", eviction.name(), std::move(causes));
  }
  DeleteOptions options = delete_options_of(wanted);
  options.dry_run = options.dry_run || dry_run;
  return options;
}

}  // namespace

Awaitable<void> evict_pod(const Store& store, Target pod, resources::ServedResourcePtr budgets,
                          Object eviction, bool dry_run) {
  if (eviction.name() != pod.name)
    throw StatusError::bad_request("name in URL does not match name in Eviction object");
  DeleteOptions options = options_of(eviction, dry_run);
  const Object present = co_await remove_without_budget(store, pod, options);
  if (!present) co_return;
  const std::vector<Object> found = co_await budgets_of(budgets, present);
  if (found.size() > 1) {
    api::Status status;
    status.code = 500;
    status.message =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support.";
    throw StatusError(std::move(status));
  }
  bool is_own = false;
  if (!found.empty() && may_go_unready(present, found.front())) {
    // Fail if the pod becomes ready concurrently.
    is_own = !options.preconditions.resource_version;
    options.preconditions.resource_version = std::string(present.resource_version());
  } else if (!found.empty()) {
    Target budget{budgets, pod.ns, std::string(found.front().name())};
    Store::Change change = [name = pod.name](const Object& before) {
      return count_disruption(before, name);
    };
    storage::Preconditions none;
    co_await store.update(std::move(budget), std::move(change), resources::Part::kStatus,
                          std::move(none), options.dry_run);
  }
  try {
    co_await mark_and_remove(store, std::move(pod), std::move(options));
  } catch (const StatusError& e) {
    // The client retries with the new state of the budget.
    if (is_own && api::is_conflict(e)) throw not_seen_yet(found.front());
    throw;
  }
}

}  // namespace lookout::apiserver::endpoints
