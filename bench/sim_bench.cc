// The simulated cluster time per second. docs/performance.md has the figures.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>

#include "lookout/controller/builder.h"
#include "lookout/controller/manager.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/testing/sim/world.h"

namespace {

using namespace std::chrono_literals;
using namespace lookout;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::Secret;

/// Creates a Secret for each ConfigMap.
void run_controller(sim::Process& process) {
  controller::ManagerOptions options;
  options.leader_election = controller::LeaderElection{
      .name = "bench", .ns = "default", .identity = "life-" + std::to_string(process.life())};
  controller::Manager manager(process.client(), options);
  controller::Builder<ConfigMap>(manager).owns<Secret>().reconcile(
      [](const controller::Request& request, controller::Context& context) {
        if (!context.find<ConfigMap>(request)) return controller::Result{};
        context.create_or_update<Secret>(
            request, [&](const k8s::core::v1::SecretDraft& draft) { draft.set_type("Opaque"); });
        return controller::Result{};
      });
  manager.run(process.stop());
}

/// One controller with election and some objects under faults.
void simulate(std::uint64_t seed, int objects, std::chrono::milliseconds duration) {
  sim::World world(seed);
  world.faults(sim::all_faults());
  world.start("controller", run_controller);
  const auto maps = world.admin().resource<ConfigMap>("default");
  for (int i = 0; i < objects; ++i) {
    world.at(duration * i / objects,
             [maps, i] { maps.create(ConfigMap::draft("map-" + std::to_string(i), "default")); });
  }
  world.run(duration);
}

void BM_AnHourOfAController(benchmark::State& state) {
  std::uint64_t seed = 1;
  for (auto _ : state) simulate(seed++, 50, 1h);
}
BENCHMARK(BM_AnHourOfAController)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_AShortWorld(benchmark::State& state) {
  std::uint64_t seed = 1;
  for (auto _ : state) {
    sim::World world(seed++);
    world.faults(sim::all_faults());
    world.start("controller", run_controller);
    world.sleep(30s);
  }
}
BENCHMARK(BM_AShortWorld)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
