// The cost of a pick, alone and with its report, beside kratos' algorithm.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lookout/registry/balancer.h"

// NOLINTBEGIN(readability-identifier-naming): a benchmark is called as its function.

namespace {

using namespace lookout;
using namespace std::chrono_literals;
using registry::Balancer;
using registry::BalancerPolicy;

/// A set that does not change.
class FixedDiscovery : public registry::Discovery {
 public:
  explicit FixedDiscovery(int instances) {
    std::vector<registry::InstancePtr> all;
    for (int i = 0; i < instances; ++i) {
      registry::ServiceInstance instance;
      instance.id = fmt::format("web-{}", i);
      instance.version = i % 10 == 0 ? "v2" : "v1";
      instance.zone = i % 2 == 0 ? "a" : "b";
      instance.origin = fmt::format("shop/web-{}", i);
      instance.endpoints = {fmt::format("http://10.0.0.{}:80", i % 250 + 1)};
      instance.metadata["weight"] = std::to_string(1 + i % 4);
      all.push_back(std::make_shared<const registry::ServiceInstance>(std::move(instance)));
    }
    set_ = registry::InstanceSet::make("web", 1, std::move(all));
  }
  using Discovery::get_service;
  using Discovery::services;
  registry::InstanceSetPtr get_service(const std::string&, registry::WaitOptions) override {
    return set_;
  }
  registry::InstanceSetPtr latest(const std::string&) override { return set_; }
  registry::Watcher watch(const std::string&) override { throw InvalidArgument("no watchers"); }
  registry::Subscription subscribe(const std::string&, registry::SetCallback) override {
    return {};
  }
  std::vector<std::string> services(registry::WaitOptions) override { return {"web"}; }
  registry::Freshness freshness() const override { return {true, {}}; }
  void close() override {}

 private:
  registry::InstanceSetPtr set_;
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
      // All of it.
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
  static FixedDiscovery discovery(100);
  const Balancer balancer(discovery, "web", policy_of(static_cast<int>(state.range(0))));
  for (auto _ : state) {
    const registry::Pick pick = balancer.pick({.scheme = "http"});
    benchmark::DoNotOptimize(&pick);
  }
  state.SetLabel(kNames[state.range(0)]);
}
BENCHMARK(RegistryPick)->DenseRange(0, 5);

void RegistryPickAndReport(benchmark::State& state) {
  static FixedDiscovery discovery(100);
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
  static FixedDiscovery discovery(100);
  static const Balancer balancer(discovery, "web", policy_of(5));
  for (auto _ : state) {
    const registry::Pick pick = balancer.pick({.scheme = "http"});
    pick.report(registry::Outcome::kOk, 1ms);
  }
}
BENCHMARK(RegistryPickShared)->Threads(2);

void RegistryCall(benchmark::State& state) {
  static FixedDiscovery discovery(100);
  const Balancer balancer(discovery, "web", policy_of(5));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        balancer.call({.scheme = "http"}, [](const registry::Endpoint& e) { return e.port(); }));
  }
}
BENCHMARK(RegistryCall);

/// kratos' selector/p2c with selector/node/ewma as it works, written anew: a lock around the random
/// numbers, atomic averages, a list of calls in flight left out.
class KratosP2c {
 public:
  explicit KratosP2c(int nodes) : nodes_(static_cast<std::size_t>(nodes)) {}

  struct Node {
    std::atomic<std::int64_t> lag{0};
    std::atomic<std::uint64_t> success{1000};
    std::atomic<std::int64_t> in_flight{1};
    std::atomic<std::int64_t> stamp{0};
    std::atomic<std::int64_t> last_pick{0};

    double weight() const {
      const auto lag_now = static_cast<double>(lag.load());
      const auto calls = static_cast<double>(in_flight.load());
      const double load = lag_now == 0 ? 100e3 * calls : std::sqrt(lag_now + 5e6) * calls;
      return static_cast<double>(success.load()) * 1e9 / load;
    }
  };

  Node& pick() {
    std::size_t a = 0;
    std::size_t b = 0;
    {
      const std::lock_guard lock(mutex_);
      a = random_() % nodes_.size();
      b = random_() % (nodes_.size() - 1);
    }
    if (b >= a) ++b;
    Node* chosen = &nodes_[a];
    Node* other = &nodes_[b];
    if (other->weight() > chosen->weight()) std::swap(chosen, other);
    const std::int64_t now = nanos();
    if (now - other->last_pick.load() > 3'000'000'000) chosen = other;
    chosen->last_pick = now;
    chosen->in_flight.fetch_add(1);
    return *chosen;
  }
  static void done(Node& node, bool ok, std::int64_t lag) {
    node.in_flight.fetch_sub(1);
    const std::int64_t now = nanos();
    const std::int64_t passed = now - node.stamp.exchange(now);
    const double keep = std::exp(-static_cast<double>(passed) / 600e6);
    const auto average = [keep](double old, double fresh) {
      return old * keep + fresh * (1 - keep);
    };
    node.lag = static_cast<std::int64_t>(
        average(static_cast<double>(node.lag.load()), static_cast<double>(lag)));
    node.success = static_cast<std::uint64_t>(
        average(static_cast<double>(node.success.load()), ok ? 1000 : 0));
  }

 private:
  static std::int64_t nanos() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
  }
  std::mutex mutex_;
  std::mt19937_64 random_{1};
  std::vector<Node> nodes_;
};

void RegistryKratosAlgorithm(benchmark::State& state) {
  KratosP2c selector(100);
  for (auto _ : state) KratosP2c::done(selector.pick(), true, 1'000'000);
}
BENCHMARK(RegistryKratosAlgorithm);

}  // namespace

// NOLINTEND(readability-identifier-naming)
