// The rules are those of dropDisabledFields() in k8s.io/kubernetes/pkg/api/pod.
#include "apiserver/resources/gated_fields.h"

#include <algorithm>
#include <string_view>

#include "apiserver/resources/pod_warnings.h"

namespace lookout::apiserver::resources {
namespace {

/// The part of an object at a path such as "spec.template"; null if there is none.
json::Value* part_at(json::Value* object, std::string_view path) {
  while (object != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    object = json::find(*object, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return object;
}

json::Value* pod_spec_of(json::Value* object, std::string_view template_path) {
  json::Value* const pod = part_at(object, template_path);
  return pod == nullptr ? nullptr : json::find(*pod, "spec");
}

template <class Visit>
void each_lifecycle(json::Value& spec, Visit visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    json::for_each(spec, list, [&](json::Value& container) {
      if (json::Value* lifecycle = json::find(container, "lifecycle")) visit(container, *lifecycle);
    });
  }
}

template <class Visit>
void each_projection(json::Value& spec, Visit visit) {
  json::for_each(spec, "volumes", [&](json::Value& volume) {
    if (json::Value* projected = json::find(volume, "projected"))
      json::for_each(*projected, "sources", visit);
  });
}

/// Gate ContainerStopSignals.
void drop_stop_signals(json::Value& spec) {
  each_lifecycle(spec, [](json::Value& container, json::Value& lifecycle) {
    if (json::find(lifecycle, "stopSignal") == nullptr) return;
    json::erase(lifecycle, "stopSignal");
    if (lifecycle.ObjectEmpty()) json::erase(container, "lifecycle");
  });
}

bool has_stop_signal(json::Value& spec) {
  bool found = false;
  each_lifecycle(spec, [&](json::Value& /*container*/, json::Value& lifecycle) {
    found = found || json::find(lifecycle, "stopSignal") != nullptr;
  });
  return found;
}

/// Gates ClusterTrustBundleProjection and PodCertificateRequest.
void drop_projections(json::Value& spec, std::string_view kind) {
  each_projection(spec, [&](json::Value& source) { json::erase(source, kind); });
}

bool has_projection(json::Value& spec, std::string_view kind) {
  bool found = false;
  each_projection(spec, [&](const json::Value& source) {
    found = found || json::find(source, kind) != nullptr;
  });
  return found;
}

}  // namespace

void drop_gated_fields(const ServedResource& resource, json::Value& object,
                       const json::Value* old) {
  if (resource.custom) return;
  const auto path = pod_template_path(resource.type);
  if (!path) return;
  json::Value* const spec = pod_spec_of(&object, *path);
  if (spec == nullptr) return;
  // The old object is not changed.
  json::Value* const before = pod_spec_of(const_cast<json::Value*>(old), *path);
  if (before == nullptr || !has_stop_signal(*before)) drop_stop_signals(*spec);
  for (const char* kind : {"clusterTrustBundle", "podCertificate"}) {
    if (before == nullptr || !has_projection(*before, kind)) drop_projections(*spec, kind);
  }
  // Gate GenericWorkload.
  if (before == nullptr || json::find(*before, "schedulingGroup") == nullptr)
    json::erase(*spec, "schedulingGroup");
}

}  // namespace lookout::apiserver::resources
