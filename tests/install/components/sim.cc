// A simulated world: an hour in it passes in no real time, and waits in Lookout's libraries use its
// clock.
#include <lookout/k8s/core/v1_draft.h>
#include <lookout/testing/sim/explore.h>

#include <chrono>
#include <cstdio>
#include <thread>

int main() {
  using namespace lookout;
  using k8s::core::v1::ConfigMap;
  const auto begin = std::chrono::steady_clock::now();
  sim::ExploreOptions options;
  options.seeds = 2;
  const auto outcome = sim::explore(
      "Consumer",
      [](sim::World& world) {
        world.start("writer", [](sim::Process& process) {
          const auto maps = process.client().resource<ConfigMap>("default");
          for (int i = 0; !process.stop().stop_requested(); ++i) {
            std::this_thread::sleep_for(std::chrono::minutes(1));
            if (!maps.find("made")) maps.create(ConfigMap::draft("made", "default"));
          }
        });
        world.eventually("it is made", [&] {
          return static_cast<bool>(world.admin().resource<ConfigMap>("default").find("made"));
        });
        world.run(std::chrono::hours(1));
      },
      options);
  const bool jumped = std::chrono::steady_clock::now() - begin < std::chrono::minutes(30);
  std::printf("worlds: %s\n%s", outcome.passed && jumped ? "ok" : "FAILED", outcome.report.c_str());
  return outcome.passed && jumped && outcome.simulated > std::chrono::hours(1) ? 0 : 1;
}
