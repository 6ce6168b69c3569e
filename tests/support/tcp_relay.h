// A connection that a test can cut.
#pragma once

#include <memory>
#include <string>

#include "lookout/base/pinned.h"

namespace lookout::test {

/// Forwards a port of 127.0.0.1 to another port.
class TcpRelay : public base::Pinned {
 public:
  explicit TcpRelay(int to);
  ~TcpRelay();

  int port() const;
  /// The URL of an HTTP server without TLS behind it.
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

  /// Breaks all connections, and immediately breaks new ones. Returns when this is complete.
  void cut();
  /// Stops forwarding without closing connections, so that neither side can detect it.
  void freeze();
  void mend();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::test
