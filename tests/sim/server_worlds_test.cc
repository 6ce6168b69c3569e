// The API server's own controllers, on an etcd with all faults: in the end, all objects that must
// be deleted are deleted, and no others; and none is deleted before its dependencies.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lookout/k8s/core/v1_draft.h"
#include "lookout/testing/sim/gtest.h"
#include "testing/sim/world_impl.h"
#include "tests/sim/worlds.h"

namespace lookout {
namespace {

using k8s::core::v1::Namespace;
using k8s::core::v1::PersistentVolumeClaim;
using rest::PropagationPolicy;

/// A user's action: not before a time of the world, and not before a pause after the last step.
struct Step {
  std::chrono::milliseconds earliest;
  std::function<void()> function;
  std::chrono::milliseconds pause{0};
};

/// Retries each step until it succeeds: a response may be lost, and etcd may be down.
void take_steps(sim::World& world, std::vector<Step> steps) {
  if (steps.empty()) return;
  const auto now = std::chrono::ceil<std::chrono::milliseconds>(world.now());
  const auto when = std::max(steps.front().earliest, now + steps.front().pause);
  world.at(when, [&world, steps = std::move(steps)]() mutable {
    try {
      steps.front().function();
      steps.erase(steps.begin());
    } catch (const Error&) {
      steps.front().pause = 500ms;
    }
    take_steps(world, std::move(steps));
  });
}

/// True if etcd has the key, such as "configmaps/default/web".
bool is_there(sim::World& world, const std::string& key) {
  return world.impl().etcd()->contents("/registry/" + key).contains("/registry/" + key);
}

std::string owner_name(int i) { return "owner-" + std::to_string(i); }
std::string dependent_name(int i, int j) {
  return "dependent-" + std::to_string(i) + "-" + std::to_string(j);
}

/// The object, which is created if absent.
template <class T, class Draft>
T made(const rest::TypedClient<T>& client, const Draft& draft, const std::string& name) {
  if (const T found = client.find(name)) return found;
  return client.create(draft);
}

constexpr int kDependents = 3;

/// An owner with dependents. The first of them is deleted only when a user removes its finalizer.
void make_family(sim::World& world, int i) {
  const auto maps = world.admin().resource<ConfigMap>("default");
  const ConfigMap owner = made(maps, ConfigMap::draft(owner_name(i), "default"), owner_name(i));
  for (int j = 0; j < kDependents; ++j) {
    const auto draft = ConfigMap::draft(dependent_name(i, j), "default");
    draft.metadata()
        .owner_references()
        .append(owner.uid())
        .set_api_version("v1")
        .set_kind("ConfigMap")
        .set_name(owner.name())
        .set_block_owner_deletion(true);
    if (j == 0) draft.metadata().finalizers().append("example.com/slow");
    made(maps, draft, dependent_name(i, j));
  }
}

void let_go(sim::World& world, int i) {
  const auto maps = world.admin().resource<ConfigMap>("default");
  const ConfigMap found = maps.find(dependent_name(i, 0));
  if (!found || found.metadata().finalizers().empty()) return;
  const auto change = found.edit();
  change.metadata().clear_finalizers();
  maps.patch(change);
}

void remove_owner(sim::World& world, int i, PropagationPolicy policy) {
  const auto maps = world.admin().resource<ConfigMap>("default");
  const ConfigMap found = maps.find(owner_name(i));
  if (found && !found.metadata().deletion_timestamp())
    maps.remove(owner_name(i), {.propagation_policy = policy});
}

/// A PersistentVolumeClaim, and a pod that uses it.
void make_claim(sim::World& world) {
  const auto draft = PersistentVolumeClaim::draft("data", "default");
  draft.spec().access_modes().append("ReadWriteOnce");
  draft.spec().resources().requests().set("storage", "1Gi");
  made(world.admin().resource<PersistentVolumeClaim>("default"), draft, "data");
  const auto pod = Pod::draft("user", "default");
  pod.spec().set_node_name("node-1").containers().append("main").set_image("main:1");
  pod.spec().volumes().append("data").persistent_volume_claim().set_claim_name("data");
  made(world.admin().resource<Pod>("default"), pod, "user");
}

template <class T>
void remove_if_there(sim::World& world, const std::string& ns, const std::string& name,
                     const rest::DeleteOptions& options = {}) {
  const auto client = world.admin().resource<T>(ns);
  const T found = client.find(name);
  if (found && !found.metadata().deletion_timestamp()) client.remove(name, options);
}

/// A pod with a grace period of a second.
void make_worker(sim::World& world) {
  const auto pod = Pod::draft("worker", "default");
  pod.spec().set_node_name("node-1").containers().append("main").set_image("main:1");
  made(world.admin().resource<Pod>("default"), pod, "worker");
}

/// A namespace that is deleted, and recreated afterwards.
void rebuild(sim::World& world) {
  const auto namespaces = world.admin().resource<Namespace>();
  const auto first = std::make_shared<std::string>();  // its uid
  const auto make = [=, &world] {
    *first = made(namespaces, Namespace::draft("mall"), "mall").uid();
    made(world.admin().resource<ConfigMap>("mall"), ConfigMap::draft("old", "mall"), "old");
  };
  const auto make_again = [=, &world] {
    const Namespace found = namespaces.find("mall");
    if (found && found.uid() == *first) throw Error("it is there still");
    made(namespaces, Namespace::draft("mall"), "mall");
    made(world.admin().resource<ConfigMap>("mall"), ConfigMap::draft("new", "mall"), "new");
  };
  take_steps(world, {{3s, make},
                     {90s, [&world] { remove_if_there<Namespace>(world, "", "mall"); }},
                     {90s, make_again}});
}

constexpr PropagationPolicy kPolicies[] = {
    PropagationPolicy::kForeground, PropagationPolicy::kBackground, PropagationPolicy::kOrphan};

bool orphans(int i) { return kPolicies[i % 3] == PropagationPolicy::kOrphan; }

void users(sim::World& world) {
  // Until every cache contains them, the server cannot know the dependents.
  constexpr auto kSeen = 60s;
  for (int i = 0; i < 6; ++i) {
    take_steps(world,
               {{1s + i * 2s, [&world, i] { make_family(world, i); }},
                {80s + i * 2s, [&world, i] { remove_owner(world, i, kPolicies[i % 3]); }, kSeen},
                {100s + i * 2s, [&world, i] { let_go(world, i); }}});
  }
  take_steps(world,
             {{2s, [&world] { make_claim(world); }},
              {80s, [&world] { remove_if_there<PersistentVolumeClaim>(world, "default", "data"); }},
              {105s, [&world] {
                 remove_if_there<Pod>(world, "default", "user", {.grace_period_seconds = 0});
               }}});
  const auto end_worker = [&world] {
    remove_if_there<Pod>(world, "default", "worker", {.grace_period_seconds = 1});
  };
  take_steps(world, {{2s, [&world] { make_worker(world); }}, {85s, end_worker}});
  const auto make_shop = [&world] {
    made(world.admin().resource<Namespace>(), Namespace::draft("shop"), "shop");
    made(world.admin().resource<ConfigMap>("shop"), ConfigMap::draft("stock", "shop"), "stock");
  };
  take_steps(world,
             {{3s, make_shop}, {90s, [&world] { remove_if_there<Namespace>(world, "", "shop"); }}});
  rebuild(world);
}

/// Reads etcd directly.
void check_order(sim::World& world) {
  for (int i = 0; i < 6; ++i) {
    const bool owner = is_there(world, "configmaps/default/" + owner_name(i));
    if (kPolicies[i % 3] != PropagationPolicy::kForeground || owner || world.now() < 80s) continue;
    for (int j = 0; j < kDependents; ++j) {
      if (is_there(world, "configmaps/default/" + dependent_name(i, j)))
        world.fail(owner_name(i) + " is gone before " + dependent_name(i, j));
    }
  }
  if (world.now() > 80s && is_there(world, "pods/default/user") &&
      !is_there(world, "persistentvolumeclaims/default/data"))
    world.fail("the claim is gone before the pod that uses it");
  if (world.now() > 90s && !is_there(world, "namespaces/shop") &&
      is_there(world, "configmaps/shop/stock"))
    world.fail("the namespace is gone before what is in it");
}

bool is_as_it_should_be(sim::World& world) {
  for (int i = 0; i < 6; ++i) {
    if (is_there(world, "configmaps/default/" + owner_name(i)))
      throw Error(owner_name(i) + " is still there");
    for (int j = 0; j < kDependents; ++j) {
      const std::string name = dependent_name(i, j);
      if (is_there(world, "configmaps/default/" + name) != orphans(i))
        throw Error(name + (orphans(i) ? " is gone" : " is still there"));
      if (!orphans(i)) continue;
      const auto found = world.admin().resource<ConfigMap>("default").get(name);
      if (!found.metadata().owner_references().empty()) throw Error(name + " has an owner");
    }
  }
  for (const char* there : {"namespaces/mall", "configmaps/mall/new"}) {
    if (!is_there(world, there)) throw Error(std::string(there) + " is gone");
  }
  if (is_there(world, "pods/default/worker")) throw Error("the worker is still there");
  return !is_there(world, "configmaps/mall/old") &&
         !is_there(world, "persistentvolumeclaims/default/data") &&
         !is_there(world, "namespaces/shop") && !is_there(world, "configmaps/shop/stock");
}

sim::ExploreOptions faults() {
  sim::ExploreOptions out;
  out.seeds = test::kSanitized ? 1 : 3;
  out.world.etcd = true;
  out.world.servers = 2;
  out.world.settle = 2min;
  out.faults.per_request = 0.05;
  out.faults.per_minute = 6;
  return out;
}

LOOKOUT_SIM_TEST(ServerWorlds, DeletesEverythingInOrder, faults()) {
  users(world);
  test::every(world, 100ms, 4min, [&world] { check_order(world); });
  world.eventually("what had to go is gone, and nothing else",
                   [&world] { return is_as_it_should_be(world); });
  world.run(2min);
}

}  // namespace
}  // namespace lookout
