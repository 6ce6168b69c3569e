// Calls a gRPC service once per second. Its instances come from the registry.
//
//   grpc_client lookout:///greeter
#include <fmt/format.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <thread>

#include "greeter.grpc.pb.h"
#include "lookout/registry/clients/grpc.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/rest/client.h"

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  if (argc != 2) {
    fmt::print(stderr, "usage: grpc_client lookout:///SERVICE\n");
    return 2;
  }
  lookout::registry::kratos::Registry registry{
      lookout::rest::Client{lookout::rest::Config::load()}};
  const lookout::registry::GrpcService greeter(registry, argv[1],
                                               grpc::InsecureChannelCredentials());
  if (!greeter.wait_for_instances(30s)) {
    fmt::print(stderr, "grpc_client: nobody announces {}\n", argv[1]);
    return 1;
  }
  for (;; std::this_thread::sleep_for(1s)) {
    const auto stub = lookout::examples::Greeter::NewStub(greeter.channel());
    lookout::examples::GreetRequest request;
    request.set_name("gRPC");
    lookout::examples::GreetReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 5s);
    const grpc::Status status = stub->Greet(&context, request, &reply);
    if (status.ok()) {
      fmt::print("{} says: {}\n", reply.server(), reply.text());
    } else {
      fmt::print("failed: {}\n", status.error_message());
    }
    std::fflush(stdout);
  }
} catch (const std::exception& e) {
  fmt::print(stderr, "grpc_client: {}\n", e.what());
  return 1;
}
