// A controller of two clusters: copies the ConfigMaps of one into the other. Both are embedded API
// servers.
#include <fmt/core.h>

#include <memory>
#include <stop_token>

#include "lookout/apiserver/server.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/cluster.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/core/v1_draft.h"

namespace controller = lookout::controller;
namespace rest = lookout::rest;
using lookout::k8s::core::v1::ConfigMap;
using lookout::k8s::core::v1::ConfigMapDraft;

int main() {
  const lookout::apiserver::Server home_server;
  const lookout::apiserver::Server west_server;
  std::stop_source done;

  const rest::Client client(home_server.client_config());
  controller::Manager manager{client};
  const rest::Client west_client(west_server.client_config(), client.shared_loop());
  const auto west = std::make_shared<controller::Cluster>("west", west_client);
  manager.add(west);
  controller::Builder(manager)
      .named("copies")
      .watches<ConfigMap>(
          [](const ConfigMap& map, controller::Enqueue& enqueue) {
            enqueue({map.ns(), map.name()});
          },
          {.cluster = west})
      .reconcile([&](const controller::Request& request,
                     controller::Context& context) -> controller::Result {
        const auto there = context.view(*west).find<ConfigMap>(request);
        if (!there) return {};
        context.create_or_update<ConfigMap>(request, [&](const ConfigMapDraft& draft) {
          for (const auto& [key, value] : there->data()) draft.data().set(key, value);
        });
        context.logger().info("copied from {}", west->name());
        done.request_stop();
        return {};
      });

  const auto draft = ConfigMap::draft("settings", "default");
  draft.data().set("colour", "green");
  west_client.resource<ConfigMap>("default").create(draft);
  manager.run(done.get_token());

  const auto copy = client.resource<ConfigMap>("default").get("settings");
  fmt::print("{} is {}\n", copy.key(), copy.data()["colour"]);
}
