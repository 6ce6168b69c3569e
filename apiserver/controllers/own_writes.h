// Writes that the server makes on its own account. managedFields say so, with the names that the
// parts of kube-apiserver and kube-controller-manager have there.
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::controllers {

/// The manager of what the server creates for itself.
inline constexpr std::string_view kServerManager = "kube-apiserver";

/// Whether the object had to be created; false if it is there.
Awaitable<bool> create_once(const Context& context, resources::Target target, api::Object object,
                            std::string_view manager);

/// Creates an object, or changes the one that is there. Does nothing if that one is deleted
/// meanwhile.
Awaitable<void> create_or_update(const Context& context, resources::Target target,
                                 api::Object object, resources::Store::Change change,
                                 std::string_view manager);

/// Applies a configuration to an object that is there, as server-side apply by force does. Throws
/// api::StatusError (404) if it is not there.
Awaitable<resources::Store::Updated> apply(const Context& context, resources::Target target,
                                           api::Object config, resources::Part part,
                                           std::string_view manager);

/// Deletes an object, if it is there.
Awaitable<void> remove(const Context& context, resources::Target target);

/// All objects of a resource.
Awaitable<std::vector<api::Object>> list_all(resources::ServedResourcePtr resource);

}  // namespace lookout::apiserver::controllers
