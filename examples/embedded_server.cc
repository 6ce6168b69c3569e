// An informer without a cluster: the API server is in this program.
#include <fmt/format.h>

#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/lookout.h"

using namespace lookout;

int main() try {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  const auto config_maps = client.resource<k8s::core::v1::ConfigMap>("default");

  informer::SharedInformerFactory factory{client};
  const auto informer = factory.informer<k8s::core::v1::ConfigMap>();
  const auto handler = informer.add_handler({
      .on_add =
          [](const k8s::core::v1::ConfigMap& m, informer::Origin origin) {
            fmt::print("{} {}\n",
                       origin == informer::Origin::kInitialList ? "found" : "new:", m.key());
          },
      .on_update =
          [](const k8s::core::v1::ConfigMap&, const k8s::core::v1::ConfigMap& m) {
            for (const auto& [key, value] : m.data())
              fmt::print("{} has {}={}\n", m.key(), key, value);
          },
      .on_delete = [](const k8s::core::v1::ConfigMap& m) { fmt::print("gone: {}\n", m.key()); },
  });

  const auto settings = config_maps.create(k8s::core::v1::ConfigMap::draft("settings", "default"));
  factory.start();
  factory.wait_for_cache_sync();

  const auto change = settings.edit();
  change.data().set("colour", "blue");
  config_maps.patch(change);
  config_maps.create(k8s::core::v1::ConfigMap::draft("more", "default"));
  config_maps.remove("settings");

  // The cache follows within moments.
  const auto lister = informer.lister().ns("default");
  while (lister.find("settings") || !lister.find("more"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  fmt::print("{} config map(s) in the cache\n", lister.list().size());
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
