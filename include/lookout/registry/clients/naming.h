// NamingService: the list of servers of a service, as in brpc's naming services.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/registry/instance_set.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// A server, like brpc's ServerNode: an address, and a tag for load balancers.
struct NamedServer {
  LOOKOUT_OPTION std::string address = {};  ///< "10.0.0.1:9000", "[fd00::1]:9000"
  LOOKOUT_OPTION std::string tag = {};

  friend bool operator==(const NamedServer&, const NamedServer&) = default;
  friend auto operator<=>(const NamedServer&, const NamedServer&) = default;
};

struct NamingOptions {
  /// The first endpoint of each instance with this scheme; empty: any.
  LOOKOUT_OPTION std::string scheme = {};
  /// The metadata key of the tag: brpc's weighted balancers ("wrr", "wr") read a weight from it.
  /// Instances without it have an empty tag.
  LOOKOUT_OPTION std::string tag_key = "weight";
};

/// The servers of a set: the ready instances with an announced endpoint of the scheme, each address
/// once, in order.
std::vector<NamedServer> named_servers(const InstanceSet& set, const NamingOptions& options = {});

/// Passes on all servers of a service whenever they change, for programs and libraries with their
/// own load balancers:
///
///     registry::NamingService naming(registry, "greeter", [&](const auto& servers) {
///       actions->ResetServers(to_server_nodes(servers));   // brpc's NamingServiceActions
///     });
///
/// The function gets the first list as soon as the registry has data, even if the list is empty,
/// and never gets the same list twice in a row, unless the first call threw. Calls come one at a
/// time, on a thread of the registry's callbacks, and may block. The destructor waits for a running
/// call. The discovery must outlive this object.
class NamingService {
 public:
  using ResetServers = std::function<void(const std::vector<NamedServer>& servers)>;

  /// Throws what Discovery::subscribe() throws.
  NamingService(Discovery& discovery, const std::string& service, ResetServers reset_servers,
                NamingOptions options = {});

 private:
  Subscription subscription_;
};

}  // namespace lookout::registry
