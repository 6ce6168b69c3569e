// Server: the address of a gRPC server.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace lookout::apiserver::grpc {

/// The address of a server, and its timeouts.
struct Server {
  /// "http://127.0.0.1:2379": HTTP/2 from the first byte; "https://...": TLS.
  std::string url;
  /// Returns the certificate authorities to trust (PEM; null: the system's). Called before each call,
  /// on the channel's strand: a call does not use connections created with a different pointer.
  /// Without a function: the system's.
  std::function<std::shared_ptr<const std::string>()> ca = {};
  /// From the first connection attempt until the server's HTTP/2 settings have arrived.
  std::chrono::milliseconds connect_timeout{3000};
  /// If calls are running and nothing has been received for `ping_after`, a ping is sent; without
  /// anything received in `ping_timeout`, the connection is closed. (etcd closes connections that
  /// send a ping more often than every 5 seconds, or than its --grpc-keepalive-min-time. Later
  /// connections of the channel wait twice as long before they send one.)
  std::chrono::milliseconds ping_after{5500};
  std::chrono::milliseconds ping_timeout{4000};
};

}  // namespace lookout::apiserver::grpc
