// An informer with no cluster at hand: the API server is in this program.
#include <fmt/format.h>

#include "lookout/api/core/v1.h"
#include "lookout/apiserver/server.h"
#include "lookout/lookout.h"

using namespace lookout;

int main() try {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  const auto config_maps = client.resource<core::v1::ConfigMap>("default");

  informer::SharedInformerFactory factory{client};
  const auto informer = factory.informer<core::v1::ConfigMap>();
  informer.add_handler({
      .on_add = [](const core::v1::ConfigMap& m,
                   bool initial) { fmt::print("{} {}\n", initial ? "found" : "new:", m.key()); },
      .on_update =
          [](const core::v1::ConfigMap&, const core::v1::ConfigMap& m) {
            for (const auto& [key, value] : m.data())
              fmt::print("{} has {}={}\n", m.key(), key, value);
          },
      .on_delete = [](const core::v1::ConfigMap& m, bool) { fmt::print("gone: {}\n", m.key()); },
  });

  config_maps.create(api::Object::parse(R"({"metadata":{"name":"settings"}})"));
  factory.start();
  factory.wait_for_cache_sync();

  config_maps.patch("settings", rest::PatchType::kMerge, R"({"data":{"colour":"blue"}})");
  config_maps.create(api::Object::parse(R"({"metadata":{"name":"more"}})"));
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
