// The name of a resource.
#pragma once

#include <string>

#include "lookout/api/resource.h"

namespace lookout::api {

/// Names a resource as URLs do: {"apps", "v1", "deployments"}. The core group is "".
struct GroupVersionResource {
  std::string group;
  std::string version;
  std::string resource;

  friend bool operator==(const GroupVersionResource&, const GroupVersionResource&) = default;
};

/// What is needed to list and watch it. Of a resource that is not built in the kind is unknown, and
/// it counts as namespaced: good for all namespaces together, whether it has any or not.
inline Resource resource_for(const GroupVersionResource& gvr) {
  for (const ResourceInfo& info : builtin_resources()) {
    if (info.group == gvr.group && info.version == gvr.version && info.plural == gvr.resource)
      return Resource(info.type());
  }
  return {gvr.group, gvr.version, "", gvr.resource, true};
}

}  // namespace lookout::api
