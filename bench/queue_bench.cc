// Work queues.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "lookout/testing/fake_clock.h"
#include "lookout/tools/workqueue/delaying_queue.h"
#include "lookout/tools/workqueue/queue.h"

// NOLINTBEGIN(readability-identifier-naming): benchmarks are named after their functions.

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

}  // namespace
}  // namespace lookout

// NOLINTEND(readability-identifier-naming)
