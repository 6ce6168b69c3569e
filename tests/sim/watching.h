// A process that watches ConfigMaps, and reports inconsistent events.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/testing/sim/world.h"

namespace lookout::test {

/// The events that a handler has received during the life of one process.
struct Heard {
  std::mutex mutex;
  std::map<std::string, std::string> state;  // resourceVersions by name
};

struct Watcher {
  std::mutex mutex;
  std::shared_ptr<Heard> heard;  // of the current life
  std::map<std::string, std::string> cached;
};

inline void watch(sim::World& world, sim::Process& p, Watcher& watcher) {
  auto heard = std::make_shared<Heard>();
  {
    const std::lock_guard lock(watcher.mutex);
    watcher.heard = heard;
  }
  informer::SharedInformerFactory factory(p.client());
  auto maps = factory.informer<k8s::core::v1::ConfigMap>();
  const auto registration = maps.add_handler({
      .on_add =
          [heard, &world](const k8s::core::v1::ConfigMap& map, informer::Origin) {
            const std::lock_guard lock(heard->mutex);
            const auto [it, added] =
                heard->state.try_emplace(std::string(map.name()), map.resource_version());
            if (!added) world.fail("added twice: " + it->first);
          },
      .on_update =
          [heard, &world](const k8s::core::v1::ConfigMap& before,
                          const k8s::core::v1::ConfigMap& now) {
            const std::lock_guard lock(heard->mutex);
            const auto it = heard->state.find(std::string(now.name()));
            if (it == heard->state.end()) {
              world.fail("updated, but not there: " + std::string(now.name()));
              return;
            }
            if (it->second != before.resource_version())
              world.fail("the old state of an update is not what was heard last: " + it->first);
            it->second = now.resource_version();
          },
      .on_delete =
          [heard, &world](const k8s::core::v1::ConfigMap& map, informer::FinalState) {
            const std::lock_guard lock(heard->mutex);
            if (heard->state.erase(std::string(map.name())) == 0)
              world.fail("deleted, but not there: " + std::string(map.name()));
          },
  });
  factory.start();
  while (!p.stop().stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::map<std::string, std::string> cached;
    for (const k8s::core::v1::ConfigMap& map : maps.lister().list())
      cached.emplace(map.name(), map.resource_version());
    const std::lock_guard lock(watcher.mutex);
    watcher.cached = std::move(cached);
  }
  factory.shutdown();
}

}  // namespace lookout::test
