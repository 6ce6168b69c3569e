// Calls to one gRPC server.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "apiserver/grpc/call.h"
#include "apiserver/grpc/carrier.h"
#include "apiserver/grpc/server.h"
#include "lookout/base/event_loop.h"

namespace lookout::apiserver::grpc {

class Channel;

/// A call, for the coroutine that reads the response. Call its functions on the executor that was
/// passed to start(), except send() and cancel(), which are thread-safe. The destructor cancels a
/// running call.
class Call {
 public:
  Call(std::shared_ptr<Channel> channel, std::shared_ptr<CallState> state);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Waits for the next bytes of the response: messages, each after its head (kMessageHead). Empty at
  /// the end, when status() is set. Throws rest::TransportError:
  ///   - kRefused, kUnreachable: the server has not started the call, and will not;
  ///   - kTimeout: the deadline has passed, or `until`;
  ///   - kBroken: the connection broke, or the server was silent for too long.
  /// `reuse` is memory for the result; the caller may pass the previous result.
  Awaitable<std::string> read(
      std::string reuse = {},
      std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());
  Status status() const { return state_->status(); }

  /// Sends another message of a streaming call whose response has begun.
  void send(std::string message);
  void cancel();

 private:
  const std::shared_ptr<Channel> channel_;
  const std::shared_ptr<CallState> state_;
};

/// The connections to one server. Usually there is one; another one is created when it accepts no
/// more calls, or for another certificate or other authorities. Thread-safe.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(boost::asio::io_context& context, Server server);
  /// With carriers other than connections.
  Channel(std::shared_ptr<Carrier> carrier, Server server);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const std::string& url() const { return server_.url; }
  /// Starts a call; `executor` is that of the coroutine that will read the response.
  std::shared_ptr<Call> start(CallRequest request, boost::asio::any_io_executor executor);
  /// Ends all calls; later ones fail immediately. Waits until they have ended, unless called on a
  /// thread of the loop.
  void shutdown();

 private:
  friend class Call;
  class Connections;

  const Server server_;
  const std::shared_ptr<Carrier> carrier_;
};

}  // namespace lookout::apiserver::grpc
