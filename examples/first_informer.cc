// An informer, its handlers and its lister; docs/guide/first-informer.md explains the code. It has
// its own API server; use rest::Config::load() to follow a cluster.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "lookout/apiserver/server.h"
#include "lookout/informer/enqueue.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/lookout.h"
#include "lookout/tools/watch/wait_for.h"
#include "lookout/tools/workqueue/rate_limiting_queue.h"

using namespace lookout;
using k8s::core::v1::ConfigMap;

namespace {

class Reader {
 public:
  explicit Reader(const rest::Client& client)
      : queue_({.loop = client.shared_loop()}),
        factory_(client),
        maps_(factory_.informer<ConfigMap>()),
        handler_(maps_.add_handler(informer::enqueue<ConfigMap>(queue_))) {
    factory_.start();
    factory_.wait_for_cache_sync();
  }

  void read_one() {
    const auto key = queue_.next();
    if (!key) return;
    const ConfigMap map = maps_.lister().find_by_key(**key);
    fmt::print("{} {}\n", **key, map ? "is there" : "is gone");
    queue_.forget(**key);
  }

 private:
  workqueue::RateLimitingQueue<std::string> queue_;
  informer::SharedInformerFactory factory_;
  informer::SharedInformer<ConfigMap> maps_;
  informer::HandlerRegistration handler_;
};

void follow(const rest::Client& client) {
  informer::SharedInformerFactory factory{client};
  const auto maps = factory.informer<ConfigMap>();

  const auto handler = maps.add_handler({
      .on_add =
          [](const ConfigMap& m, informer::Origin origin) {
            const bool first = origin == informer::Origin::kInitialList;
            fmt::print("{} {}\n", first ? "found" : "new:", m.key());
          },
      .on_update =
          [](const ConfigMap& before, const ConfigMap& after) {
            fmt::print("{}: {} keys, now {}\n", after.key(), before.data().size(),
                       after.data().size());
          },
      .on_delete = [](const ConfigMap& m) { fmt::print("gone: {}\n", m.key()); },
  });

  factory.start();
  if (const auto synced = factory.wait_for_cache_sync(); !synced) throw Error(synced.message());

  const auto here = client.resource<ConfigMap>("default");
  const auto made = here.create(ConfigMap::draft("settings", "default"));
  auto change = made.edit();
  change.data().set("colour", "blue");
  here.patch(change);
  here.remove("settings");
  watch::wait_for(here, "settings", watch::is_deleted(made.uid()),
                  {.timeout = std::chrono::seconds(30)});

  factory.stop_informer<ConfigMap>();
}

void follow_namespaces(const rest::Client& client) {
  informer::SharedInformerFactory factory{client};
  const auto maps = factory.informer_for_namespaces<ConfigMap>({"default", "kube-public"});
  const auto handler =
      maps.add_handler({.on_add = [](const ConfigMap& m) { fmt::print("+ {}\n", m.key()); },
                        .on_delete = [](const ConfigMap& m) { fmt::print("- {}\n", m.key()); }});
  factory.start();
  factory.wait_for_cache_sync();
  for (const auto& [ns, why] : maps.unsynced()) fmt::print("not in {}: {}\n", ns, why);

  maps.set_namespaces({"default", "kube-system"});
}

}  // namespace

int main() try {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  follow(client);
  client.resource<ConfigMap>("default").create(ConfigMap::draft("more", "default"));
  Reader(client).read_one();
  follow_namespaces(client);
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
