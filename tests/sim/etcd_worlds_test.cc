// API servers on an etcd that compacts, loses its leader, restarts, lags and loses responses: in the end,
// all servers have etcd's state, and no watcher has missed or repeated an event.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/manager.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/testing/sim/gtest.h"
#include "testing/sim/world_impl.h"
#include "tests/apiserver/storage/etcd3/writing_and_following.h"
#include "tests/sim/watching.h"
#include "tests/sim/worlds.h"

namespace lookout {
namespace {

using Versions = std::map<std::string, std::string>;

/// The state in etcd: resourceVersions by name.
Versions stored(sim::World& world) {
  const std::string prefix = "/registry/configmaps/";
  Versions out;
  for (const auto& [key, kv] : world.impl().etcd()->contents(prefix))
    out.emplace(key.substr(key.rfind('/') + 1), std::to_string(kv.mod_revision));
  return out;
}

/// The objects in an API server's list.
Versions listed(sim::World& world, unsigned server, const std::string& resource_version) {
  rest::ListOptions options;
  options.resource_version = resource_version;
  Versions out;
  for (const ConfigMap& map : world.admin(server).resource<ConfigMap>("").list(options).items)
    out.emplace(map.name(), map.resource_version());
  return out;
}

/// A user who wants ConfigMaps to have values (an empty value: to be absent), and retries until the
/// state is right.
class User : public std::enable_shared_from_this<User> {
 public:
  explicit User(sim::World& world) : world_(world) {}

  void want(unsigned server, const std::string& name, std::string value) {
    wanted_[name] = std::move(value);
    attempt(server, name);
  }

 private:
  void attempt(unsigned server, const std::string& name) {
    try {
      make_it_so(server, name, wanted_.at(name));
    } catch (const Error&) {
      // The write may have happened. The retry uses the value that is wanted then.
      world_.at(std::chrono::ceil<std::chrono::milliseconds>(world_.now()) + 700ms,
                [self = shared_from_this(), server, name] { self->attempt(server, name); });
    }
  }
  void make_it_so(unsigned server, const std::string& name, const std::string& value) {
    const auto maps = world_.admin(server).resource<ConfigMap>("default");
    const auto found = maps.find(name);
    if (value.empty()) {
      if (found) maps.remove(name);
    } else if (found) {
      const auto change = found.edit();
      change.data().set("value", value);
      maps.patch(change);
    } else {
      const auto draft = ConfigMap::draft(name, "default");
      draft.data().set("value", value);
      maps.create(draft);
    }
  }

