// The website example, with two replicas and a user, under all faults.
#include <gtest/gtest.h>
#include <lookout/controller/builder.h>
#include <lookout/controller/finalizers.h>
#include <lookout/controller/manager.h>
#include <lookout/controller/owner_references.h>
#include <lookout/k8s/apps/v1_draft.h>
#include <lookout/k8s/core/v1_draft.h>
#include <lookout/lookout.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "lookout/testing/sim/gtest.h"
#include "tests/sim/controllers.h"
#include "tests/sim/worlds.h"
#include "website_controller.h"
#include "website_types.h"

namespace lookout {
namespace {

using k8s::apps::v1::Deployment;
using k8s::core::v1::Secret;
using website::v1::Website;

void run_controller(sim::Process& p) {
  test::run_replica(p, "website", website::add_website_controller);
}

sim::ExploreOptions faults() {
  sim::ExploreOptions out;
  out.seeds = test::kSeeds;
  out.faults.per_request = 0.04;
  return out;
}

/// A user who wants a Website to have an image, or not to exist: the user retries until the state
/// is right, because an old object may still be terminating. The final state depends only on the
/// user's last wish.
void want(sim::World& world, const std::string& name, const std::string& image) {
  const auto sites = world.admin().resource<Website>("default");
  const auto found = sites.find(name);
  const bool leaving = found && found.metadata().deletion_timestamp();
  if (leaving) {
    if (image.empty()) return;
    world.at(std::chrono::ceil<std::chrono::milliseconds>(world.now()) + 500ms,
             [&world, name, image] { want(world, name, image); });
  } else if (image.empty()) {
    if (found) sites.remove(name);
  } else if (found) {
    const auto change = found.edit();
    change.spec().set_image(image);
    sites.patch(change);
  } else {
    const auto draft = Website::draft(name, "default");
    draft.spec().set_image(image).set_replicas(2);
    sites.create(draft);
  }
}

/// Other users, who change the controller's objects, or make changes that must have no effect.
void meddle(sim::World& world) {
  const auto sites = world.admin().resource<Website>("default");
  const auto deployments = world.admin().resource<Deployment>("default");
  for (const std::string name : {"site-1", "site-5"}) {
    world.edit("deletes the deployment of " + name,
               [deployments, name] { deployments.remove(name); });
    world.edit("scales the deployment of " + name, [deployments, name] {
      const auto change = deployments.get(name).edit();
      change.spec().set_replicas(7);
      deployments.patch(change);
    });
    world.edit("labels " + name, [&world, sites, name] {
      const auto change = sites.get(name).edit();
      change.metadata().labels().set("seen", std::to_string(world.now() / 1s));
      sites.patch(change);
    });
    world.edit("deletes " + name + " and wants it again", [&world, sites, name] {
      const Website site = sites.get(name);
      const std::string image(site.spec().image());
      sites.remove(name);
      world.at(std::chrono::ceil<std::chrono::milliseconds>(world.now()),
               [&world, name, image] { want(world, name, image); });
    });
  }
}

LOOKOUT_SIM_TEST(WebsiteWorlds, TheEndIsAsIfNothingHadHappened, faults()) {
  test::install_definition(world, CRD_FILE);
  meddle(world);
  world.start("replica-a", run_controller);
  world.start("replica-b", run_controller);
  for (int i = 0; i < 60; ++i) {
    const std::string name = "site-" + std::to_string(i % 10);
    const std::string image = i % 4 == 3 ? "" : "web:" + std::to_string(i);
    world.at(1s + i * 1500ms, [&world, name, image] { want(world, name, image); });
  }
  // After all earlier steps of the users. First delete the sites that other users may have labelled
  // or recreated.
  for (const char* name : {"site-1", "site-5"})
    world.at(140s, [&world, name] { want(world, name, ""); });
  for (int i = 0; i < 10; ++i) {
    const std::string name = "site-" + std::to_string(i);
    const std::string image = i % 3 == 0 ? "" : "web:last";
    world.at(150s + i * 50ms, [&world, name, image] { want(world, name, image); });
  }
  world.run(2min);
}

/// Maintains as many copies of each ConfigMap as its "copies" entry says; the server generates
/// their names.
void run_copier(sim::Process& p, controller::ManagerOptions options = {}) {
  controller::Manager manager(p.client(), std::move(options));
  controller::Builder<ConfigMap>(manager).owns<ConfigMap>().reconcile(
      [](const controller::Request& request, controller::Context& context) {
        const auto original = context.find<ConfigMap>(request);
        if (!original || !original->data().contains("copies")) return controller::Result{};
        const int wanted = std::stoi(std::string(original->data()["copies"]));
        int there = 0;
        for (const auto& map : context.list<ConfigMap>(request.ns))
          there += map.labels()["copy-of"].as_string() == original->name() ? 1 : 0;
        for (; there < wanted; ++there) {
          const auto copy = ConfigMap::draft("", request.ns);
          copy.metadata().set_generate_name("copy-");
          copy.metadata().labels().set("copy-of", original->name());
          controller::set_controller_reference(*original, copy);
          context.create(copy);
        }
        return controller::Result{};
      });
  manager.run(p.stop());
}

void run_elected_copier(sim::Process& p) {
  controller::ManagerOptions options;
  options.leader_election =
      controller::LeaderElection{.name = "copier", .ns = "default", .identity = p.name()};
  run_copier(p, std::move(options));
}

/// Sets an entry of a ConfigMap, which is created if absent.
void set_entry(sim::World& world, const std::string& name, const std::string& key,
               const std::string& value) {
  const auto maps = world.admin().resource<ConfigMap>("default");
  const auto found = maps.find(name);
  const auto draft = found ? found.edit() : ConfigMap::draft(name, "default");
  draft.data().set(key, value);
  if (found) {
    maps.patch(draft);
  } else {
    maps.create(draft);
  }
}

/// Users request more copies, `steps` times; there are never more copies than requested.
void want_copies(sim::World& world, int steps) {
  const auto maps = world.admin().resource<ConfigMap>("default");
  world.always("there are no more copies than wanted", [maps] {
    std::map<std::string, int> copies;
    std::map<std::string, int> wanted;
    for (const ConfigMap& map : maps.list().items) {
      if (map.data().contains("copies"))
        wanted[std::string(map.name())] = std::stoi(std::string(map.data()["copies"]));
      else
        ++copies[std::string(map.labels()["copy-of"].as_string())];
    }
    return std::ranges::all_of(copies, [&](const auto& entry) {
      return entry.first.empty() || entry.second <= wanted[entry.first];
    });
  });
  for (int i = 0; i < steps; ++i) {
    world.at(1s + i * 2s, [&world, i] {
      set_entry(world, "original-" + std::to_string(i % 8), "copies",
                std::to_string(3 * (1 + i / 8)));
    });
  }
  world.run((steps + 10) * 2s);
}

sim::ExploreOptions late_caches(std::initializer_list<sim::FaultKind> kinds) {
  sim::ExploreOptions out = faults();
  out.faults = sim::only(kinds);
  out.faults.per_request = 0.4;
  // The server generates the names.
  out.stable = false;
  return out;
}

LOOKOUT_SIM_TEST(ReadYourWritesWorlds, ALateCacheLeadsToNoSecondCopy,
                 late_caches({sim::FaultKind::kCutStream, sim::FaultKind::kStallStream,
                              sim::FaultKind::kDelay})) {
  world.start("copier", [](sim::Process& p) { run_copier(p); });
  want_copies(world, 40);
}

LOOKOUT_SIM_TEST(ReadYourWritesWorlds, AnotherLifeSeesWhatTheOneBeforeWrote,
                 late_caches({sim::FaultKind::kStaleRead, sim::FaultKind::kCrashAfter,
                              sim::FaultKind::kCrash})) {
  world.start("copier", run_elected_copier);
  want_copies(world, 20);
}

LOOKOUT_SIM_TEST(ReadYourWritesWorlds, ANewestFirstListShowsWhatTheLifeBeforeWrote,
                 late_caches({sim::FaultKind::kStaleRead, sim::FaultKind::kCrashAfter,
                              sim::FaultKind::kCrash})) {
  world.start("copier", [](sim::Process& p) {
    controller::ManagerOptions options;
    options.cache.newest_first_list = true;
    run_copier(p, std::move(options));
  });
  want_copies(world, 20);
}

/// A rolling update: each leader hands over to a standby replica whose cache lags.
LOOKOUT_SIM_TEST(ReadYourWritesWorlds, ANewLeaderSeesWhatTheOneBeforeWrote,
                 late_caches({sim::FaultKind::kLateEvents, sim::FaultKind::kLateEvents,
                              sim::FaultKind::kStallStream, sim::FaultKind::kRefuse})) {
  world.start("replica-0", run_elected_copier);
  for (int i = 0; i < 10; ++i) {
    world.at(i * 5s, [&world, i] {
      world.start("replica-" + std::to_string(i + 1), run_elected_copier);
      if (i > 0) world.stop("replica-" + std::to_string(i - 1));
    });
  }
  want_copies(world, 20);
}

/// Maintains a Secret for each ConfigMap.
void run_secret_keeper(sim::Process& p) {
  controller::Manager manager(p.client());
  controller::Builder<ConfigMap>(manager).owns<Secret>().reconcile(
      [](const controller::Request& request, controller::Context& context) {
        const auto map = context.find<ConfigMap>(request);
        if (!map || controller::is_being_deleted(*map)) return controller::Result{};
        context.create_or_update<Secret>(request, [&](const k8s::core::v1::SecretDraft& secret) {
          secret.set_type("Opaque");
          secret.metadata().annotations().set("value", map->data()["value"]);
        });
        return controller::Result{};
      });
  manager.run(p.stop());
}

LOOKOUT_SIM_TEST(ShortControllerWorlds, CreatesAndDeletesOwnedObjects, test::shortened(faults())) {
  world.start("keeper", run_secret_keeper);
  const auto maps = world.admin().resource<ConfigMap>("default");
  world.at(1s, [&world] { set_entry(world, "stays", "value", "one"); });
  world.at(2s, [&world] { set_entry(world, "goes", "value", "one"); });
  world.at(10s, [&world] { set_entry(world, "stays", "value", "two"); });
  world.at(12s, [maps] { maps.remove("goes"); });
  const auto secrets = world.admin().resource<Secret>("default");
  world.edit("deletes what is owned", [secrets] { secrets.remove("stays"); });
  world.run(30s);
}

/// The external resources of a controller, by the name of their object.
struct Outside {
  std::mutex mutex;
  std::set<std::string> names;

