#include "rest/connection_monitor.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace lookout::rest::detail {
namespace {

ConnectionMonitor::Port local_port(curl_socket_t fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  return 0;
}

double seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::shared_ptr<ConnectionMonitor> ConnectionMonitor::create(const CurlMulti::Strand& strand,
                                                             Limits limits, Owner owner) {
  return std::shared_ptr<ConnectionMonitor>(
      new ConnectionMonitor(strand, limits, std::move(owner)));
}

ConnectionMonitor::ConnectionMonitor(const CurlMulti::Strand& strand, Limits limits, Owner owner)
    : limits_(limits), owner_(std::move(owner)), timer_(strand) {}

void ConnectionMonitor::opened(curl_socket_t fd) { sockets_[fd] = {Clock::now()}; }

void ConnectionMonitor::closed(curl_socket_t fd) {
  const auto socket = sockets_.find(fd);
  if (socket == sockets_.end()) return;
  connections_.erase(port_of(fd, socket->second));
  sockets_.erase(socket);
}

ConnectionMonitor::Port ConnectionMonitor::port_of(curl_socket_t fd, Socket& socket) {
  if (socket.port == 0) socket.port = local_port(fd);
  return socket.port;
}

curl_socket_t ConnectionMonitor::socket_of(Port port) {
  if (port == 0) return CURL_SOCKET_BAD;
  for (auto& [fd, socket] : sockets_) {
    if (port_of(fd, socket) == port) return fd;
  }
  return CURL_SOCKET_BAD;
}

void ConnectionMonitor::begun() {
  // (A timer that is already armed ends no later than needed.)
  if (!armed_) wake_at(Clock::now() + limits_.probe_after);
}

void ConnectionMonitor::ended(const Transfer& transfer) {
  // (libcurl may have closed it before.)
  if (socket_of(transfer.port) == CURL_SOCKET_BAD) return;
  note(transfer);
  Connection& connection = connections_[transfer.port];
  if (transfer.begun > connection.heard)
    connection.asked = std::min(connection.asked, transfer.begun);
}

void ConnectionMonitor::note(const Transfer& transfer) {
  Connection& connection = connections_[transfer.port];
  connection.heard = std::max(connection.heard, transfer.heard);
  if (connection.asked <= connection.heard) connection.asked = TimePoint::max();
}

void ConnectionMonitor::stop() {
  stopped_ = true;
  timer_.cancel();
  owner_ = {};
}

void ConnectionMonitor::wake_at(TimePoint when) {
  if (stopped_ || limits_.probe_after.count() == 0) return;
  armed_ = true;
  timer_.expires_at(when);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self || self->stopped_) return;
    self->armed_ = false;
    self->act(Clock::now());
  });
}

void ConnectionMonitor::look() {
  std::unordered_set<Port> open;
  for (auto& [fd, socket] : sockets_) open.insert(port_of(fd, socket));
  std::erase_if(connections_, [&open](const auto& entry) { return !open.contains(entry.first); });
  for (auto& [port, connection] : connections_) {
    connection.silent_since = TimePoint::max();
    connection.watch = false;
  }
  owner_.each_transfer([this](const Transfer& transfer) {
    if (transfer.port != 0) note(transfer);
  });
  owner_.each_transfer([this](const Transfer& transfer) {
    if (transfer.port == 0) return;
    Connection& connection = connections_[transfer.port];
    connection.silent_since =
        std::min(connection.silent_since, std::max(transfer.begun, connection.heard));
    connection.watch |= transfer.watch;
  });
  for (auto& [port, connection] : connections_)
    connection.silent_since = std::min(connection.silent_since, connection.asked);
}

void ConnectionMonitor::act(TimePoint now) {
  look();
  bool under_way = false;
  owner_.each_transfer([&](const Transfer&) { under_way = true; });
  if (!under_way) return;  // begun() arms the timer again
  TimePoint next = now + limits_.probe_after;
  bool probe = false;
  std::vector<Port> mute;
  for (const auto& [port, connection] : connections_) {
    if (connection.silent_since == TimePoint::max()) continue;
    if (connection.watch && limits_.stream_silence.count() != 0) {
      const TimePoint end = connection.silent_since + limits_.stream_silence;
      if (end <= now) {
        mute.push_back(port);
        continue;
      }
      next = std::min(next, end);
    }
    const TimePoint due = std::max(connection.silent_since, answered_) + limits_.probe_after;
    probe |= due <= now;
    if (due > now) next = std::min(next, due);
  }
  for (const Port port : mute) {
    lose(
        port,
        fmt::format(
            "the connection was lost: it was silent for {:g} s, while the server answers on others",
            seconds(limits_.stream_silence)));
  }
  // Before the probe, for which begun() would set a later time.
  if (!armed_) wake_at(next);
  if (probe && !probing_) {
    probe_begun_ = now;
    probing_ = true;
    if (!owner_.send_probe()) probing_ = false;
  }
}

void ConnectionMonitor::probe_ended(bool answered) {
  if (!std::exchange(probing_, false) || stopped_) return;
  if (answered) {
    answered_ = Clock::now();
    return;
  }
  look();
  std::vector<Port> silent;
  for (auto& [fd, socket] : sockets_) {
    const Port port = port_of(fd, socket);
    if (port == 0 || socket.opened >= probe_begun_) continue;
    // Idle connections are dead, too.
    const auto connection = connections_.find(port);
    if (connection == connections_.end() || connection->second.heard < probe_begun_)
      silent.push_back(port);
  }
  const std::string why = fmt::format(
      "the connection was lost: it was silent for {:g} s, and a probe was not answered within {:g} "
      "s",
      seconds(limits_.probe_after), seconds(limits_.probe_timeout));
  for (const Port port : silent) lose(port, why);
}

void ConnectionMonitor::lose(Port port, std::string_view why) {
  owner_.lost(port, why);
  connections_.erase(port);
  // libcurl sees the end of the connection and closes it.
  if (const curl_socket_t fd = socket_of(port); fd != CURL_SOCKET_BAD) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace lookout::rest::detail
