// A service as a list of servers that is handed on, as brpc's naming services do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/registry/instance_set.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// A server, as brpc's ServerNode: where it is, and a text that load balancers make something of.
struct NamedServer {
  LOOKOUT_OPTION std::string address = {};  ///< "10.0.0.1:9000", "[fd00::1]:9000"
  LOOKOUT_OPTION std::string tag = {};

  friend bool operator==(const NamedServer&, const NamedServer&) = default;
  friend auto operator<=>(const NamedServer&, const NamedServer&) = default;
};

struct NamingOptions {
  /// The first endpoint of each instance with this scheme; empty: of any.
  LOOKOUT_OPTION std::string scheme = {};
  /// The metadata key of the tag: brpc's weighted balancers ("wrr", "wr") read a weight in it.
  /// Instances without it have an empty tag.
  LOOKOUT_OPTION std::string tag_key = "weight";
};

/// The servers of a set: those that are ready and have an announced endpoint of the scheme, each
/// address once, in order.
std::vector<NamedServer> named_servers(const InstanceSet& set, const NamingOptions& options = {});

/// Hands all servers of a service on whenever they change, for programs and libraries with load
/// balancers of their own:
///
///     registry::NamingService naming(registry, "greeter", [&](const auto& servers) {
///       actions->ResetServers(to_server_nodes(servers));   // brpc's NamingServiceActions
///     });
///
/// The function gets the first list as soon as the registry has data, an empty one included, and
/// never the same list twice; one call at a time, on a thread of the registry's callbacks, which it
/// may block. The destructor waits for a call that runs. The discovery must outlive this.
class NamingService {
 public:
  using ResetServers = std::function<void(const std::vector<NamedServer>& servers)>;

  /// Throws as Discovery::subscribe().
  NamingService(Discovery& discovery, const std::string& service, ResetServers reset_servers,
                NamingOptions options = {});

 private:
  Subscription subscription_;
};

}  // namespace lookout::registry