  std::set<std::string> get() {
    const std::lock_guard lock(mutex);
    return names;
  }
};

/// A controller that, with a stale first list, would create external resources for deleted objects.
void run_finalizer(sim::Process& p, Outside& outside) {
  controller::ManagerOptions options;
  options.cache.newest_first_list = true;
  controller::Manager manager(p.client(), options);
  controller::Builder<ConfigMap>(manager).reconcile(
      [&outside](const controller::Request& request, controller::Context& context) {
        const auto map = context.find<ConfigMap>(request);
        if (!map) return controller::Result{};
        const auto clean_up = [&] {
          const std::lock_guard lock(outside.mutex);
          outside.names.erase(request.name);
        };
        if (context.finalize(*map, "example.com/outside", clean_up)) return controller::Result{};
        const std::lock_guard lock(outside.mutex);
        outside.names.insert(request.name);
        return controller::Result{};
      });
  manager.run(p.stop());
}

LOOKOUT_SIM_TEST(ShortControllerWorlds, RemovesExternalResourcesBeforeTheirObject, [] {
  sim::ExploreOptions out = test::shortened(faults());
  out.stable = false;
  return out;
}()) {
  auto outside = std::make_shared<Outside>();
  world.start("controller", [outside](sim::Process& p) { run_finalizer(p, *outside); });
  const auto maps = world.admin().resource<ConfigMap>("default");
  maps.create(ConfigMap::draft("map", "default"));
  world.at(10s, [maps] {
    if (!maps.find("map")) return;
    try {
      maps.remove("map");
    } catch (const api::StatusError& e) {
      // Another user has deleted it, and the controller has finalized it in the meantime.
      if (!api::is_not_found(e)) throw;
    }
  });
  world.edit("creates the map", [maps] { maps.create(ConfigMap::draft("map", "default")); });
  world.edit("deletes the map", [maps] { maps.remove("map"); });
  const auto objects = [maps] {
    std::set<std::string> out;
    for (const ConfigMap& map : maps.list().items) out.emplace(map.name());
    return out;
  };
  world.always("nothing outside is without its object", [outside, objects] {
    const std::set<std::string> names = outside->get();
    return std::ranges::includes(objects(), names);
  });
  world.eventually("there is something outside for each object", [outside, objects] {
    const std::set<std::string> names = outside->get();
    return names == objects();
  });
  world.run(30s);
}

}  // namespace
}  // namespace lookout
