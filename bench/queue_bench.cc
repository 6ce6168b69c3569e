// Work queues, and choosing an instance in the registry.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "lookout/registry/balancer.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/tools/workqueue/delaying_queue.h"
#include "lookout/tools/workqueue/queue.h"

// NOLINTBEGIN(readability-identifier-naming): a benchmark is called as its function.

namespace lookout {
namespace {

/// 100 keys, each added, taken and done.
void Queue(benchmark::State& state) {
  std::vector<std::string> keys;
  keys.reserve(100);
  for (int i = 0; i < 100; ++i) keys.push_back(fmt::format("key-{}", i));
  for (auto _ : state) {
    workqueue::Queue<std::string> queue;
    for (const auto& key : keys) {
      queue.add(key);
      const auto got = queue.get();
      queue.done(*got);
    }
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(Queue);

void DelayingQueue_AddAfter(benchmark::State& state) {
  workqueue::DelayingQueueOptions<std::string> options;
  options.clock = std::make_shared<test::FakeClock>();
  workqueue::DelayingQueue<std::string> queue(std::move(options));
  std::srand(1);
  std::int64_t n = 0;
  for (auto _ : state) {
    queue.add_after(std::to_string(n++),
                    std::chrono::milliseconds(1 + std::rand() % (10 * 60 * 1000)));
  }
}
BENCHMARK(DelayingQueue_AddAfter);

/// A service with some instances that never change.
class FixedDiscovery : public registry::Discovery {
 public:
  FixedDiscovery() {
    std::vector<registry::InstancePtr> instances;
    for (int i = 0; i < 100; ++i) {
      registry::ServiceInstance instance;
      instance.id = std::to_string(i);
      instance.name = "web";
      instance.zone = fmt::format("zone-{}", i % 3);
      instance.endpoints = {"http://10.0.0.1:80"};
      instance.metadata["weight"] = std::to_string(1 + i % 4);
      instances.push_back(std::make_shared<const registry::ServiceInstance>(std::move(instance)));
    }
    set_ = registry::InstanceSet::make("web", 1, std::move(instances));
  }
  using Discovery::get_service;
  using Discovery::services;
  registry::InstanceSetPtr get_service(const std::string&, registry::WaitOptions) override {
    return set_;
  }
  registry::InstanceSetPtr latest(const std::string&) override { return set_; }
  registry::Watcher watch(const std::string&) override { throw InvalidArgument("not here"); }
  registry::Subscription subscribe(const std::string&, registry::SetCallback callback) override {
    callback(set_);
    return registry::Subscription(std::make_unique<Nothing>());
  }
  std::vector<std::string> services(registry::WaitOptions) override { return {"web"}; }
  registry::Freshness freshness() const override { return {true, {}}; }
  void close() override {}

 private:
  struct Nothing : registry::Subscription::Backend {
    void cancel() override {}
  };
  registry::InstanceSetPtr set_;
};

void RegistryPick(benchmark::State& state, const registry::BalancerPolicy& policy) {
  static FixedDiscovery discovery;
  static std::unique_ptr<registry::Balancer> balancer;
  if (state.thread_index() == 0)
    balancer = std::make_unique<registry::Balancer>(discovery, "web", policy);
  for (auto _ : state) benchmark::DoNotOptimize(balancer->pick()->id.size());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(RegistryPick, round_robin, registry::BalancerPolicy::round_robin())
    ->Threads(1)
    ->Threads(2);
BENCHMARK_CAPTURE(RegistryPick, weighted, registry::BalancerPolicy::weighted());
BENCHMARK_CAPTURE(RegistryPick, zones, registry::BalancerPolicy::zones());

}  // namespace
}  // namespace lookout

// NOLINTEND(readability-identifier-naming)
