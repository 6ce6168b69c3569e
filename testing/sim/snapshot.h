// The state of a cluster, in a form that can be compared between runs.
#pragma once

#include <map>
#include <string>

#include "lookout/rest/client.h"

namespace lookout::sim {

/// All objects except Events, Leases and IPAddresses, by "resource.group/namespace/name", as JSON with
/// sorted keys and without UIDs, resourceVersions, generations, cluster IPs and times.
std::map<std::string, std::string> snapshot_of(const rest::Client& client);

/// One line per difference: "missing: ...", "left over: ...", "differs: ... /spec/replicas".
std::string difference(const std::map<std::string, std::string>& expected,
                       const std::map<std::string, std::string>& actual);

}  // namespace lookout::sim
