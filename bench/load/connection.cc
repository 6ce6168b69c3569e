#include "bench/load/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace lookout::bench {

Connection::Connection(int fd, SSL_CTX* tls) : fd_(fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (tls == nullptr) return;
  tls_ = SSL_new(tls);
  good_ = tls_ != nullptr && SSL_set_fd(tls_, fd) == 1 && SSL_accept(tls_) == 1;
}

Connection::~Connection() {
  if (tls_ != nullptr) SSL_free(tls_);
  close(fd_);
}

std::size_t Connection::read(char* into, std::size_t size) {
  const auto n = tls_ != nullptr ? SSL_read(tls_, into, static_cast<int>(size))
                                 : static_cast<int>(recv(fd_, into, size, 0));
  good_ = good_ && n > 0;
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

bool Connection::write(std::string_view bytes) {
  constexpr std::size_t kMost = 1u << 20;
  while (good_ && !bytes.empty()) {
    const std::size_t piece = std::min(bytes.size(), kMost);
    const auto n = tls_ != nullptr ? SSL_write(tls_, bytes.data(), static_cast<int>(piece))
                                   : static_cast<int>(send(fd_, bytes.data(), piece, MSG_NOSIGNAL));
    good_ = n > 0;
    if (good_) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return good_;
}

bool Connection::wait_gone(std::chrono::milliseconds time) {
  pollfd poll{fd_, POLLIN | POLLRDHUP, 0};
  // Clients send nothing during a watch, so readable means closed.
  if (::poll(&poll, 1, static_cast<int>(time.count())) > 0) good_ = false;
  return !good_;
}

}  // namespace lookout::bench
