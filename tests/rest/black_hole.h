// An address that never responds.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "lookout/base/pinned.h"

namespace lookout::test {

/// A port of 127.0.0.1 whose accept queue is full, so that the kernel drops further connection
/// attempts.
class BlackHole : public base::Pinned {
 public:
  BlackHole() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    const int listener = open_socket();
    if (bind(listener, address, size) != 0 || listen(listener, 0) != 0 ||
        getsockname(listener, address, &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    port_ = ntohs(at.sin_port);
    // On loopback, a connection that the queue accepts is established immediately.
    for (bool full = false; !full;) {
      if (fds_.size() > 100) throw std::runtime_error("the queue does not fill");
      const int fd = open_socket();
      connect(fd, address, size);
      pollfd connected{fd, POLLOUT, 0};
      full = poll(&connected, 1, 50) == 0;
    }
    own_attempts_ = attempts();
  }
  ~BlackHole() {
    for (const int fd : fds_) close(fd);
  }

  int port() const { return port_; }
  /// Lets the next client connect, without a response. Later ones cannot connect.
  void let_one_in() {
    // (Otherwise this object's own attempts would connect next.)
    for (; fds_.size() > 1; fds_.pop_back()) close(fds_.back());
    for (int fd = 0; fd >= 0;) {
      fd = accept4(fds_[0], nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) close(fd);
    }
  }
  /// True while a client tries to connect.
  bool reached() const { return attempts() > own_attempts_; }

 private:
  int open_socket() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) throw std::runtime_error("no socket");
    fds_.push_back(fd);
    return fd;
  }

  /// The number of sockets that have sent a SYN to the port and wait for the response.
  int attempts() const {
    constexpr const char* kSynSent = "02";
    char end[8];
    std::snprintf(end, sizeof end, ":%04X", static_cast<unsigned>(port_));
    std::ifstream table("/proc/net/tcp");
    std::string number, local, remote, state, rest;
    int count = 0;
    while (table >> number >> local >> remote >> state && std::getline(table, rest))
      count += remote.ends_with(end) && state == kSynSent ? 1 : 0;
    return count;
  }

  std::vector<int> fds_;
  int port_ = 0;
  int own_attempts_ = 0;
};

}  // namespace lookout::test
