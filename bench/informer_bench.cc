// From the source to the handlers. Names are those of client-go's benchmarks, if it has one.
#include <benchmark/benchmark.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <stop_token>
#include <thread>

#include "bench/objects.h"
#include "informer/listener.h"
#include "lookout/base/clock.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/testing/fake_controller_source.h"

// NOLINTBEGIN(readability-identifier-naming): benchmarks are named after their functions.

namespace lookout {
namespace {

/// Waits until a handler has handled `at_least` notifications.
void wait_until(const std::atomic<std::int64_t>& handled, std::int64_t at_least) {
  while (handled.load(std::memory_order_relaxed) < at_least) std::this_thread::yield();
}

/// Notifications through the queues of several handlers, in batches like the informer's: {batch,
/// handlers}.
void Listener(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const std::int64_t handlers = state.range(1);
  const auto loop = std::make_shared<EventLoop>(1);
  const auto pool = std::make_shared<informer::HandlerPool>(loop);
  std::atomic<std::int64_t> handled{0};
  std::vector<std::shared_ptr<informer::detail::Listener>> listeners;
  for (std::int64_t i = 0; i < handlers; ++i) {
    informer::EventHandler<api::Object> handler;
    handler.on_add = [&](const api::Object&) { handled.fetch_add(1, std::memory_order_relaxed); };
    listeners.push_back(std::make_shared<informer::detail::Listener>(
        handler, pool, loop, std::chrono::milliseconds(0), false));
  }
  std::vector<cache::Notification> notifications(batch);
  for (auto& notification : notifications) notification.object = bench::pods(1)[0];
  std::int64_t pushed = 0;
  for (auto _ : state) {
    for (const auto& listener : listeners) listener->push(notifications);
    pushed += static_cast<std::int64_t>(batch) * handlers;
    wait_until(handled, pushed - 100'000);
  }
  wait_until(handled, pushed);
  state.SetItemsProcessed(pushed);
  for (const auto& listener : listeners) listener->close();
}
BENCHMARK(Listener)
    ->ArgNames({"batch", "handlers"})
    ->ArgsProduct({{1, 16, 256}, {1, 10, 100}})
    ->UseRealTime()
    ->MeasureProcessCPUTime();

/// An informer over a source in the same process.
struct Informer {
  explicit Informer(std::size_t pods) {
    for (const auto& object : bench::bare_objects(pods)) source->put(object);
    informer = std::make_unique<informer::SharedIndexInformer>(source, informer::InformerOptions{},
                                                               loop, pool);
  }
  ~Informer() { informer->shutdown(); }

  std::shared_ptr<EventLoop> loop = std::make_shared<EventLoop>(1);
  std::shared_ptr<informer::HandlerPool> pool = std::make_shared<informer::HandlerPool>(loop);
  std::shared_ptr<test::FakeControllerSource> source =
      std::make_shared<test::FakeControllerSource>();
  std::unique_ptr<informer::SharedIndexInformer> informer;
};

/// Changes of one object through store and handler while threads list: {pods, readers}.
void SharedIndexInformer(benchmark::State& state) {
  Informer it(static_cast<std::size_t>(state.range(0)));
  std::atomic<std::int64_t> handled{0};
  informer::EventHandler<api::Object> handler;
  handler.on_update = [&](const api::Object&, const api::Object&) { ++handled; };
  const auto registration = it.informer->add_handler(std::move(handler));
  it.informer->start();
  if (!registration.wait_for_sync()) return state.SkipWithError("no sync");
  std::atomic<bool> done{false};
  std::atomic<std::int64_t> lists{0};
  std::vector<std::thread> readers;
  for (std::int64_t i = 0; i < state.range(1); ++i) {
    readers.emplace_back([&] {
      while (!done) {
        for (const auto& object : it.informer->store().snapshot().objects())
          benchmark::DoNotOptimize(object.header());
        ++lists;
      }
    });
  }
  const api::Object pod = it.informer->store().list().front();
  std::int64_t changes = 0;
  for (auto _ : state) {
    it.source->put(pod);
    wait_until(handled, ++changes - 10);
  }
  wait_until(handled, changes);
  done = true;
  for (auto& reader : readers) reader.join();
  state.SetItemsProcessed(changes);
  state.counters["lists/s"] =
      benchmark::Counter(static_cast<double>(lists.load()), benchmark::Counter::kIsRate);
}
BENCHMARK(SharedIndexInformer)
    ->ArgNames({"podCount", "readers"})
    ->ArgsProduct({{10'000, 160'000}, {0, 1, 10}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

/// Changes with a handler that takes a millisecond each: the cost for the sender.
void AddWithSlowHandlers(benchmark::State& state) {
  Informer it(1);
  informer::EventHandler<api::Object> handler;
  handler.on_update = [&](const api::Object&, const api::Object&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  informer::HandlerOptions options;
  options.coalesce = true;
  const auto registration = it.informer->add_handler(std::move(handler), options);
  it.informer->start();
  if (!registration.wait_for_sync()) return state.SkipWithError("no sync");
  const api::Object pod = it.informer->store().list().front();
  for (auto _ : state) {
    // Until readers see it; the handler is always busy.
    const std::string version(it.source->put(pod).resource_version());
    while (it.informer->store().get(pod).resource_version() != version) std::this_thread::yield();
  }
}
BENCHMARK(AddWithSlowHandlers)->Unit(benchmark::kMicrosecond)->UseRealTime();

/// Like client-go's: starts and stops a resync timer of up to 25 ms per iteration.
Awaitable<void> begin_and_stop_timers(benchmark::State& state, std::shared_ptr<Clock> clock) {
  const auto executor = co_await boost::asio::this_coro::executor;
  std::minstd_rand random;
  std::uniform_int_distribution<int> microseconds(1, 25'000);
  for (auto _ : state) {
    std::stop_source stop;
    boost::asio::co_spawn(
        executor, clock->sleep(std::chrono::microseconds(microseconds(random)), stop.get_token()),
        boost::asio::detached);
    co_await boost::asio::post(executor, boost::asio::use_awaitable);
    stop.request_stop();
    co_await boost::asio::post(executor, boost::asio::use_awaitable);
  }
}

void ReflectorResyncChanMany(benchmark::State& state) {
  EventLoop loop(1);
  loop.run(begin_and_stop_timers(state, Clock::real()));
}
BENCHMARK(ReflectorResyncChanMany)->UseRealTime();

}  // namespace
}  // namespace lookout

// NOLINTEND(readability-identifier-naming)
