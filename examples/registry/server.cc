// A service: registers, serves, and on SIGTERM deregisters, drains and ends.
//
//   server NAME [PORT]
//
// A pod needs no configuration; k8s/ has the manifests. Outside a pod, POD_NAME and POD_NAMESPACE
// name the pod for the announcement.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "examples/registry/http_server.h"
#include "lookout/registry/app.h"

using namespace lookout;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: server NAME [PORT]\n");
    return 2;
  }
  const std::string name = argv[1];
  const char* const pod = std::getenv("POD_NAME");
  const std::string greeting = fmt::format("hello from {}\n", pod == nullptr ? "nowhere" : pod);
  example::HttpServer server(static_cast<unsigned short>(argc > 2 ? std::stoi(argv[2]) : 8080));

  registry::AppOptions options{.name = name, .version = "v1"};
  options.endpoints = {registry::Endpoint("http", "0.0.0.0", server.port())};
  options.drain = 5s;
  options.in_flight = [&] { return server.in_flight(); };
  registry::App app{rest::Client{rest::Config::load()}, options};

  fmt::print("serving {} on port {}\n", name, server.port());
  std::fflush(stdout);
  return app.run([&](std::stop_token stop) {
    server.serve(stop, [&](const std::string&) { return std::string(greeting); });
  });
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
