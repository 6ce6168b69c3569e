// A client's connection, plain or TLS, with blocking calls.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <string_view>

#include "lookout/base/pinned.h"

namespace lookout::bench {

class Connection : public base::Pinned {
 public:
  /// Takes ownership of the descriptor. A null `tls` means plain.
  Connection(int fd, SSL_CTX* tls);
  ~Connection();

  /// Whether the connection is usable.
  bool good() const { return good_; }
  /// Reads the available bytes, at least one; 0 when the client has closed the connection.
  std::size_t read(char* into, std::size_t size);
  /// False if the client has disconnected.
  bool write(std::string_view bytes);
  /// Waits up to `time` for the client to disconnect; true if it has.
  bool wait_gone(std::chrono::milliseconds time);

 private:
  int fd_;
  SSL* tls_ = nullptr;
  bool good_ = true;
};

}  // namespace lookout::bench
