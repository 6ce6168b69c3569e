// Informers under faults: in the end, the cache equals the server's state; handlers receive each object's
// changes in order, without repetitions.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/testing/sim/gtest.h"
#include "tests/sim/watching.h"
#include "tests/sim/worlds.h"

namespace lookout {
namespace {

sim::ExploreOptions faults() {
  sim::ExploreOptions out = test::with_reflectors();
  out.world.rest = 10s;
  out.faults.per_request = 0.15;
  // Recreated objects differ from run to run.
  out.stable = false;
  return out;
}

/// A user creates, changes, deletes and recreates this many maps, twice a second; a cache follows.
void follow_maps(sim::World& world, int changes, int names) {
  auto watcher = std::make_shared<test::Watcher>();
  world.start("watcher", [&world, watcher](sim::Process& p) { test::watch(world, p, *watcher); });
  const auto maps = world.admin().resource<ConfigMap>("default");
  for (int i = 0; i < changes; ++i) {
    world.at(i * 500ms, [maps, i, names] {
      const std::string name = "map-" + std::to_string(i * 7 % names);
      const auto found = maps.find(name);
      if (!found) {
        auto draft = ConfigMap::draft(name, "default");
        draft.data().set("value", std::to_string(i));
        maps.create(draft);
      } else if (i % 3 == 0) {
        maps.remove(name);
      } else {
        const auto change = found.edit();
        change.data().set("value", std::to_string(i));
        maps.patch(change);
      }
    });
  }
  world.edit("makes a map anew", [&world, maps, names] {
    const std::string name = "map-" + std::to_string(world.now() / 1ms % names);
    maps.remove(name);
    const auto draft = ConfigMap::draft(name, "default");
    draft.data().set("value", "anew");
    maps.create(draft);
  });
  world.eventually("the cache and what was heard are the server's state", [&world, watcher] {
    std::map<std::string, std::string> there;
    for (const ConfigMap& map : world.admin().resource<ConfigMap>("").list().items)
      there.emplace(map.name(), map.resource_version());
    const std::lock_guard lock(watcher->mutex);
    const std::lock_guard heard(watcher->heard->mutex);
    return watcher->cached == there && watcher->heard->state == there;
  });
  world.run(changes * 500ms);
}

LOOKOUT_SIM_TEST(InformerWorlds, TheCacheIsTheServersInTheEnd, faults()) {
  follow_maps(world, 240, 12);
}

LOOKOUT_SIM_TEST(ShortInformerWorlds, TheCacheIsTheServersInTheEnd, test::shortened(faults())) {
  follow_maps(world, 20, 2);
}

sim::ExploreOptions without_lists() {
  sim::ExploreOptions out = faults();
  // With these faults a watch continues from its last version; others may lead to a relist, whose
  // changes have no order.
  out.faults =
      sim::only({sim::FaultKind::kCutStream, sim::FaultKind::kDelay, sim::FaultKind::kLoseRequest,
                 sim::FaultKind::kFreeze, sim::FaultKind::kPartition});
  out.faults.per_request = 0.3;
  out.faults.longest = 20s;
  return out;
}

LOOKOUT_SIM_TEST(InformerWorlds, ChangesOfAllObjectsComeInTheServersOrder, without_lists()) {
  world.start("watcher", [&world](sim::Process& p) {
    informer::SharedInformerFactory factory(p.client());
    auto maps = factory.informer<ConfigMap>();
    std::uint64_t last = 0;
    const auto hear = [&world, &last](const ConfigMap& map) {
      const std::uint64_t version = std::stoull(std::string(map.resource_version()));
      if (version < last)
        world.fail("version " + std::to_string(version) + " behind " + std::to_string(last));
      last = version;
    };
    const auto registration = maps.add_handler({
        .on_add =
            [&hear](const ConfigMap& map, informer::Origin origin) {
              if (origin != informer::Origin::kInitialList) hear(map);
            },
        .on_update = [&hear](const ConfigMap&, const ConfigMap& now) { hear(now); },
        .on_delete = [&hear](const ConfigMap& map, informer::FinalState) { hear(map); },
    });
    factory.start();
    test::wait_for_stop(p.stop());
    factory.shutdown();
  });
  const auto maps = world.admin().resource<ConfigMap>("default");
  for (int i = 0; i < 100; ++i) {
    // Several changes at once: one read of the watch delivers all.
    world.at(1s + i * 700ms, [maps, i] {
      const std::string x = "x-" + std::to_string(i);
      const std::string y = "y-" + std::to_string(i);
      maps.create(ConfigMap::draft(x, "default"));
      maps.create(ConfigMap::draft(y, "default"));
      const auto set = [&maps](const std::string& name, int value) {
        const auto change = maps.get(name).edit();
        change.data().set("value", std::to_string(value));
        maps.patch(change);
      };
      set(x, 1);
      maps.remove(y);
      set(x, 2);
      if (i % 3 == 0) maps.remove(x);
    });
  }
  world.run(80s);
}

}  // namespace
}  // namespace lookout
