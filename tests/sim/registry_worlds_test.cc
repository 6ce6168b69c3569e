// The registry: services register, crash and leave; in the end a caller's view equals the cluster.
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "lookout/k8s/core/v1_draft.h"
#include "lookout/registry/app.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/kratos/registry.h"
#include "lookout/testing/sim/gtest.h"
#include "tests/sim/worlds.h"

namespace lookout {
namespace {

/// The caller's view.
struct View {
  std::mutex mutex;
  std::set<std::string> instances;

  void set(std::set<std::string> to) {
    const std::lock_guard lock(mutex);
    instances = std::move(to);
  }
  std::set<std::string> get() {
    const std::lock_guard lock(mutex);
    return instances;
  }
};

std::string pod_name(int i) { return "web-" + std::to_string(i); }

/// Creates a running and ready pod, as the kubelet would report it.
void begin_pod(sim::World& world, const std::string& name) {
  const auto pods = world.admin().resource<Pod>("default");
  if (pods.find(name)) return;
  const auto draft = Pod::draft(name, "default");
  const auto container = draft.spec().containers().append("web");
  container.set_image("web:1");
  container.ports().append(80);
  pods.create(draft);
  const auto change = pods.get(name).edit();
  change.status().set_phase("Running").set_pod_ip("10.1.0." + name.substr(4));
  change.status().conditions().append("Ready").set_status("True");
  pods.patch_status(change);
}

/// The service web, in a pod with the name of the process.
registry::AppOptions web_options(const sim::Process& p) {
  registry::AppOptions options;
  options.name = "web";
  options.endpoints = {"http://0.0.0.0:80"};
  options.pod = {.ns = "default", .name = p.name()};
  options.signals = false;
  return options;
}

void run_service(sim::Process& p) {
  registry::App app(p.client(), web_options(p));
  const std::stop_callback on_stop(p.stop(), [&app] { app.stop(); });
  app.run([](std::stop_token stop) { test::wait_for_stop(stop); });
}

void watch(sim::Process& p, View& view) {
  registry::kratos::Registry registry(p.client(), {.namespaces = {"default"}});
  registry::Watcher watcher = registry.watch("web");
  while (const auto next = watcher.next(p.stop())) {
    std::set<std::string> now;
    for (const auto& instance : *next) now.insert(instance.origin);
    view.set(std::move(now));
  }
}

/// The pods that announce the service.
std::set<std::string> announced(sim::World& world) {
  std::set<std::string> out;
  for (const Pod& pod : world.admin().resource<Pod>("default").list().items) {
    if (pod.labels()["kratos-service-app"].as_string() == "web")
      out.insert("default/" + std::string(pod.name()));
  }
  return out;
}

sim::ExploreOptions faults() {
  sim::ExploreOptions out = test::with_reflectors();
  out.stable = false;
  out.world.rest = 30s;
  out.faults.per_request = 0.1;
  return out;
}

/// Deletes one pod after the other with its process, `times` times, and recreates it with the same
/// name.
void replace_pods(sim::World& world, int pods, int times) {
  auto view = std::make_shared<View>();
  for (int i = 0; i < pods; ++i) {
    begin_pod(world, pod_name(i));
    world.start(pod_name(i), run_service);
  }
  world.start("caller", [view](sim::Process& p) { watch(p, *view); });
  for (int i = 0; i < times; ++i) {
    const std::string name = pod_name(i % pods);
    world.at(10s + i * 12s, [&world, name] {
      world.crash(name);
      world.admin().resource<Pod>("default").remove(name, {.grace_period_seconds = 0});
    });
    world.at(12s + i * 12s, [&world, name] { begin_pod(world, name); });
  }
  world.eventually("all services are announced", [&world, pods] {
    return announced(world).size() == static_cast<std::size_t>(pods);
  });
  world.eventually("the caller sees what is announced", [&world, view] {
    // (Separate statements: the order of evaluation of == is unspecified, and both sides take steps
    // of the world.)
    const std::set<std::string> there = announced(world);
    return view->get() == there;
  });
  world.run(24s + times * 12s);
}

LOOKOUT_SIM_TEST(RegistryWorlds, ACallersViewEndsAsTheClusterIs, faults()) {
  replace_pods(world, 4, 8);
}

LOOKOUT_SIM_TEST(ShortRegistryWorlds, ACallersViewEndsAsTheClusterIs, test::shortened(faults())) {
  replace_pods(world, 1, 1);
}

/// The services that serve.
struct Serving {
  std::mutex mutex;
  std::set<std::string> pods;

  bool answers(const std::string& pod) {
    const std::lock_guard lock(mutex);
    return pods.contains(pod);
  }
};

/// Leaves when it is stopped: callers notice within a second or two.
void serve(sim::Process& p, Serving& serving) {
  registry::App app(p.client(), web_options(p));
  const std::stop_callback on_stop(p.stop(), [&app] { app.stop(); });
  app.run([&](const std::stop_token& stop) {
    const std::string pod = "default/" + p.name();
    {
      const std::lock_guard lock(serving.mutex);
      serving.pods.insert(pod);
    }
    test::wait_for_stop(stop);
    const std::lock_guard lock(serving.mutex);
    serving.pods.erase(pod);
  });
}

/// Calls periodically, and tries another service if one fails.
void call(sim::World& world, sim::Process& p, Serving& serving) {
  registry::kratos::Registry registry(p.client(), {.namespaces = {"default"}});
  const registry::Balancer web(registry, "web");
  if (!web.wait_for_instance(5min, p.stop())) return;
  const registry::CallPolicy policy{.attempts = 3, .deadline = 2s, .stop = p.stop()};
  while (!p.stop().stop_requested()) {
    try {
      web.call(policy, [&](const registry::Endpoint&, const registry::Attempt& attempt) {
        if (!serving.answers(attempt.instance->origin)) throw Error("nobody answers");
      });
    } catch (const registry::CallError& e) {
      if (e.reason() != registry::CallError::Reason::kStopped)
        world.fail(std::string("a call is not answered: ") + e.what());
    }
    std::this_thread::sleep_for(200ms);
  }
}

/// Faults without crashes of services.
sim::ExploreOptions unreliable_network() {
  using enum sim::FaultKind;
  sim::ExploreOptions out = faults();
  out.faults = sim::only({kLoseRequest, kLoseAnswer, kFailAfter, kRefuse, kDelay, kCutStream});
  out.faults.per_request = 0.1;
  return out;
}

LOOKOUT_SIM_TEST(RegistryWorlds, CallsAreAnsweredWhileServicesComeAndGo, unreliable_network()) {
  auto serving = std::make_shared<Serving>();
  const auto begin = [&world, serving](int i) {
    begin_pod(world, pod_name(i));
    world.start(pod_name(i), [serving](sim::Process& p) { serve(p, *serving); });
  };
  constexpr int kPods = 4;
  for (int i = 0; i < kPods; ++i) begin(i);
  world.start("caller", [&world, serving](sim::Process& p) { call(world, p, *serving); });
  // Replaces one after the other.
  for (int i = 0; i < 8; ++i) {
    world.at(10s + i * 12s, [begin, i] { begin(kPods + i); });
    world.at(15s + i * 12s, [&world, i] {
      world.stop(pod_name(i));
      world.admin().resource<Pod>("default").remove(pod_name(i), {.grace_period_seconds = 0});
    });
  }
  world.run(2min);
}

}  // namespace
}  // namespace lookout