  sim::World& world_;
  std::map<std::string, std::string> wanted_;
};

/// Maintains a copy of each ConfigMap.
void run_copier(sim::Process& p) {
  constexpr std::string_view kPrefix = "copy-of-";
  controller::Manager manager(p.client());
  controller::Builder<ConfigMap>(manager).reconcile(
      [kPrefix](const controller::Request& request, controller::Context& context) {
        std::string name = request.name;
        if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
        if (name == "kube-root-ca.crt") return controller::Result{};
        const auto original = context.find<ConfigMap>(request.ns, name);
        const auto copy = context.find<ConfigMap>(request.ns, std::string(kPrefix) + name);
        if (!original) {
          if (copy) context.remove(*copy);
          return controller::Result{};
        }
        const std::string value(original->data()["value"]);
        if (!copy) {
          const auto draft = ConfigMap::draft(std::string(kPrefix) + name, request.ns);
          draft.data().set("value", value);
          context.create(draft);
        } else if (std::string(copy->data()["value"]) != value) {
          const auto change = copy->edit();
          change.data().set("value", value);
          context.patch(change);
        }
        return controller::Result{};
      });
  manager.run(p.stop());
}

/// Some users, a copier and a watcher; and the conditions at the end.
void live(sim::World& world, unsigned servers) {
  auto watcher = std::make_shared<test::Watcher>();
  world.start("watcher", [&world, watcher](sim::Process& p) { test::watch(world, p, *watcher); });
  world.start("copier", run_copier);
  const auto user = std::make_shared<User>(world);
  for (int i = 0; i < 90; ++i) {
    const std::string name = "map-" + std::to_string(i * 7 % 10);
    const std::string value = i % 4 == 3 ? "" : std::to_string(i);
    world.at(1s + i * 700ms, [user, servers, i, name, value] {
      user->want(static_cast<unsigned>(i) % servers, name, value);
    });
  }
  // After the user's last retries.
  for (int i = 0; i < 10; ++i) {
    const std::string name = "map-" + std::to_string(i);
    const std::string value = i % 3 == 0 ? "" : "last";
    world.at(110s + i * 50ms, [user, name, value] { user->want(0, name, value); });
  }
  world.eventually("the servers say what etcd has, from their caches and without them",
                   [&world, servers] {
                     const Versions there = stored(world);
                     for (unsigned i = 0; i < servers; ++i) {
                       if (listed(world, i, "") != there) return false;
                       if (listed(world, i, "0") != there) return false;
                     }
                     return true;
                   });
  world.eventually("the informer's cache and what it told are what etcd has", [&world, watcher] {
    const Versions there = stored(world);
    const std::lock_guard lock(watcher->mutex);
    const std::lock_guard heard(watcher->heard->mutex);
    return watcher->cached == there && watcher->heard->state == there;
  });
  world.run(70s);
}

sim::ExploreOptions faults() {
  sim::ExploreOptions out;
  out.seeds = test::kSanitized ? 1 : 3;
  out.world.etcd = true;
  out.world.settle = 60s;
  out.world.rest = 30s;
  out.faults.per_request = 0.05;
  out.faults.per_minute = 3;
  return out;
}

LOOKOUT_SIM_TEST(EtcdWorlds, EveryClientEndsInTheStateOfEtcd, faults()) { live(world, 1); }

sim::ExploreOptions replicas() {
  sim::ExploreOptions out = faults();
  out.world.servers = 2;
  return out;
}

LOOKOUT_SIM_TEST(EtcdWorlds, ReplicasOfTheServerThatLagAgreeInTheEnd, replicas()) {
  live(world, 2);
}

/// Storages with and without caches, below all servers: watchers receive each acknowledged change,
/// once and in order.
void follow(sim::World& world) {
  namespace storage = apiserver::storage;
  const auto reach = [&world](bool cache, int first) {
    const auto model = world.impl().etcd()->shared_from_this();
    storage::EtcdOptions out;
    out.endpoints = model->endpoints();
    std::rotate(out.endpoints.begin(), out.endpoints.begin() + first, out.endpoints.end());
    out.network = model;
    out.prefix = "/followed";
    out.watch_cache = cache;
    out.request_timeout = 3s;
    out.compaction_interval = 0ms;
    return out;
  };
  storage::EtcdBackend writing(reach(true, 0));
  storage::EtcdBackend cached(reach(true, 1));
  storage::EtcdBackend direct(reach(false, 2));
  std::vector<std::unique_ptr<storage::Follower>> followers;
  for (storage::EtcdBackend* backend : {&writing, &cached, &direct})
    followers.push_back(std::make_unique<storage::Follower>(backend->resource("pods")));
  std::vector<std::unique_ptr<storage::Writer>> writers;
  writers.reserve(2);
  for (int i = 0; i < 2; ++i)
    writers.push_back(std::make_unique<storage::Writer>(writing.resource("pods"), i, 300ms));
  world.at(60s, [&writers] {
    for (auto& writer : writers) writer->stop();
  });
  world.eventually("all who follow have the state, and have been told what led to it", [&] {
    std::map<std::string, storage::Revision> present;
    for (const auto& [key, kv] : world.impl().etcd()->contents("/followed/pods/"))
      present.emplace(key.substr(key.find("n/w")), kv.mod_revision);
    std::map<storage::Revision, std::string> acknowledged;
    for (const auto& writer : writers) acknowledged.merge(writer->acknowledged());
    for (const auto& follower : followers) {
      if (!follower->wrong().empty()) throw Error(follower->wrong());
      if (follower->state() != present) throw Error("another state");
      const std::size_t missed = storage::missed(*follower, acknowledged);
      if (missed > 0) throw Error(std::to_string(missed) + " were not told");
    }
    return acknowledged.size() > 20;
  });
  world.run(50s);
}

sim::ExploreOptions etcd_alone() {
  sim::ExploreOptions out = faults();
  out.faults.per_minute = 6;
  out.faults.per_request = 0.03;
  out.stable = false;
  return out;
}

LOOKOUT_SIM_TEST(EtcdWorlds, WatchersGetEachChangeOnceAndInOrder, etcd_alone()) { follow(world); }

/// Every other watch breaks, and often etcd compacts the history that the watch missed, up to its
/// last revision or further. These faults fit watches only; other requests have no faults.
sim::ExploreOptions forgetful_etcd() {
  using enum sim::FaultKind;
  sim::ExploreOptions out = etcd_alone();
  out.faults = sim::only({kCutStream, kStallStream, kExpireWatch, kCrash, kCompact});
  out.faults.per_request = 0.5;
  out.faults.per_minute = 6;
  // Seed 77: a deletion at the compacted revision, right after the last event that a watch
  // delivered.
  out.first_seed = 77;
  return out;
}

LOOKOUT_SIM_TEST(EtcdWorlds, WatchersContinueAfterCompaction, forgetful_etcd()) { follow(world); }

}  // namespace
}  // namespace lookout
