// Follows the pods of a cluster: the shortest useful program.
//
//   follow_pods [LABEL SELECTOR]
#include <fmt/format.h>

#include "lookout/k8s/core/v1.h"
#include "lookout/lookout.h"

using namespace lookout;

int main(int argc, char** argv) try {
  const auto selector = api::labels::parse(argc > 1 ? argv[1] : "");
  const rest::Client client{rest::Config::load()};  // kubeconfig, else in-cluster
  informer::SharedInformerFactory factory{client};

  const auto pods = factory.informer<k8s::core::v1::Pod>();
  const auto by_node =
      pods.add_index("node", [](const k8s::core::v1::Pod& p) { return p.spec().node_name(); });
  const auto handler = pods.add_handler({
      .filter = [&](const k8s::core::v1::Pod& p) { return selector.matches(p); },
      .on_add = [](const k8s::core::v1::Pod& p) { fmt::print("+ {}\n", p.key()); },
      .on_update =
          [](const k8s::core::v1::Pod& before, const k8s::core::v1::Pod& after) {
            if (before.status().phase() != after.status().phase())
              fmt::print("~ {} is {}\n", after.key(), after.status().phase());
          },
      .on_delete = [](const k8s::core::v1::Pod& p) { fmt::print("- {}\n", p.key()); },
  });
  factory.start();
  factory.wait_for_cache_sync();

  for (const auto& p :
       pods.lister().ns("shop").list(api::labels::parse("app in (web,api), !canary")))
    fmt::print("{} has {}\n", p.key(), p.status().pod_ip());
  for (const auto& p : by_node.get("node-7")) fmt::print("on node-7: {}\n", p.key());

  fmt::print("Press Enter to end.\n");
  getchar();
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
