// The xDS server of `lookout registry xds`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cmd/listen_address.h"
#include "lookout/registry/registry.h"

namespace lookout::cmd::registry_cmd::xds {

struct ServerOptions {
  ListenAddress listen = {.address = "127.0.0.1", .port = 0};
  /// A service's endpoints are those of the first of these schemes that it has.
  std::vector<std::string> schemes = {"grpc", "http"};
  /// How often changes are looked for, and thus sent at most.
  std::chrono::milliseconds interval{100};
  std::size_t max_streams = 1000;
  /// A client that has not been heard for so long is asked whether it is there, and has as long
  /// again for its answer.
  std::chrono::milliseconds keepalive{30'000};
};

/// Serves the services of a registry as clusters with endpoints, and listeners and routes that lead
/// to them, through the aggregated discovery service of xDS v3; state of the world and incremental.
/// No stream is answered before the registry has its first data.
///
/// One thread looks for changes, another one does all that streams ask for. A stream has one
/// response under way at a time; all that happens meanwhile is in the next one. So a client that
/// does not read holds up nobody, and costs one response and the versions that it was sent.
class Server {
 public:
  /// Listens at once, and serves. `discovery` should find instances that are not ready, too: a
  /// service whose instances are not ready is then one without endpoints, as is one that has gone.
  /// Throws Error if the address cannot be had.
  Server(std::shared_ptr<registry::Discovery> discovery, const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  /// "127.0.0.1:18000".
  std::string address() const;
  std::size_t streams() const;
  /// Ends all streams: those that do not take their end within `grace` are cut off.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(1));

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::cmd::registry_cmd::xds
