// Sockets on loopback.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace lookout::cmd::bench::fleet {

/// Owns a socket and closes it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  /// Waits for POLLIN or POLLOUT; returns false on timeout.
  bool wait(short events, std::chrono::milliseconds time) const;
  /// True if the peer has closed an idle connection.
  bool closed_by_peer() const;
  /// Makes closing the socket reset the connection, as when a process with unread data is killed.
  void reset_on_close() const;

  /// Listens on a free port. Throws lookout::Error if there is none.
  static Socket listen();
  std::uint16_t port() const;
  /// Starts to connect; use wait(POLLOUT) and connected() for the result. Empty if the connection is
  /// refused immediately.
  static Socket connect(std::uint16_t port);
  bool connected() const;

 private:
  int fd_ = -1;
};

}  // namespace lookout::cmd::bench::fleet
