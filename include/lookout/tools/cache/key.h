// Keys: the identity of objects in a store.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lookout/api/object.h"

namespace lookout::cache {

/// Computes the key of an object. A pure function: it is called whenever a key is needed, from any
/// thread. If it throws, the operation fails with that exception and changes nothing.
using KeyFunc = std::function<std::string(const api::Object&)>;

/// "namespace/name", or "name" for cluster-scoped objects (client-go's MetaNamespaceKeyFunc).
/// Throws InvalidArgument for an object without a name.
std::string meta_namespace_key(const api::Object& object);

/// The two parts of such a key (client-go's SplitMetaNamespaceKey); the views refer to `key`.
/// Throws InvalidArgument for a key with more than one slash.
struct ObjectName {
  std::string_view ns;
  std::string_view name;
  friend bool operator==(const ObjectName&, const ObjectName&) = default;
};
ObjectName split_meta_namespace_key(std::string_view key);

}  // namespace lookout::cache
