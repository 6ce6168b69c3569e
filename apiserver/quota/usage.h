// The usage of ResourceQuotas by objects.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/quota/resource_list.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"

namespace lookout::apiserver::quota {

/// Whether `type` is this resource of the core group, such as "pods".
inline bool is_core(const api::Resource& type, std::string_view plural) {
  return type.group.empty() && type.plural == plural;
}

/// Whether quotas count the objects of a resource at all.
bool is_counted(const api::Resource& type);

/// Whether a name in `spec.hard` limits the objects of a resource.
bool concerns(const api::Resource& type, std::string_view name);

/// The usage of an object, by the names in quotas (k8s.io/kubernetes/pkg/quota/v1/evaluator/core).
ResourceList usage_of(const api::Resource& type, const api::Object& object);

/// Whether a quota counts the object: all its scopes match.
bool is_in_scope(const api::Resource& type, const api::Object& quota, const api::Object& object);

/// Why a quota with these amounts cannot count an object: its containers must set the limited
/// resources. Empty if it can.
std::string missing_resources(const api::Resource& type, const api::Object& object,
                              const ResourceList& hard);

/// The amounts whose names are in `hard`.
ResourceList masked(const ResourceList& usage, const ResourceList& hard);

}  // namespace lookout::apiserver::quota
