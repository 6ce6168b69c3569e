// The store, listers and handler queues. Names follow client-go's benchmarks where it has one.
#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <thread>

#include "bench/pods.h"
#include "informer/listener.h"
#include "lookout/api/core/v1.h"
#include "lookout/lister/lister.h"
#include "lookout/tools/cache/indexer.h"

namespace lookout {
namespace {

std::shared_ptr<cache::Indexer> filled_store(std::size_t count) {
  auto store = std::make_shared<cache::Indexer>(
      cache::Indexers{{std::string(cache::kNamespaceIndex), cache::index_by_namespace}});
  store->replace(bench::pods(count), "1");
  return store;
}

void BM_StoreUpdate(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto store = filled_store(count);
  const auto& pods = bench::pods(count);
  std::size_t i = 0;
  for (auto _ : state) store->update(pods[i++ * 7919 % count]);
}
BENCHMARK(BM_StoreUpdate)->Arg(1000)->Arg(20000);

void BM_StoreGet(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto store = filled_store(count);
  const auto& pods = bench::pods(count);
  std::size_t i = 0;
  for (auto _ : state) {
    const api::Object& pod = pods[i++ * 7919 % count];
    benchmark::DoNotOptimize(store->get(pod.ns(), pod.name()).header());
  }
}
BENCHMARK(BM_StoreGet)->Arg(1000)->Arg(20000)->Threads(1)->Threads(2);

void BM_StoreSnapshot(benchmark::State& state) {
  const auto store = filled_store(1000);
  for (auto _ : state) benchmark::DoNotOptimize(store->snapshot().size());
}
BENCHMARK(BM_StoreSnapshot);

void BM_Lister_Match(benchmark::State& state) {
  const auto store = filled_store(20000);
  const lister::Lister<core::v1::Pod> lister(store, api::Resource(core::v1::Pod::kResource));
  const auto selector = api::labels::parse("pod-template-hash=9e3779b1");  // few match
  for (auto _ : state) benchmark::DoNotOptimize(lister.list(selector).size());
  state.SetItemsProcessed(state.iterations() * 20000);
}
BENCHMARK(BM_Lister_Match)->Unit(benchmark::kMicrosecond);

void BM_Indexer(benchmark::State& state) {
  const auto store = filled_store(20000);
  for (auto _ : state) {
    std::size_t n = 0;
    const auto now = store->snapshot();
    for (const auto& object : now.by_index(cache::kNamespaceIndex, "ns-7"))
      if (object) ++n;
    benchmark::DoNotOptimize(n);
  }
}
BENCHMARK(BM_Indexer);

/// One notification through a handler's queue, as the informer hands them over: in batches.
void BM_Listener(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const auto loop = std::make_shared<rest::EventLoop>(1);
  const auto pool = std::make_shared<informer::HandlerPool>(loop);
  std::atomic<std::int64_t> handled{0};
  informer::EventHandler<api::Object> handler;
  handler.on_add = [&](const api::Object&, bool) {
    handled.fetch_add(1, std::memory_order_relaxed);
  };
  const auto listener = std::make_shared<informer::detail::Listener>(
      handler, pool, std::chrono::milliseconds(0), false);
  std::vector<cache::Notification> notifications(batch);
  for (auto& notification : notifications) notification.object = bench::pods(1)[0];
  std::int64_t pushed = 0;
  for (auto _ : state) {
    listener->push(notifications);
    pushed += static_cast<std::int64_t>(batch);
    // Not more than a handler would be behind.
    while (pushed - handled.load(std::memory_order_relaxed) > 100000) std::this_thread::yield();
  }
  while (handled.load() < pushed) std::this_thread::yield();
  state.SetItemsProcessed(pushed);
  listener->close();
}
BENCHMARK(BM_Listener)->Arg(1)->Arg(16)->UseRealTime();

}  // namespace
}  // namespace lookout
