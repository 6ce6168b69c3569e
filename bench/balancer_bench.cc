// The cost of a pick, with and without its report, compared with kratos' algorithm.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cmd/bench/fleet/kratos_selector.h"
#include "lookout/registry/balancer.h"
#include "tests/registry/fixed_discovery.h"

// NOLINTBEGIN(readability-identifier-naming): benchmarks are named after their functions.

namespace {

using namespace lookout;
using namespace std::chrono_literals;
using cmd::bench::fleet::KratosNode;
using cmd::bench::fleet::KratosSelector;
using registry::Balancer;
using registry::BalancerPolicy;

std::vector<registry::ServiceInstance> hundred() {
  std::vector<registry::ServiceInstance> out;
  for (int i = 0; i < 100; ++i) {
    registry::ServiceInstance instance;
    instance.id = fmt::format("web-{}", i);
    instance.version = i % 10 == 0 ? "v2" : "v1";
    instance.zone = i % 2 == 0 ? "a" : "b";
    instance.origin = fmt::format("shop/web-{}", i);
    instance.endpoints = {fmt::format("http://10.0.0.{}:80", i + 1)};
    instance.metadata["weight"] = std::to_string(1 + i % 4);
    out.push_back(std::move(instance));
  }
  return out;
}

/// A set that does not change.
struct Hundred : registry::test::FixedDiscovery {
  Hundred() { publish(hundred()); }
};

BalancerPolicy policy_of(int number) {
  switch (number) {
    case 1:
      return registry::weighted();
    case 2:
      return registry::least_loaded();
    case 3:
      return registry::p2c_ewma();
    case 4:
      return registry::consistent_hash();
    case 5:
      // All features.
      return registry::p2c_ewma()
          .eject_after(3)
          .prefer_zone("a")
          .canary_version("v2", 0.05)
          .slow_start_for(10s)
          .keep_last_for(30s);
    default:
      return registry::round_robin();
  }
}
constexpr const char* kNames[] = {"round robin",  "weighted",        "least loaded",
                                  "p2c and ewma", "consistent hash", "all of it"};

void RegistryPick(benchmark::State& state) {
  static Hundred discovery;
  const Balancer balancer(discovery, "web", policy_of(static_cast<int>(state.range(0))));
  for (auto _ : state) {
    const registry::Pick pick = balancer.pick({.scheme = "http"});
    benchmark::DoNotOptimize(&pick);
  }
  state.SetLabel(kNames[state.range(0)]);
}
BENCHMARK(RegistryPick)->DenseRange(0, 5);

void RegistryPickAndReport(benchmark::State& state) {
  static Hundred discovery;
  const Balancer balancer(discovery, "web", policy_of(static_cast<int>(state.range(0))));
  for (auto _ : state) {
    const registry::Pick pick = balancer.pick({.scheme = "http"});
    pick.report(registry::Outcome::kOk, 1ms);
  }
  state.SetLabel(kNames[state.range(0)]);
}
BENCHMARK(RegistryPickAndReport)->DenseRange(0, 5);

/// Two threads, one balancer.
void RegistryPickShared(benchmark::State& state) {
  static Hundred discovery;
  static const Balancer balancer(discovery, "web", policy_of(5));
  for (auto _ : state) {
    const registry::Pick pick = balancer.pick({.scheme = "http"});
    pick.report(registry::Outcome::kOk, 1ms);
  }
}
BENCHMARK(RegistryPickShared)->Threads(2);

void RegistryCall(benchmark::State& state) {
  static Hundred discovery;
  const Balancer balancer(discovery, "web", policy_of(5));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        balancer.call({.scheme = "http"}, [](const registry::Endpoint& e) { return e.port(); }));
  }
}
BENCHMARK(RegistryCall);

/// A port of kratos' code for a pick and the end of its call.
void RegistryKratosAlgorithm(benchmark::State& state) {
  KratosSelector selector;
  std::vector<std::unique_ptr<KratosNode>> nodes;
  nodes.reserve(100);
  for (int i = 0; i < 100; ++i) nodes.push_back(std::make_unique<KratosNode>());
  for (auto _ : state) {
    KratosNode& node = *nodes[selector.pick(nodes)];
    node.end(node.begin(), true);
  }
}
BENCHMARK(RegistryKratosAlgorithm);

}  // namespace

// NOLINTEND(readability-identifier-naming)
