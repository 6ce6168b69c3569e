// Services and their instances.
#pragma once

#include <map>
#include <string>

#include "cmd/connection.h"
#include "cmd/registry/flags.h"

namespace lookout::cmd::registry_cmd {

/// The metadata from --metadata. Throws CLI::ValidationError for values that are not KEY=VALUE.
std::map<std::string, std::string> metadata_of(const Flags& flags);

/// Each returns the exit status.
int register_instance(const ConnectionFlags& connection, const Flags& flags);
int deregister_instance(const ConnectionFlags& connection, const Flags& flags);
int get_service(const ConnectionFlags& connection, const Flags& flags);
int list_services(const ConnectionFlags& connection, const Flags& flags);
int watch_service(const ConnectionFlags& connection, const Flags& flags);

}  // namespace lookout::cmd::registry_cmd
