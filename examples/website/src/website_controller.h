#pragma once

#include <lookout/controller/manager.h>

namespace website {

/// Adds the controller of Websites. It creates a Deployment and a Service with the Website's name,
/// and an entry with its address in the ConfigMap "websites" of its namespace.
void add_website_controller(lookout::controller::Manager& manager);

}  // namespace website
