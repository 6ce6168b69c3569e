// Dialer: connects to a server that has several addresses.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace lookout::apiserver::grpc {

/// Tries the addresses in turn until one accepts the connection. As in Go's net.Dialer, each address
/// gets a share of the time, and the last one the rest. Everything runs on the socket's executor.
class Dialer : public std::enable_shared_from_this<Dialer> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Addresses = std::vector<boost::asio::ip::tcp::endpoint>;
  using Clock = std::chrono::steady_clock;
  /// Without an error the socket is connected. Otherwise the error is that of the last address.
  using Done = std::function<void(const boost::system::error_code&)>;

  /// `done` is called once and must keep the socket alive. The owner enforces the deadline.
  Dialer(Socket& socket, Addresses addresses, Clock::time_point deadline, Done done);

  void start() { try_next(); }
  /// Afterwards, `done` is not called and the socket is not used.
  void stop() { done_ = nullptr; }

 private:
  void try_next();
  void limit_attempt();
  void on_end(const boost::system::error_code& error);

  Socket& socket_;
  const Addresses addresses_;
  const Clock::time_point deadline_;
  Done done_;
  boost::asio::steady_timer timer_;
  std::size_t next_ = 0;  // the address after that of the current attempt
  bool late_ = false;     // the current attempt has used up its time
};

}  // namespace lookout::apiserver::grpc
