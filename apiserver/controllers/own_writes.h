// The server's own writes. Their managers in managedFields are those of kube-apiserver and
// kube-controller-manager.
#pragma once

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

}  // namespace lookout::apiserver::controllers
