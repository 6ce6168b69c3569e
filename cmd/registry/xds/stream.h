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

/// A stream, whatever its messages. Its functions are called on the hub's thread.
class AnyStream {
 public:
  virtual ~AnyStream() = default;
  /// Sends what there is to send, unless a response is under way.
  virtual void advance() = 0;
  /// Ends it as soon as no response is under way.
  virtual void finish(grpc::Status status) = 0;
};

/// The place where streams live.
class Hub {
 public:
  virtual ~Hub() = default;
  /// Runs the work on the hub's one thread, after all that was posted before.
  virtual void post(std::function<void()> work) = 0;
  /// Null before there is any data.
  virtual SnapshotPtr snapshot() const = 0;
  /// From now on it is told of news. If there is no room for it: why.
  virtual std::optional<grpc::Status> enter(AnyStream& stream) = 0;
  virtual void leave(AnyStream& stream) = 0;
};

/// gRPC's calls come from its threads, and each only hands itself over to the hub's. Deletes itself
/// when gRPC is done with it.
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
  typename Session::Request request_;    // that is being read
  typename Session::Response response_;  // that is under way
  bool writing_ = false;
  std::optional<grpc::Status> end_;
};

}  // namespace lookout::cmd::registry_cmd::xds
