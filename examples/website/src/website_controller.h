#pragma once

#include <lookout/controller/manager.h>

namespace website {

/// Adds the controller of Websites. Each leads to a Deployment and a Service of the same name, and
/// to an entry in the ConfigMap "websites" of its namespace: the address, by name.
void add_website_controller(lookout::controller::Manager& manager);

}  // namespace website
