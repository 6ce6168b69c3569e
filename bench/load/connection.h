// One connection of a client, plain or TLS, with blocking calls.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <string_view>

namespace lookout::bench {

class Connection {
 public:
  /// Takes the descriptor over. Null: plain.
  Connection(int fd, SSL_CTX* tls);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Whether it can be used.
  bool good() const { return good_; }
  /// Reads the available bytes, at least one; 0 when the client has closed the connection.
  std::size_t read(char* into, std::size_t size);
  /// False when the client has gone.
  bool write(std::string_view bytes);
  /// Waits until the client goes away, or that long; true if it has gone.
  bool wait_gone(std::chrono::milliseconds time);

 private:
  int fd_;
  SSL* tls_ = nullptr;
  bool good_ = true;
};

}  // namespace lookout::bench
