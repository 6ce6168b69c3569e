#include "apiserver/endpoints/pod_subresources.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/names.h"
#include "apiserver/resources/conditions.h"
#include "apiserver/resources/object_meta.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/labels.h"
#include "lookout/api/time.h"
#include "lookout/api/validation.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::endpoints {
namespace {

using json::Value;

void merge_texts(Document& pod, const Object& binding, const char* field, Allocator& allocator) {
  for (const auto& [key, value] : binding["metadata"][field].members()) {
    json::set(json::child(json::child(pod, "metadata", allocator), field, allocator), key,
              value.as_string(), allocator);
  }
}

}  // namespace

Awaitable<void> bind_pod(const resources::Store& store, resources::Target pod, Object binding,
                         bool dry_run) {
  const std::string node(binding["target"]["name"].as_string());
  const std::string_view kind = binding["target"]["kind"].as_string();
  std::vector<api::StatusCause> causes;
  if (!kind.empty() && kind != "Node" && kind != "Minion") {
    constexpr std::string_view kKinds[] = {"Node", "<empty>"};
    causes.push_back(api::validation::not_supported("target.kind", kind, kKinds));
  }
  if (node.empty()) causes.push_back(api::validation::required("target.name", ""));
  if (!binding.kind().empty() && binding.kind() != "Binding") {
    throw StatusError::bad_request(
        fmt::format("{0} in version \"v1\" cannot be handled as a Binding: converting (v1.{0}) to "
                    "(core.Binding): unknown conversion",
                    binding.kind()));
  }
  if (!causes.empty()) {
    // (The API server has no Status of its own for it.)
    api::Status status;
    status.code = 500;
    status.message = api::validation::to_string(causes);
    throw StatusError(std::move(status));
  }
  const std::string name = pod.name;
  resources::Store::Change change = [=](const Object& present) {
    const auto conflict = [&](std::string_view why) {
      return StatusError::conflict("", "pods/binding", name, why);
    };
    if (!binding.uid().empty() && binding.uid() != present.uid()) {
      throw conflict(
          fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: "
                      "{}",
                      binding.uid(), present.uid()));
    }
    if (resources::is_deleting(present))
      throw conflict(fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
    if (const auto host = present["spec"]["nodeName"].as_string(); !host.empty())
      throw conflict(fmt::format("pod {} is already assigned to node \"{}\"", name, host));
    Document document = present.to_document();
    Allocator& allocator = document.GetAllocator();
    json::set(json::child(document, "spec", allocator), "nodeName", node, allocator);
    merge_texts(document, binding, "annotations", allocator);
    merge_texts(document, binding, "labels", allocator);
    resources::set_condition(json::child(document, "status", allocator), {"PodScheduled", true},
                             allocator);
    return Object::from(document);
  };
  storage::Preconditions none;
  co_await store.update(std::move(pod), std::move(change), resources::Part::kWhole, std::move(none),
                        dry_run);
}

namespace {

/// Pods that nobody would miss: those that have not begun, and those that have ended.
bool is_free_to_go(const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].as_string();
  return phase == "Pending" || phase == "Succeeded" || phase == "Failed" ||
         resources::is_deleting(pod);
}

StatusError too_disturbing(std::string why, std::int32_t retry_after) {
  api::Status status =
      StatusError::too_many_requests(
          "Cannot evict pod as it would violate the pod's disruption budget.", retry_after)
          .status();
  status.causes.push_back({"DisruptionBudget", std::move(why), ""});
  return StatusError(std::move(status));
}

/// The budget with one disruption less, for this pod.
Object count_disruption(const Object& budget, const std::string& pod) {
  constexpr std::int32_t kPatience = 10;
  const api::Value status = budget["status"];
  const std::string name(budget.name());
  if (status["observedGeneration"].as_int() < budget["metadata"]["generation"].as_int()) {
    throw too_disturbing(
        fmt::format("The disruption budget {} is still being processed by the server.", name),
        kPatience);
  }
  const std::int64_t allowed = status["disruptionsAllowed"].as_int();
  if (allowed <= 0) {
    throw too_disturbing(
        fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                    status["desiredHealthy"].as_int(), status["currentHealthy"].as_int()),
        0);
  }
  Document document = budget.to_document();
  Allocator& allocator = document.GetAllocator();
  Value& counts = json::child(document, "status", allocator);
  json::set(counts, "disruptionsAllowed", Value(allowed - 1), allocator);
  const auto now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  json::set(json::child(counts, "disruptedPods", allocator), pod, api::format_time(now), allocator);
  return Object::from(document);
}

