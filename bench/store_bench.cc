// Stores, indexes, selectors and listers. Names are those of client-go's benchmarks, if it has one.
#include <benchmark/benchmark.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "bench/objects.h"
#include "lookout/api/labels.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/lister/lister.h"
#include "lookout/tools/cache/delta_fifo.h"
#include "lookout/tools/cache/indexer.h"

// NOLINTBEGIN(readability-identifier-naming): benchmarks are named after their functions.

namespace lookout {
namespace {

/// Objects and a store of them, cached for each count.
struct Filled {
  std::vector<api::Object> objects;
  std::shared_ptr<cache::Indexer> store;

  static const Filled& of(std::size_t count) {
    static std::map<std::size_t, Filled> kept;
    auto& out = kept[count];
    if (!out.store) {
      out.objects = bench::bare_objects(count);
      out.store = bench::store_of(out.objects);
    }
    return out;
  }
  /// Consecutive numbers select objects that are not adjacent in the store.
  const api::Object& some(std::size_t i) const { return objects[i * 7919 % objects.size()]; }
};

std::size_t count_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

void sizes(benchmark::internal::Benchmark* b) { b->Arg(1000)->Arg(100'000)->Arg(1'000'000); }

// ------------------------------------------------------------------------------------ selectors

void SelectorParse(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(api::labels::parse("app in (web,api),tier=front,!canary"));
}
BENCHMARK(SelectorParse);

void SelectorMatch(benchmark::State& state) {
  const auto& pods = bench::pods(1000);
  const auto selector = api::labels::parse("app in (web,api),tier=front,!canary");
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(selector.matches(pods[i++ % pods.size()]));
}
BENCHMARK(SelectorMatch);

// ----------------------------------------------------------------------------------- the store

void StoreUpdate(benchmark::State& state) {
  const Filled& filled = Filled::of(count_of(state));
  std::size_t i = 0;
  for (auto _ : state) filled.store->update(filled.some(i++));
}
BENCHMARK(StoreUpdate)->Apply(sizes);

void StoreAddDelete(benchmark::State& state) {
  const Filled& filled = Filled::of(count_of(state));
  std::size_t i = 0;
  for (auto _ : state) {
    filled.store->remove(filled.some(i));
    filled.store->add(filled.some(i++));
  }
}
BENCHMARK(StoreAddDelete)->Apply(sizes);

void StoreReplace(benchmark::State& state) {
  const Filled& filled = Filled::of(count_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(bench::store_of(filled.objects)->size());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(StoreReplace)->Apply(sizes)->Unit(benchmark::kMillisecond);

void StoreGet(benchmark::State& state) {
  const Filled& filled = Filled::of(count_of(state));
  std::size_t i = static_cast<std::size_t>(state.thread_index()) * 1000;
  for (auto _ : state) {
    const api::Object& object = filled.some(i++);
    benchmark::DoNotOptimize(filled.store->get(object.ns(), object.name()).header());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(StoreGet)->Apply(sizes);

void StoreSnapshot(benchmark::State& state) {
  const Filled& filled = Filled::of(count_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(filled.store->snapshot().size());
}
BENCHMARK(StoreSnapshot)->Apply(sizes);

void StoreList(benchmark::State& state) {
  const Filled& filled = Filled::of(count_of(state));
  for (auto _ : state) {
    std::size_t n = 0;
    const auto now = filled.store->snapshot();
    for (const auto& object : now.objects()) n += object.header() != nullptr ? 1u : 0u;
    benchmark::DoNotOptimize(n);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(StoreList)->Apply(sizes)->Unit(benchmark::kMicrosecond);

void StoreByNamespace(benchmark::State& state) {
  const Filled& filled = Filled::of(count_of(state));
  std::size_t n = 0;
  for (auto _ : state) {
    const auto now = filled.store->snapshot();
    for (const auto& object : now.by_index(cache::kNamespaceIndex, "ns-7"))
      n += object.header() != nullptr ? 1u : 0u;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(n));
}
BENCHMARK(StoreByNamespace)->Apply(sizes)->Unit(benchmark::kMicrosecond);

/// Lookups on 1, 2 and 4 threads while another thread writes continuously.
void StoreGetBesideWriter(benchmark::State& state) {
  static std::atomic<bool> done;
  static std::thread writer;
  const Filled& filled = Filled::of(count_of(state));
  if (state.thread_index() == 0) {
    done = false;
    writer = std::thread([&filled] {
      for (std::size_t i = 0; !done.load(std::memory_order_relaxed); ++i)
        filled.store->update(filled.some(i));
    });
  }
  std::size_t i = static_cast<std::size_t>(state.thread_index()) * 1000;
  for (auto _ : state) {
    const api::Object& object = filled.some(i++);
    benchmark::DoNotOptimize(filled.store->get(object.ns(), object.name()).header());
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) {
    done = true;
    writer.join();
  }
}
BENCHMARK(StoreGetBesideWriter)->Arg(100'000)->Threads(1)->Threads(2)->Threads(4)->UseRealTime();

/// Like client-go's: updates of 5,000 objects, each with its own index value.
void Indexer(benchmark::State& state) {
  const auto objects = bench::bare_objects(5000);
  cache::Indexer store({{"testIndexer", [](const api::Object& object, cache::IndexValues& values) {
                           values.add(object.name());
                         }}});
  store.replace(objects, "1");
  std::size_t i = 0;
  for (auto _ : state) store.update(objects[i++ % objects.size()]);
}
BENCHMARK(Indexer);

// ------------------------------------------------------------------------------------- listers

void match(benchmark::State& state, std::size_t count, std::size_t matching,
           const api::labels::Selector& selector = api::labels::parse("match=true")) {
  const auto store = bench::store_of(bench::bare_objects(count, matching));
  const lister::Lister<k8s::core::v1::Pod> lister(store,
                                                  api::Resource(k8s::core::v1::Pod::kResource));
  std::size_t found = 0;
  for (auto _ : state) {
    found = 0;
    for (const auto& pod : lister.list(selector)) found += pod.header() != nullptr ? 1u : 0u;
    benchmark::DoNotOptimize(found);
  }
  if (found != matching) state.SkipWithError("other objects match");
}

void Lister_Match_1k_100(benchmark::State& state) { match(state, 1000, 100); }
void Lister_Match_10k_100(benchmark::State& state) { match(state, 10'000, 100); }
void Lister_Match_100k_100(benchmark::State& state) { match(state, 100'000, 100); }
void Lister_Match_1M_100(benchmark::State& state) { match(state, 1'000'000, 100); }
void Lister_Match_1M_0(benchmark::State& state) {
  match(state, 1'000'000, 0, api::labels::nothing());
}
BENCHMARK(Lister_Match_1k_100)->Unit(benchmark::kMicrosecond);
BENCHMARK(Lister_Match_10k_100)->Unit(benchmark::kMicrosecond);
BENCHMARK(Lister_Match_100k_100)->Unit(benchmark::kMicrosecond);
BENCHMARK(Lister_Match_1M_100)->Unit(benchmark::kMicrosecond);
BENCHMARK(Lister_Match_1M_0)->Unit(benchmark::kMicrosecond);

/// The same with an index of the label.
void Lister_MatchByIndex_100k_100(benchmark::State& state) {
  const auto store =
      bench::store_of(bench::bare_objects(100'000, 100), {cache::index_by_label("match")});
  const lister::Lister<k8s::core::v1::Pod> lister(store,
                                                  api::Resource(k8s::core::v1::Pod::kResource));
  const auto selector = api::labels::parse("match=true");
  for (auto _ : state) {
    std::size_t found = 0;
    for (const auto& pod : lister.list(selector)) found += pod.header() != nullptr ? 1u : 0u;
    benchmark::DoNotOptimize(found);
  }
}
BENCHMARK(Lister_MatchByIndex_100k_100)->Unit(benchmark::kMicrosecond);

/// The same with pods of 6 KB, a realistic size: 1 of 64 variants matches.
void Lister_Match_pods(benchmark::State& state) {
  const auto store = bench::store_of(bench::pods(count_of(state)));
  const lister::Lister<k8s::core::v1::Pod> lister(store,
                                                  api::Resource(k8s::core::v1::Pod::kResource));
  const auto selector = api::labels::parse("version=v3.5.7");
  for (auto _ : state) benchmark::DoNotOptimize(lister.list(selector).size());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Lister_Match_pods)->Arg(20'000)->Unit(benchmark::kMicrosecond);

// ----------------------------------------------------------------------------------- DeltaFIFO

/// Adds objects in batches and pops them.
void DeltaFifoAddPop(benchmark::State& state) {
  const auto objects = bench::bare_objects(1000);
  const cache::Indexer known;
  cache::DeltaFifo fifo(known);
  cache::Delta delta;
  bool initial = false;
  const std::size_t batch = count_of(state);
  std::size_t i = 0;
  for (auto _ : state) {
    for (std::size_t n = 0; n < batch; ++n) fifo.update(objects[i++ % objects.size()]);
    while (fifo.pop(delta, initial)) benchmark::DoNotOptimize(delta.object.header());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(DeltaFifoAddPop)->Arg(1)->Arg(16)->Arg(1000);

}  // namespace
}  // namespace lookout

// NOLINTEND(readability-identifier-naming)
