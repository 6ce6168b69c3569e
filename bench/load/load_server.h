// LoadServer: a server that is faster than any client.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/load/corpus.h"

namespace lookout::bench {

struct LoadServerOptions {
  std::uint16_t port = 0;  ///< on 127.0.0.1; 0: any free port
  std::string cert_file = {};
  std::string key_file = {};  ///< with both: TLS
  ProtobufEncoder encoder = {};
};

/// Serves lists and watches (load.h) of objects that are encoded in advance (objects.h), over
/// HTTP/1.1, plain or TLS, with a thread per connection. /answers returns the number of responses in
/// each encoding. All other requests get 404.
///
/// Sending an object costs a copy and a few digits: about 3 GB/s, where a client reads 0.5 GB/s.
class LoadServer {
 public:
  /// Listens; throws lookout::Error if it cannot.
  explicit LoadServer(LoadServerOptions options);
  ~LoadServer();

  std::uint16_t port() const;
  /// Serves forever.
  [[noreturn]] void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::bench