/// The budgets that a pod is under.
Awaitable<std::vector<std::string>> budgets_of(resources::ServedResourcePtr budgets, Object pod) {
  storage::ListOptions options;
  storage::ListResult list =
      co_await budgets->storage->list(std::string(pod.ns()) + "/", true, std::move(options));
  std::vector<std::string> names;
  std::vector<Object> some;
  for (;;) {
    const bool more = co_await list.objects->next(some, 100);
    if (!more) break;
    for (const Object& budget : some) {
      const api::Value selector = budget["spec"]["selector"];
      try {
        if (selector.is_object() &&
            api::labels::from(k8s::meta::v1::LabelSelector(selector)).matches(pod.labels()))
          names.emplace_back(budget.name());
      } catch (const api::SelectorError&) {
        // It selects nothing.
      }
    }
  }
  co_return names;
}

}  // namespace

Awaitable<void> evict_pod(const resources::Store& store, resources::Target pod,
                          resources::ServedResourcePtr budgets, Object eviction, bool dry_run) {
  if (!eviction.name().empty() && eviction.name() != pod.name)
    throw StatusError::bad_request("name in URL does not match name in Eviction object");
  const api::Value wanted = eviction["deleteOptions"];
  resources::DeleteOptions options;
  options.grace_period_seconds = wanted["gracePeriodSeconds"].to_int();
  if (const auto uid = wanted["preconditions"]["uid"].to_string_view())
    options.preconditions.uid = std::string(*uid);
  if (const auto version = wanted["preconditions"]["resourceVersion"].to_string_view())
    options.preconditions.resource_version = std::string(*version);
  options.dry_run = dry_run;
  const Object present = co_await store.get(pod);
  if (!is_free_to_go(present)) {
    const std::vector<std::string> names = co_await budgets_of(budgets, present);
    if (names.size() > 1) {
      throw StatusError::internal_error(
          "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
          "support.");
    }
    if (!names.empty()) {
      resources::Target budget{budgets, pod.ns, names.front()};
      resources::Store::Change change = [name = pod.name](const Object& before) {
        return count_disruption(before, name);
      };
      storage::Preconditions none;
      co_await store.update(std::move(budget), std::move(change), resources::Part::kStatus,
                            std::move(none), dry_run);
    }
  }
  co_await store.remove(std::move(pod), std::move(options));
}

void check_log_options(const http::Request& request, const Object& pod) {
  std::vector<api::StatusCause> causes;
  for (const char* name : {"tailLines", "limitBytes", "sinceSeconds"}) {
    const auto text = request.parameter(name);
    if (!text || text->empty()) continue;
    const auto number = api::detail::parse_int(*text);
    if (!number) {
      throw StatusError::bad_request(
          fmt::format("strconv.ParseInt: parsing {}: invalid syntax", api::detail::quote(*text)));
    }
    const bool counts_lines = name == std::string_view("tailLines");
    if (*number < (counts_lines ? 0 : 1)) {
      causes.push_back(api::validation::invalid(
          name, *number,
          counts_lines ? "must be greater than or equal to 0" : "must be greater than 0"));
    }
  }
  if (!causes.empty())
    throw StatusError::invalid("", "PodLogOptions", pod.name(), std::move(causes));
  std::vector<std::string> names;
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const api::Value container : pod["spec"][list].elements())
      names.emplace_back(container["name"].as_string());
  }
  const std::string wanted(request.parameter("container").value_or(""));
  if (wanted.empty() && pod["spec"]["containers"].size() > 1) {
    throw StatusError::bad_request(
        fmt::format("a container name must be specified for pod {}, choose one of: [{}]",
                    pod.name(), fmt::join(names, " ")));
  }
  if (!wanted.empty() && std::find(names.begin(), names.end(), wanted) == names.end()) {
    throw StatusError::bad_request(
        fmt::format("container {} is not valid for pod {}", wanted, pod.name()));
  }
}

}  // namespace lookout::apiserver::endpoints
