// One stream of the aggregated discovery service.
#pragma once

#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "cmd/registry/xds/snapshot.h"

namespace lookout::cmd::registry_cmd::xds {

/// A stream of either variant. Its functions are called on the hub's thread.
class AnyStream {
 public:
  virtual ~AnyStream() = default;
  /// Sends the next response, unless one is in flight.
  virtual void advance() = 0;
  /// Ends the stream as soon as no response is in flight.
  virtual void finish(grpc::Status status) = 0;
};

/// The owner of the streams.
class Hub {
 public:
  virtual ~Hub() = default;
  /// Runs the work on the hub's thread, after all work posted before.
  virtual void post(std::function<void()> work) = 0;
  /// Null before there is any data.
  virtual SnapshotPtr snapshot() const = 0;
  /// Registers the stream for updates. Returns an error if there are too many streams.
  virtual std::optional<grpc::Status> enter(AnyStream& stream) = 0;
  virtual void leave(AnyStream& stream) = 0;
};

/// gRPC calls it on its own threads; each call only posts work to the hub's thread. Deletes itself
/// in OnDone().
template <class Session>
class Stream final
    : public grpc::ServerBidiReactor<typename Session::Request, typename Session::Response>,
      public AnyStream {
 public:
  explicit Stream(Hub& hub) : hub_(hub) {
    hub_.post([this] { begin(); });
  }

  void OnReadDone(bool ok) override {
    hub_.post([this, ok] { on_read(ok); });
  }
  void OnWriteDone(bool ok) override {
    hub_.post([this, ok] { on_write(ok); });
  }
  void OnCancel() override {
    hub_.post([this] { finish(grpc::Status::CANCELLED); });
  }
  void OnDone() override {
    hub_.post([self = std::shared_ptr<Stream>(this)] { self->hub_.leave(*self); });
  }

  void advance() override {
    const SnapshotPtr snapshot = hub_.snapshot();
    if (writing_ || end_ || !snapshot) return;
    auto response = session_.next(*snapshot);
    if (!response) return;
    response_ = std::move(*response);
    writing_ = true;
    this->StartWrite(&response_);
  }

  void finish(grpc::Status status) override {
    if (end_) return;
    end_ = std::move(status);
    if (!writing_) this->Finish(*end_);
  }

 private:
  void begin() {
    if (end_) return;
    if (auto refusal = hub_.enter(*this)) return finish(std::move(*refusal));
    this->StartRead(&request_);
  }

  void on_read(bool ok) {
    if (end_) return;
    if (!ok) return finish(grpc::Status::OK);
    if (auto problem = session_.on_request(request_)) {
      return finish({grpc::StatusCode::RESOURCE_EXHAUSTED, *problem});
    }
    request_ = {};
    this->StartRead(&request_);
    advance();
  }

  void on_write(bool ok) {
    writing_ = false;
    response_ = {};
    if (end_) return this->Finish(*end_);
    if (!ok) return finish(grpc::Status::CANCELLED);
    advance();
  }

  Hub& hub_;
  Session session_;
  typename Session::Request request_;    // being read
  typename Session::Response response_;  // in flight
  bool writing_ = false;
  std::optional<grpc::Status> end_;
};

}  // namespace lookout::cmd::registry_cmd::xds
