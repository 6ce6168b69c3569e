// Tests a program that uses informers without a cluster: the client talks to an API server in the
// same process.
#include <fmt/format.h>

#include <future>

#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/lookout.h"

using namespace lookout;

int main() try {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};

  // An informer that reports the first added pod.
  std::promise<k8s::core::v1::Pod> added;
  informer::SharedInformerFactory factory{client};
  const auto pods = factory.informer<k8s::core::v1::Pod>();
  const auto handler = pods.add_handler({.on_add = [&](const k8s::core::v1::Pod& pod) {
    fmt::print("pod added: {}\n", pod.key());
    added.set_value(pod);
  }});
  factory.start();
  factory.wait_for_cache_sync();

  // The server has resource versions and history, so the informer need not be watching yet.
  client.resource<k8s::core::v1::Namespace>().create(k8s::core::v1::Namespace::draft("test-ns"));
  const auto my_pod = k8s::core::v1::Pod::draft("my-pod", "test-ns");
  my_pod.spec().containers().append("main").set_image("nginx");
  client.resource<k8s::core::v1::Pod>("test-ns").create(my_pod);

  auto pod = added.get_future();
  if (pod.wait_for(std::chrono::seconds(30)) != std::future_status::ready)
    throw Error("the informer did not get the added pod");
  fmt::print("got pod: {}\n", pod.get().key());
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
