// Sockets on loopback.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace lookout::cmd::bench::fleet {

/// Closes what it holds.
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
  /// Waits for POLLIN or POLLOUT; false if the time is over first.
  bool wait(short events, std::chrono::milliseconds time) const;
  /// Whether a connection that nobody writes to has been closed by its other end.
  bool closed_by_peer() const;
  /// The other end gets a reset when this is closed, as when a process is killed that has not read
  /// everything.
  void reset_on_close() const;

  /// Listens on a free port. Throws lookout::Error if there is none.
  static Socket listen();
  std::uint16_t port() const;
  /// A connection that is there or about to be: wait(POLLOUT) and connected() tell. Empty if it is
  /// refused at once.
  static Socket connect(std::uint16_t port);
  bool connected() const;

 private:
  int fd_ = -1;
};

}  // namespace lookout::cmd::bench::fleet
