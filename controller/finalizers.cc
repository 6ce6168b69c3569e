#include "lookout/controller/finalizers.h"

#include "lookout/k8s/meta/v1.h"
#include "lookout/k8s/meta/v1_draft.h"

namespace lookout::controller {

bool add_finalizer(const api::ObjectDraft& draft, std::string_view finalizer) {
  const auto finalizers = k8s::meta::v1::ObjectMetaDraft(draft["metadata"]).finalizers();
  if (finalizers.contains(finalizer)) return false;
  finalizers.append(finalizer);
  return true;
}

bool remove_finalizer(const api::ObjectDraft& draft, std::string_view finalizer) {
  const auto finalizers = k8s::meta::v1::ObjectMetaDraft(draft["metadata"]).finalizers();
  return finalizers.erase_value(finalizer) > 0;
}

bool has_finalizer(const api::Object& object, std::string_view finalizer) {
  for (const auto each : object.metadata().finalizers()) {
    if (each == finalizer) return true;
  }
  return false;
}

bool is_being_deleted(const api::Object& object) {
  return object.metadata().deletion_timestamp().has_value();
}

}  // namespace lookout::controller
