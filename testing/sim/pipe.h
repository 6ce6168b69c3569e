// Link and Pipe: the connections of a simulated network.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lookout/base/async_event.h"
#include "testing/sim/random.h"

namespace lookout::sim {

using SteadyTime = std::chrono::steady_clock::time_point;

class Pipe;

/// The link between a process and the API servers. Safe to use from any thread.
class Link : public std::enable_shared_from_this<Link> {
 public:
  struct Latency {
    std::chrono::microseconds shortest{0};
    std::chrono::microseconds longest{0};
  };
  Link(std::uint64_t seed, Latency latency) : random_(seed), latency_(latency) {}

  /// Cuts the link until then; data that is sent meanwhile arrives afterwards.
  void cut_until(SteadyTime time);
  /// The process has crashed: cuts the link permanently and ends all connections.
  void end();

  /// One direction of a new connection.
  std::shared_ptr<Pipe> pipe(boost::asio::any_io_executor reader);

  bool ended() const;
  /// The time since which the link is cut.
  std::optional<SteadyTime> cut_since() const;
  SteadyTime cut_until() const;

  /// The arrival time of data that is sent now.
  SteadyTime arrival();
  /// How many of `size` bytes are read at once.
  std::size_t piece(std::size_t size);

 private:
  /// Wakes all readers.
  void ring_all();

  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<Pipe>> pipes_;
  Random random_;
  const Latency latency_;
  SteadyTime cut_until_{};
  SteadyTime cut_since_{};
  bool ended_ = false;
};

/// One direction of a connection. One side writes, one coroutine reads, each on its own thread.
class Pipe {
 public:
  Pipe(std::shared_ptr<Link> link, boost::asio::any_io_executor reader)
      : link_(std::move(link)), bell_(std::move(reader)) {}

  void write(std::string bytes);
  /// Ends the stream after the bytes in flight.
  void end();
  /// Breaks the stream immediately; bytes in flight are lost.
  void break_off();

  struct Taken {
    std::string bytes = {};
    bool ended = false;
    bool broken = false;
    /// If nothing has arrived: the time to check again.
    SteadyTime again = SteadyTime::max();
  };
  /// The bytes that have arrived.
  Taken take();
  /// Waits until data may have arrived, or until then.
  Awaitable<void> wait(SteadyTime until) { return bell_->wait(until); }
  /// Wakes the reader.
  void ring();
  /// Called by the reader when it stops reading; its executor may then be destroyed.
  void leave();

 private:
  struct Message {
    SteadyTime arrives;
    std::string bytes;
    bool end = false;
  };

  void push(Message message);

  const std::shared_ptr<Link> link_;
  std::mutex bell_mutex_;
  std::optional<AsyncEvent> bell_;  // guarded by bell_mutex_, but for the reader
  std::mutex mutex_;
  std::deque<Message> messages_;  // guarded by mutex_, as all below
  SteadyTime last_{};
  bool ended_ = false;
  bool broken_ = false;
};

}  // namespace lookout::sim
