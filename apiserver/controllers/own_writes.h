// The server's own writes. Their managers in managedFields are those of kube-apiserver and
// kube-controller-manager.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::controllers {

/// The manager of the server's own objects.
inline constexpr std::string_view kServerManager = "kube-apiserver";

/// Creates the object unless it exists. Returns whether it was created.
Awaitable<bool> create_once(const Context& context, resources::Target target, api::Object object,
                            std::string_view manager);

/// Creates an object, or changes the existing one. Does nothing if the existing one is deleted
/// concurrently.
Awaitable<void> create_or_update(const Context& context, resources::Target target,
                                 api::Object object, resources::Store::Change change,
                                 std::string_view manager);

/// Applies a configuration to an existing object with forced server-side apply. Throws
/// api::StatusError (404) if it does not exist.
Awaitable<resources::Store::Updated> apply(const Context& context, resources::Target target,
                                           api::Object config, resources::Part part,
                                           std::string_view manager);

/// Deletes an object if it exists.
Awaitable<void> remove(const Context& context, resources::Target target);

/// All objects of a resource.
Awaitable<std::vector<api::Object>> list_all(resources::ServedResourcePtr resource);

/// A cluster-scoped object.
resources::Target target_of(resources::ServedResourcePtr resource, const api::Object& object);

/// The cluster-scoped objects of a resource that the server keeps as they are.
struct KeptObjects {
  resources::ServedResourcePtr resource;
  std::vector<api::Object> wanted;
  /// Returns `present` with the content of `wanted`; `present` itself if nothing is missing.
  api::Object (*revise)(const api::Object& present, const api::Object& wanted) = nullptr;
  /// Whether the server deletes an object that is not wanted.
  std::function<bool(const api::Object& object)> is_surplus;
};

/// Creates or revises the wanted objects, then deletes the surplus ones.
Awaitable<void> keep(const Context& context, KeptObjects kept, std::string_view manager);

}  // namespace lookout::apiserver::controllers
