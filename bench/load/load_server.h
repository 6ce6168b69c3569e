// A server that is never the bottleneck.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/load/corpus.h"

namespace lookout::bench {

struct LoadServerOptions {
  std::uint16_t port = 0;  ///< on 127.0.0.1; 0: a free one
  std::string cert_file = {};
  std::string key_file = {};  ///< with both: TLS
  ProtobufEncoder encoder = {};
};

/// Answers lists and watches of objects that were encoded beforehand (load.h says which, objects.h
/// of what), over HTTP/1.1, plain or TLS, each connection on a thread of its own. /answers
/// says how many there were in each encoding, every other request gets 404.
///
/// Sending an object costs a copy and a few digits, so that a client is always slower: about 3 GB/s
/// are made where a client takes 0.5 GB/s.
class LoadServer {
 public:
  /// Listens; throws lookout::Error if it cannot.
  explicit LoadServer(LoadServerOptions options);
  ~LoadServer();

  std::uint16_t port() const;
  /// Serves for ever.
  [[noreturn]] void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::bench
