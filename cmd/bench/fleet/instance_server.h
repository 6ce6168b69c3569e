// InstanceServer: the server of one instance.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "cmd/bench/fleet/socket.h"
#include "lookout/base/pinned.h"

namespace lookout::cmd::bench::fleet {

/// The response of an instance to a request.
enum class Conduct {
  kAnswers,
  kFails,  ///< answers with an error
  kResets  ///< resets the connection of the request
};

/// Answers each received byte with a byte, kAnswer or kError, after a delay. Listens from construction
/// on. serve() is for one thread; all other functions may be called from any thread.
class InstanceServer : public base::Pinned {
 public:
  /// Throws lookout::Error if the process has no more ports or descriptors.
  explicit InstanceServer(std::chrono::microseconds answer_time);

  static constexpr char kAnswer = 'y';
  static constexpr char kError = 'n';

  std::uint16_t port() const { return port_; }
  /// The number of received requests without a response.
  std::size_t in_flight() const { return in_flight_; }

  /// Serves until a stop is requested. Then it stops accepting, answers received requests, and closes its
  /// connections.
  void serve(const std::stop_token& stop);

  /// Sets the processing time of later requests.
  void set_answer_time(std::chrono::microseconds time) { answer_time_ = time; }
  void set_conduct(Conduct conduct) { conduct_ = conduct; }
  /// Like a process that gets SIGSTOP: the kernel still accepts connections, but requests get no response.
  void freeze();
  /// Like a process that gets SIGKILL: serve() returns, and all connections are reset.
  void kill();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Connection {
    Socket socket;
    std::uint64_t serial = 0;
  };
  struct Answer {
    TimePoint due;
    int fd = -1;
    std::uint64_t serial = 0;  // of the connection, because descriptors are reused
    friend bool operator>(const Answer& a, const Answer& b) { return a.due > b.due; }
  };

  void ring() const;
  void hush() const;
  void watch(int fd) const;
  /// Waits for a socket, a bell or the next due response.
  void wait_and_serve();
  void accept_all();
  void read(int fd);
  void answer_what_is_due();

  std::atomic<std::chrono::microseconds> answer_time_;
  Socket listener_;
  const std::uint16_t port_;
  const Socket bell_;
  const Socket epoll_;
  std::unordered_map<int, Connection> connections_;
  std::uint64_t serials_ = 0;
  std::priority_queue<Answer, std::vector<Answer>, std::greater<>> answers_;
  std::atomic<std::size_t> in_flight_{0};
  std::atomic<Conduct> conduct_{Conduct::kAnswers};
  std::atomic<bool> frozen_{false};
  std::atomic<bool> killed_{false};
};

}  // namespace lookout::cmd::bench::fleet
