// GreeterServer: a gRPC server for tests, on a port of loopback.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "greeter.grpc.pb.h"

namespace lookout::test {

/// Responds with its name. Needs the target lookout_grpc_greeter.
class GreeterServer : public examples::Greeter::Service {
 public:
  explicit GreeterServer(std::string name) : name_(std::move(name)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  int port() const { return port_; }
  void stop() { server_->Shutdown(std::chrono::system_clock::now()); }
  /// The clients' addresses: one for each connection.
  std::set<std::string> peers() const {
    const std::lock_guard lock(mutex_);
    return peers_;
  }

 private:
  grpc::Status Greet(grpc::ServerContext* context, const examples::GreetRequest* request,
                     examples::GreetReply* reply) override {
    {
      const std::lock_guard lock(mutex_);
      peers_.insert(context->peer());
    }
    reply->set_text("hello " + request->name());
    reply->set_server(name_);
    return grpc::Status::OK;
  }

  const std::string name_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::set<std::string> peers_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lookout::test
