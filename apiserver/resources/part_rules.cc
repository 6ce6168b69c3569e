#include "apiserver/resources/part_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/names.h"
#include "apiserver/resources/field.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::resources {
namespace {

/// Kubernetes' path of the whole object.
constexpr const char* kRootPath = "[]";
constexpr const char* kContainerLists[] = {"containers", "initContainers"};

/// Restores the old pod, except its managedFields and this field of the spec.
void keep_pod(json::Value& pod, const json::Value& old, const char* field, Allocator& allocator) {
  for (const char* kept :
       {"labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"})
    json::take(json::child(pod, "metadata", allocator), *json::find(old, "metadata"), kept,
               allocator);
  json::take(pod, old, "status", allocator);
  const json::Value wanted = std::move(json::child(pod, "spec", allocator));
  json::take(pod, old, "spec", allocator);
  json::take(json::child(pod, "spec", allocator), wanted, field, allocator);
}

void keep_status(json::Value& ns, const json::Value& old, Allocator& allocator) {
  json::take(ns, old, "status", allocator);
}

void validate_finalizers(const Object& ns, const Object& /*old*/, Causes& causes) {
  validate_finalized_namespace(ns, causes);
}

// --- ephemeral containers

void keep_all_but_ephemeral_containers(json::Value& pod, const json::Value& old,
                                       Allocator& allocator) {
  keep_pod(pod, old, "ephemeralContainers", allocator);
}

bool is_static(const Object& pod) {
  return pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].exists();
}

/// Allows only additions (ValidatePodEphemeralContainersUpdate).
void validate_ephemeral_containers_change(const Object& pod, const Object& old, Causes& causes) {
  if (is_static(old)) {
    causes.clear();
    return Field({}, kRootPath, causes)
        .forbidden("static pods do not support ephemeral containers");
  }
  const Field now(pod["spec"]["ephemeralContainers"], "spec.ephemeralContainers", causes);
  for (const api::Value before : old["spec"]["ephemeralContainers"].elements()) {
    const auto elements = (*now).elements();
    const auto kept = std::find_if(elements.begin(), elements.end(), [&](api::Value container) {
      return container["name"] == before["name"];
    });
    const std::string name = api::detail::quote(before["name"].as_string());
    if (kept == elements.end()) {
      now.forbidden(fmt::format("existing ephemeral containers {} may not be removed\n", name));
    } else if (*kept != before) {
      // kube-apiserver appends a comparison in Go's syntax.
      now.forbidden(fmt::format("existing ephemeral containers {} may not be changed\n", name));
    }
  }
}

// --- resources

/// True if both lists have containers with the same names in the same order.
bool has_same_names(const json::Value& now, const json::Value& before) {
  const auto same = [](const json::Value& a, const json::Value& b) {
    return json::text(a, "name") == json::text(b, "name");
  };
  return now.Size() == before.Size() && std::equal(now.Begin(), now.End(), before.Begin(), same);
}

/// Does nothing if the containers have different names, which validation rejects.
void keep_all_but_resources(json::Value& pod, const json::Value& old, Allocator& allocator) {
  json::Value& spec = json::child(pod, "spec", allocator);
  const json::Value* const old_spec = json::find(old, "spec");
  if (old_spec == nullptr) return;
  const json::Value none(rapidjson::kArrayType);
  const auto list_of = [&](const json::Value& of, const char* name) -> const json::Value& {
    const json::Value* list = json::find(of, name);
    return list != nullptr && list->IsArray() ? *list : none;
  };
  for (const char* name : kContainerLists) {
    if (list_of(spec, name).Size() != list_of(*old_spec, name).Size()) return;
  }
  const json::Value wanted = json::deep_copy(spec, allocator);
  keep_pod(pod, old, "resources", allocator);
  json::Value& kept = json::child(pod, "spec", allocator);
  for (const char* name : kContainerLists) {
    const json::Value& containers = list_of(wanted, name);
    if (!has_same_names(containers, list_of(*old_spec, name))) {
      json::take(kept, wanted, name, allocator);
      continue;
    }
    auto next = containers.Begin();
    json::for_each(kept, name, [&](json::Value& container) {
      json::take(container, *next, "resources", allocator);
      json::take(container, *next, "resizePolicy", allocator);
      ++next;
    });
  }
}

/// The container without its CPU and memory. A resize must not change this part.
json::Value fixed_part(const json::Value& container, Allocator& allocator) {
  json::Value fixed = json::deep_copy(container, allocator);
  json::Value* resources = json::find(fixed, "resources");
  if (resources == nullptr || !resources->IsObject()) return fixed;
  for (const char* name : {"limits", "requests"}) {
    json::Value* amounts = json::find(*resources, name);
    if (amounts == nullptr) continue;
    json::erase(*amounts, "cpu");
    json::erase(*amounts, "memory");
    if (amounts->IsObject() && amounts->ObjectEmpty()) json::erase(*resources, name);
  }
  if (resources->ObjectEmpty()) json::erase(fixed, "resources");
  return fixed;
}

bool is_without_one_of(api::Value now, api::Value before) {
  for (const auto& [name, amount] : before.members()) {
    if (!now[name].exists()) return true;
  }
  return false;
}

void check_nothing_removed(const Field& resources, api::Value before, const std::string& what) {
  for (const char* name : {"requests", "limits"}) {
    if (is_without_one_of(*resources[name], before[name]))
      resources[name].forbidden(fmt::format("{} {} cannot be removed", what, name));
  }
}

