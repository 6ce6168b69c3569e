#include "cmd/bench/fleet/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lookout/api/error.h"

namespace lookout::cmd::bench::fleet {
namespace {

constexpr std::chrono::milliseconds kLongest{60'000};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = htons(port);
  return out;
}

Socket make() {
  Socket out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out) throw Error("the process may not open more sockets");
  return out;
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

bool Socket::wait(short events, std::chrono::milliseconds time) const {
  pollfd waiting{fd_, events, 0};
  return ::poll(&waiting, 1, static_cast<int>(std::min(time, kLongest).count())) > 0;
}

bool Socket::closed_by_peer() const {
  char byte = 0;
  const auto size = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return size == 0 || (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

void Socket::reset_on_close() const {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

Socket Socket::listen() {
  Socket out = make();
  const sockaddr_in address = loopback(0);
  if (::bind(out.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(out.fd_, SOMAXCONN) != 0) {
    throw Error("no port of 127.0.0.1 can be listened on");
  }
  return out;
}

std::uint16_t Socket::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

Socket Socket::connect(std::uint16_t port) {
  Socket out = make();
  const int yes = 1;
  ::setsockopt(out.fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const sockaddr_in address = loopback(port);
  if (::connect(out.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    return {};
  }
  return out;
}

bool Socket::connected() const {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace lookout::cmd::bench::fleet
