// GroupVersionResource: the name of a resource.
#pragma once

#include <string>

#include "lookout/api/resource.h"

namespace lookout::api {

/// Names a resource as URLs do: {"apps", "v1", "deployments"}. The core group is "".
struct GroupVersionResource {
  LOOKOUT_OPTION std::string group;
  LOOKOUT_OPTION std::string version;
  LOOKOUT_OPTION std::string resource;

  friend bool operator==(const GroupVersionResource&, const GroupVersionResource&) = default;
};

/// The resource for lists and watches. If the resource is not built in, its kind is left empty and
/// it counts as namespaced, which is correct for requests to all namespaces.
inline Resource resource_for(const GroupVersionResource& gvr) {
  for (const ResourceInfo& info : builtin_resources()) {
    if (info.group == gvr.group && info.version == gvr.version && info.plural == gvr.resource)
      return Resource(info.type());
  }
  return {gvr.group, gvr.version, "", gvr.resource, true};
}

}  // namespace lookout::api
