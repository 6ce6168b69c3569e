// Objects, listers, indexes and snapshots; docs/guide/reading-objects.md explains the code.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/lookout.h"

using namespace lookout;
using k8s::core::v1::Pod;

namespace {

void look_at(const Pod& pod) {
  fmt::print("{} runs on {}\n", pod.key(), pod.spec().node_name());
  for (const auto& container : pod.spec().containers())
    fmt::print("  {}: {}\n", container.name(), container.image());
  if (const auto grace = pod.spec().termination_grace_period_seconds())
    fmt::print("  grace period: {} s\n", *grace);
  fmt::print("  tier: {}\n", pod.labels()["tier"].as_string("?"));
  fmt::print("  first image: {}\n", pod.at(".spec.containers[0].image").as_string());
}

void create_pods(const rest::Client& client) {
  for (const std::string name : {"web-1", "web-2", "db-1"}) {
    const std::string app = name.substr(0, name.find('-'));
    client.resource<Pod>("default").create(api::Object::parse(fmt::format(
        R"({{"metadata":{{"name":"{}","labels":{{"app":"{}","tier":"front"}}}},
             "spec":{{"nodeName":"node-1","containers":[{{"name":"main","image":"{}:1"}}]}}}})",
        name, app, app)));
  }
}

}  // namespace

int main() try {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  create_pods(client);

  informer::SharedInformerFactory factory{client};
  const auto pods = factory.informer<Pod>();
  const auto by_node = pods.add_index("by-node", [](const Pod& p) { return p.spec().node_name(); });
  const auto by_app = pods.add_label_index("app");
  factory.start();
  factory.wait_for_cache_sync();

  const auto here = pods.lister().ns("default");
  if (const Pod web = here.find("web-1")) look_at(web);
  const Pod same = here.get("web-1");  // throws api::StatusError if there is none
  for (const Pod& p : pods.lister().list(api::labels::parse("app in (web, api), !canary")))
    fmt::print("selected: {}\n", p.name());

  const std::vector<cache::ObjectName> wanted{{"default", "web-1"}, {"default", "db-1"}};
  {
    const auto view = pods.lister().read();
    for (const Pod& p : view.find_many(wanted)) {
      if (p) fmt::print("found: {}\n", p.name());
    }
    if (const auto web = view.find("default", "web-2")) fmt::print("found: {}\n", web->name());
  }

  for (const Pod& p : by_node.get("node-1")) fmt::print("on node-1: {}\n", p.name());
  for (const auto& node : by_node.values()) fmt::print("{}: {} pods\n", node, by_node.count(node));
  fmt::print("{} pods with app=web\n", by_app.count("web"));

  const cache::Snapshot now = pods.untyped_informer().store().snapshot();
  for (const Pod& p : by_node.get(now, "node-1")) {
    if (!now.contains(p.key())) fmt::print("never printed\n");
  }

  client.resource<Pod>("default").remove("web-1");
  fmt::print("still {}\n", same.spec().containers()[0].image());
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
