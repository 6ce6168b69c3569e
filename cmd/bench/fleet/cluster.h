// Cluster: the API server of the fleet, with outages, and the work of a kubelet.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lookout/apiserver/server.h"
#include "lookout/base/pinned.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::bench::fleet {

inline constexpr const char* kNamespace = "default";

class Cluster : public base::Pinned {
 public:
  Cluster();

  const rest::Client& client() const { return client_; }

  /// Adds a running, ready pod that declares the port; its address is the loopback address.
  void add_pod(const std::string& name, std::uint16_t port) const;
  /// Sets the result of the readiness probe.
  void set_ready(const std::string& name, bool ready) const;
  void remove_pod(const std::string& name) const;

  /// Stops the server. It can be started again at the same address, with the stored objects.
  void stop_server() { server_.reset(); }
  void start_server() { server_ = std::make_unique<apiserver::Server>(options_); }

 private:
  apiserver::ServerOptions options_;
  std::unique_ptr<apiserver::Server> server_;
  rest::Client client_;
};

}  // namespace lookout::cmd::bench::fleet
