// nghttpx, a proxy that speaks HTTP/2, in front of a test's server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/rest/certificates.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace lookout::test {

/// Listens on 127.0.0.1 with TLS, speaks HTTP/2 there and HTTP/1.1 to the server behind it.
class Nghttpx {
 public:
  /// The place of the program, or empty if it is not installed (Debian: nghttp2-proxy).
  static std::string program();

  /// Serves when it returns.
  Nghttpx(int backend_port, const KeyPair& pair, const std::vector<std::string>& options = {});

  int port() const { return port_; }
  bool listens() const;
  /// Takes no more connections, and tells the clients it has so (GOAWAY); ends when they have gone.
  void retire();

 private:
  TempDir dir_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace lookout::test
