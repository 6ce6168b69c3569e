#include "cmd/bench/fleet/instance_server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lookout/api/error.h"

namespace lookout::cmd::bench::fleet {
namespace {

constexpr std::chrono::milliseconds kLong{1'000};

}  // namespace

InstanceServer::InstanceServer(std::chrono::microseconds answer_time)
    : answer_time_(answer_time),
      listener_(Socket::listen()),
      port_(listener_.port()),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!bell_ || !epoll_) throw Error("the process may not open more descriptors");
  watch(bell_.fd());
  watch(listener_.fd());
}

void InstanceServer::ring() const { ::eventfd_write(bell_.fd(), 1); }

void InstanceServer::hush() const {
  eventfd_t rings = 0;
  ::eventfd_read(bell_.fd(), &rings);
}

void InstanceServer::watch(int fd) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  ::epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event);
}

void InstanceServer::freeze() {
  frozen_ = true;
  ring();
}

void InstanceServer::kill() {
  killed_ = true;
  ring();
}

void InstanceServer::serve(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { ring(); });
  while (!killed_) {
    if (frozen_) {
      bell_.wait(POLLIN, kLong);
      hush();
      continue;
    }
    if (stop.stop_requested()) {
      listener_ = Socket();
      if (answers_.empty()) break;
    }
    wait_and_serve();
  }
  for (const auto& [fd, connection] : connections_) {
    if (killed_) connection.socket.reset_on_close();
  }
  listener_ = Socket();
  connections_.clear();
}

void InstanceServer::wait_and_serve() {
  auto time = kLong;
  if (!answers_.empty()) {
    const auto left = answers_.top().due - std::chrono::steady_clock::now();
    time = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(left),
                      std::chrono::milliseconds(0), kLong);
  }
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.fd(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(time.count()));
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == bell_.fd()) {
      hush();
    } else if (fd == listener_.fd()) {
      accept_all();
    } else {
      read(fd);
    }
  }
  answer_what_is_due();
}

void InstanceServer::accept_all() {
  while (Socket socket{::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)}) {
    const int fd = socket.fd();
    watch(fd);
    connections_[fd] = {std::move(socket), ++serials_};
  }
}

void InstanceServer::read(int fd) {
  const auto connection = connections_.find(fd);
  if (connection == connections_.end()) return;
  std::array<char, 64> bytes{};
  const auto size = ::recv(fd, bytes.data(), bytes.size(), 0);
  const bool resets = size > 0 && conduct_ == Conduct::kResets;
  if (resets) connection->second.socket.reset_on_close();
  if (size <= 0 || resets) {
    connections_.erase(connection);
    return;
  }
  const auto due = std::chrono::steady_clock::now() + answer_time_.load();
  for (ssize_t i = 0; i < size; ++i) answers_.push({due, fd, connection->second.serial});
  in_flight_ = answers_.size();
}

void InstanceServer::answer_what_is_due() {
  const auto now = std::chrono::steady_clock::now();
  while (!answers_.empty() && answers_.top().due <= now) {
    const Answer next = answers_.top();
    answers_.pop();
    const auto connection = connections_.find(next.fd);
    // (The caller may have disconnected.)
    if (connection == connections_.end() || connection->second.serial != next.serial) continue;
    const char answer = conduct_ == Conduct::kFails ? kError : kAnswer;
    static_cast<void>(::send(next.fd, &answer, 1, MSG_NOSIGNAL));
  }
  in_flight_ = answers_.size();
}

}  // namespace lookout::cmd::bench::fleet
