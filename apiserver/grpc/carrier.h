// Carrier: the connection of a channel to one server. Tests replace it.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "apiserver/grpc/call.h"
#include "apiserver/grpc/server.h"

namespace lookout::apiserver::grpc {

/// Sends calls to one server and returns the responses. A message here is its five-byte gRPC
/// header and its bytes. The virtual functions are called on the strand. The carrier reports a
/// call's progress with CallState's opened(), receive(), finish() and fail(), on the strand, too.
class Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

  explicit Carrier(boost::asio::io_context& context) : strand_(boost::asio::make_strand(context)) {}
  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  const Strand& strand() const { return strand_; }

  /// Calls f(*this) on the strand, later. From any thread.
  template <class F>
  void post(F f) {
    boost::asio::post(strand_,
                      [self = shared_from_this(), f = std::move(f)]() mutable { f(*self); });
  }
  /// Runs immediately on a thread of the loop if the strand is free, without waking another thread.
  template <class F>
  void dispatch(F f) {
    boost::asio::dispatch(strand_,
                          [self = shared_from_this(), f = std::move(f)]() mutable { f(*self); });
  }

  virtual void begin(std::shared_ptr<CallState> call) = 0;
  /// Another message of a streaming call.
  virtual void send(const std::shared_ptr<CallState>& call, const std::string& message) = 0;
  /// This many bytes of the response were consumed.
  virtual void consumed(const std::shared_ptr<CallState>& call, std::size_t bytes) = 0;
  virtual void cancel(const std::shared_ptr<CallState>& call) = 0;
  /// Ends all calls; later ones fail immediately.
  virtual void close() = 0;

 private:
  const Strand strand_;
};

/// Creates carriers instead of HTTP/2 connections, for a simulated etcd
/// (storage::EtcdOptions::network).
class CarrierFactory {
 public:
  virtual ~CarrierFactory() = default;
  /// For the server with that URL. The carrier runs on `context`.
  virtual std::shared_ptr<Carrier> create(boost::asio::io_context& context,
                                          const Server& server) = 0;
};

}  // namespace lookout::apiserver::grpc
