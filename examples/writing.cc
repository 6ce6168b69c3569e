// Writing objects with drafts, against an API server in this program.
#include <fmt/format.h>

#include "lookout/apiserver/server.h"
#include "lookout/controller/create_or_update.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/lookout.h"
#include "lookout/rest/subresources.h"
#include "lookout/tools/retry.h"

using namespace lookout;

int main() try {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  const auto deployments = client.resource<k8s::apps::v1::Deployment>("default");
  const auto maps = client.resource<k8s::core::v1::ConfigMap>("default");

  // A new object.
  auto web = k8s::apps::v1::Deployment::draft("web", "default");
  web.spec().set_replicas(2);
  web.spec().selector().match_labels().set("app", "web");
  web.spec().pod_template().metadata().labels().set("app", "web");
  web.spec().pod_template().spec().containers().append("web").set_image("web:1");
  const k8s::apps::v1::Deployment made = deployments.create(web);

  // A change to an object that was read: sends only the difference.
  const auto change = made.edit();
  change.spec().pod_template().spec().containers().find("web")->set_image("web:2");
  change.metadata().annotations().set("example.com/why", "a new release");
  fmt::print("{}\n", change.diff());
  deployments.patch(change);

  // The whole object; starts again if it has changed since it was read.
  retry::on_conflict([&] {
    const auto all = deployments.get("web").edit();
    all.spec().set_replicas(all.spec().replicas().value_or(1) + 1);
    deployments.update(all);
  });

  // An object in the desired state, whether it exists or not.
  const auto settings =
      controller::create_or_update(maps, "settings", [&](k8s::core::v1::ConfigMapDraft& map) {
        map.data().set("colour", "blue");
        controller::set_controller_reference(made, map);
      });
  fmt::print("settings: {}\n", controller::to_string(settings.written));

  // Subresources.
  const auto status = deployments.get("web").edit();
  status.status().set_replicas(3).set_ready_replicas(3);
  deployments.patch_status(status);
  rest::set_scale(deployments.dynamic(), "web", 5);

  const auto now = deployments.get("web");
  fmt::print("{}: {} of {} replicas, {}\n", now.key(), now.status().ready_replicas().value_or(0),
             now.spec().replicas().value_or(0),
             now.spec().pod_template().spec().containers()[0].image());
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
