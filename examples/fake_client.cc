// How to test a program that uses informers without a cluster: the client talks to an API server in
// the same process.
#include <fmt/format.h>

#include <future>

#include "lookout/api/core/v1.h"
#include "lookout/apiserver/server.h"
#include "lookout/lookout.h"

using namespace lookout;

int main() try {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};

  // An informer that passes on the first pod that is added.
  std::promise<core::v1::Pod> added;
  informer::SharedInformerFactory factory{client};
  const auto pods = factory.informer<core::v1::Pod>();
  auto handler = pods.add_handler({.on_add = [&](const core::v1::Pod& pod, bool) {
    fmt::print("pod added: {}\n", pod.key());
    added.set_value(pod);
  }});
  factory.start();
  factory.wait_for_cache_sync();

  // The server has resourceVersions and history, so it does not matter whether the informer watches
  // already.
  client.resource<core::v1::Namespace>().create(api::Object::parse(
      R"({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-ns"}})"));
  client.resource<core::v1::Pod>("test-ns").create(api::Object::parse(R"({
      "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "my-pod"},
      "spec": {"containers": [{"name": "main", "image": "nginx"}]}})"));

  auto pod = added.get_future();
  if (pod.wait_for(std::chrono::seconds(30)) != std::future_status::ready)
    throw Error("the informer did not get the added pod");
  fmt::print("got pod: {}\n", pod.get().key());
  handler.remove();
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
