// A gRPC service that announces its pod in the registry while it runs.
//
//   grpc_server SERVICE PORT        docs/registry.md explains how it finds its pod: $POD_NAME ...
#include <fmt/format.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <csignal>
#include <memory>
#include <string>

#include "greeter.grpc.pb.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/rest/client.h"

namespace {

class Greeter : public lookout::examples::Greeter::Service {
 public:
  explicit Greeter(std::string name) : name_(std::move(name)) {}
  grpc::Status Greet(grpc::ServerContext*, const lookout::examples::GreetRequest* request,
                     lookout::examples::GreetReply* reply) override {
    reply->set_text("hello " + request->name());
    reply->set_server(name_);
    return grpc::Status::OK;
  }

 private:
  const std::string name_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    fmt::print(stderr, "usage: grpc_server SERVICE PORT\n");
    return 2;
  }
  // Blocked before any thread starts, so that only sigwait() receives the signals.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  const std::string address = fmt::format("0.0.0.0:{}", argv[2]);
  Greeter greeter(address);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&greeter);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) throw std::runtime_error("cannot listen on " + address);

  lookout::registry::kratos::Registry registry{
      lookout::rest::Client{lookout::rest::Config::load()}};
  registry.register_instance(
      {.name = argv[1], .version = "v1", .endpoints = {"grpc://" + address}});
  int signal = 0;
  sigwait(&ends, &signal);
  registry.deregister_instance({});
  server->Shutdown();
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "grpc_server: {}\n", e.what());
  return 1;
}
