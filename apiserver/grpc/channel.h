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

/// One call, for the coroutine that reads its answer. Functions are called on the executor that
/// start() was given, except send() and cancel(), which may be called from any thread. The destructor
/// cancels a call that has not ended.
class Call {
 public:
  Call(std::shared_ptr<Channel> channel, std::shared_ptr<CallState> state);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Waits for the next bytes of the answer: messages, each behind its head (kMessageHead). Empty
  /// at the end, when status() is known. Throws rest::TransportError:
  ///   - kRefused, kUnreachable: the server has not begun the call, and will not;
  ///   - kTimeout: the deadline has passed, or `until`;
  ///   - kBroken: the connection broke, or the server was silent for too long.
  /// `reuse` is memory for the result; the caller may pass the previous result.
  Awaitable<std::string> read(
      std::string reuse = {},
      std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());
  Status status() const { return state_->status(); }

  /// Sends another message of a streaming call whose answer has begun.
  void send(std::string message);
  void cancel();

 private:
  const std::shared_ptr<Channel> channel_;
  const std::shared_ptr<CallState> state_;
};

/// The connections to one server: usually one; another one when the first takes no more calls, or
/// was made with another certificate or other authorities. Thread-safe.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(boost::asio::io_context& context, Server server);
  /// Over something else than connections.
  Channel(std::shared_ptr<Carrier> carrier, Server server);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const std::string& url() const { return server_.url; }
  /// Begins a call; `executor` is that of the coroutine that will read the answer.
  std::shared_ptr<Call> start(CallRequest request, boost::asio::any_io_executor executor);
  /// Ends all calls; later ones fail at once. Waits until they have ended, unless it is called on a
  /// thread of the loop.
  void shutdown();

 private:
  friend class Call;
  class Connections;

  const Server server_;
  const std::shared_ptr<Carrier> carrier_;
};

}  // namespace lookout::apiserver::grpc
