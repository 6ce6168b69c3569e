// The xDS server of `lookout registry xds`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cmd/listen_address.h"
#include "lookout/base/pinned.h"
#include "lookout/registry/registry.h"

namespace lookout::cmd::registry_cmd::xds {

struct ServerOptions {
  ListenAddress listen = {.address = "127.0.0.1", .port = 0};
  /// The first of these schemes that a service has selects its endpoints.
  std::vector<std::string> schemes = {"grpc", "http"};
  /// How often to check for changes, and so the minimum time between responses.
  std::chrono::milliseconds interval{100};
  std::size_t max_streams = 1000;
  /// The interval of gRPC keepalive pings, and the timeout of each.
  std::chrono::milliseconds keepalive{30'000};
};

/// Serves the services of a registry as clusters with endpoints, with listeners and routes that
/// refer to them, through xDS v3's aggregated discovery service (state of the world and
/// incremental). Responds to no stream before the registry has synced.
///
/// One thread checks for changes, another one handles the requests of all streams. Each stream has
/// at most one response in flight; all changes in the meantime are in the next one. So a client that
/// does not read delays no other, and costs one response and the versions that it was sent.
class Server : public base::Pinned {
 public:
  /// Listens and serves immediately. `discovery` should include unready instances: a service
  /// without ready instances then stays, without endpoints, like a removed service. Throws Error if
  /// it cannot listen on the address.
  Server(std::shared_ptr<registry::Discovery> discovery, const ServerOptions& options);
  ~Server();

  std::uint16_t port() const;
  /// "127.0.0.1:18000".
  std::string address() const;
  std::size_t streams() const;
  /// Ends all streams, and cancels those that have not ended after `grace`.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(1));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::cmd::registry_cmd::xds