/// False if the containers differ from the old ones.
bool check_same_containers(const Field& spec, api::Value before) {
  const std::size_t errors = spec.causes().size();
  for (const std::string list : kContainerLists) {
    const Field containers = spec[list];
    if ((*containers).size() != before[list].size()) {
      containers.forbidden(list + " may not be added or removed on resize");
      continue;
    }
    std::size_t index = 0;
    containers.each([&](const Field& container) {
      if (!container["name"].is(before[list][index++]["name"]))
        container["name"].forbidden(list + " may not be renamed or reordered on resize");
    });
  }
  return spec.causes().size() == errors;
}

/// Whether the pod's node can resize it: only a node that reports the resources of running
/// containers can.
bool can_resize(const Object& pod) {
  for (const api::Value container : pod["status"]["containerStatuses"].elements()) {
    if (container["state"]["running"].exists()) return container["resources"].exists();
  }
  return true;
}

/// Calls `visit(container, fixed)` for each container that changes; `fixed` is true if only its CPU
/// and memory change.
template <class Visit>
void each_changed(const Field& containers, const json::Value& now, const json::Value& before,
                  Allocator& allocator, Visit visit) {
  rapidjson::SizeType index = 0;
  containers.each([&](const Field& container) {
    const json::Value& one = now[index];
    const json::Value& other = before[index++];
    if (one != other) visit(container, fixed_part(one, allocator) == fixed_part(other, allocator));
  });
}

void check_fixed_parts(const Field& spec, const json::Value& now, const json::Value& before,
                       Allocator& allocator) {
  const Field containers = spec["containers"];
  if (containers.empty()) return;
  each_changed(containers, *json::find(now, "containers"), *json::find(before, "containers"),
               allocator, [&](const Field& /*container*/, bool fixed) {
                 if (!fixed) spec.forbidden("only cpu and memory resources are mutable");
               });
}

void check_fixed_init_parts(const Field& spec, const json::Value& now, const json::Value& before,
                            Allocator& allocator) {
  const Field containers = spec["initContainers"];
  if (containers.empty()) return;
  each_changed(
      containers, *json::find(now, "initContainers"), *json::find(before, "initContainers"),
      allocator, [&](const Field& container, bool fixed) {
        if (!fixed) {
          container.forbidden(
              "only cpu and memory resources for init or sidecar containers are mutable");
        }
        if (container["restartPolicy"].text() == "Always") return;
        container["resizePolicy"].each([&](const Field& policy) {
          if (policy["restartPolicy"].text() != "RestartContainer") return;
          container.forbidden(
              "non-sidecar init containers with a resize policy of RestartContainer cannot be "
              "resized");
        });
      });
}

/// Allows only changes of CPU and memory (ValidatePodResize).
void validate_resize(const Object& pod, const Object& old, Causes& causes) {
  const Field whole({}, kRootPath, causes);
  if (is_static(old)) {
    causes.clear();
    return whole.forbidden("static pods cannot be resized");
  }
  if (old["spec"]["os"]["name"].as_string() == "windows") {
    causes.clear();
    return whole.forbidden("windows pods cannot be resized");
  }
  const Field spec(pod["spec"], "spec", causes);
  const api::Value before = old["spec"];
  json::Document now = pod.to_document();
  const json::Document then = old.to_document();
  Allocator& allocator = now.GetAllocator();
  const json::Value& now_spec = *json::find(now, "spec");
  const json::Value& then_spec = *json::find(then, "spec");
  const std::string_view quality = old["status"]["qosClass"].as_string();
  if (quality_of_service(now_spec) != (quality.empty() ? quality_of_service(then_spec) : quality)) {
    Field(pod["status"]["qosClass"], spec.path(), causes)
        .invalid_text("Pod QOS Class may not change as a result of resizing");
  }
  if (!can_resize(old)) spec.forbidden("Pod running on node without support for resize");
  if (before["resources"].exists() && !spec["resources"].exists()) {
    spec["resources"].forbidden("pod-level resources cannot be removed");
  } else {
    check_nothing_removed(spec["resources"], before["resources"], "pod-level resource");
    const auto of_pod = [&](const json::Value& of) {
      json::Value only(rapidjson::kObjectType);
      json::take(only, of, "resources", allocator);
      return fixed_part(only, allocator);
    };
    if (of_pod(now_spec) != of_pod(then_spec))
      spec.forbidden("only cpu and memory resources are mutable at pod-level");
  }
  if (!old["status"]["nodeAllocatableResourceClaimStatuses"].empty())
    spec.forbidden("pods with node allocatable resource claims cannot be resized");
  if (!check_same_containers(spec, before)) return;
  for (const char* list : {"initContainers", "containers"}) {
    std::size_t index = 0;
    spec[list].each([&](const Field& container) {
      check_nothing_removed(container["resources"], before[list][index++]["resources"], "resource");
    });
  }
  check_fixed_parts(spec, now_spec, then_spec, allocator);
  check_fixed_init_parts(spec, now_spec, then_spec, allocator);
}

constexpr PartRules kFinalizers = {keep_status, validate_finalizers};
constexpr PartRules kEphemeralContainers = {keep_all_but_ephemeral_containers,
                                            validate_ephemeral_containers_change};
constexpr PartRules kResources = {keep_all_but_resources, validate_resize};

}  // namespace

const PartRules* part_rules(Part part) {
  switch (part) {
    case Part::kFinalizers:
      return &kFinalizers;
    case Part::kEphemeralContainers:
      return &kEphemeralContainers;
    case Part::kResources:
      return &kResources;
    case Part::kApproval:
      return &approval_rules;
    case Part::kMain:
    case Part::kStatus:
    case Part::kWhole:
      break;
  }
  return nullptr;
}

}  // namespace lookout::apiserver::resources
