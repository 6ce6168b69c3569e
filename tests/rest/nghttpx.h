// nghttpx, an HTTP/2 proxy in front of a test's server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/rest/certificates.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace lookout::test {

/// Listens on 127.0.0.1 with TLS and HTTP/2, and forwards to the server over HTTP/1.1.
class Nghttpx {
 public:
  /// The path of the program, or empty if it is not installed (Debian: nghttp2-proxy).
  static std::string program();

  /// Starts the proxy, and returns when it serves.
  Nghttpx(int backend_port, const KeyPair& pair, const std::vector<std::string>& options = {});

  int port() const { return port_; }
  bool listens() const;
  /// Accepts no more connections and sends GOAWAY to clients; the process ends when they have
  /// disconnected.
  void retire();

 private:
  TempDir dir_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace lookout::test
