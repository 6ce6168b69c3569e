// The API server of the fleet, which goes away and comes back, and what a kubelet does.
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

  /// A pod that runs, is ready, and declares the port; its address is that of loopback.
  void add_pod(const std::string& name, std::uint16_t port) const;
  /// What a readiness probe has found.
  void set_ready(const std::string& name, bool ready) const;
  void remove_pod(const std::string& name) const;

  /// The server goes away, and comes back at the same address with what was stored.
  void stop_server() { server_.reset(); }
  void start_server() { server_ = std::make_unique<apiserver::Server>(options_); }

 private:
  apiserver::ServerOptions options_;
  std::unique_ptr<apiserver::Server> server_;
  rest::Client client_;
};

}  // namespace lookout::cmd::bench::fleet
