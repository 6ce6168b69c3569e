// The controller benchmark: a controller with many objects, and a server in another process.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cmd/bench/child_program.h"
#include "cmd/bench/jobs.h"
#include "cmd/bench/lag_histogram.h"
#include "cmd/bench/usage.h"
#include "cmd/duration.h"
#include "cmd/programs.h"
#include "cmd/scratch_folder.h"
#include "lookout/base/numbers.h"
#include "lookout/base/pinned.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/manager.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::bench {
namespace {

using controller::Context;
using controller::Request;
using k8s::core::v1::ConfigMap;
using Steady = std::chrono::steady_clock;

constexpr const char* kNamespace = "default";
/// The data key with the time when a change was sent, in microseconds; the patching reconciler sets it.
constexpr std::string_view kSent = "sent";
constexpr std::string_view kPatched = "patched";
/// Reconciles per object in a measurement; stays below the limit for hot loops.
constexpr std::size_t kRounds = 10;
constexpr unsigned kWriters = 8;
/// The time limit for steps that should always succeed.
constexpr std::chrono::minutes kLongestJob{5};

std::int64_t steady_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Steady::now().time_since_epoch())
      .count();
}

std::string object_name(std::size_t i) { return fmt::format("object-{:06}", i); }

class Server {
 public:
  Server()
      : program_({program_path("lookout"), "serve", "--listen", "127.0.0.1:0"},
                 folder_.file("log")) {
    for (;;) {
      const std::string text = program_.output();
      config_.server = served_url(text);
      if (!config_.server.empty()) return;
      if (!program_.running()) throw Error("the server has exited: " + text);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  const rest::Config& config() const { return config_; }

 private:
  const ScratchFolder folder_;
  ChildProgram program_;
  rest::Config config_;
};

/// Calls `call` for each number below `count`, from several threads.
void in_parallel(std::size_t count, const std::stop_token& stop,
                 const std::function<void(std::size_t)>& call) {
  std::atomic<std::size_t> next{0};
  std::vector<std::future<void>> all;
  all.reserve(kWriters);
  for (unsigned i = 0; i < kWriters; ++i) {
    all.push_back(std::async(std::launch::async, [&] {
      for (std::size_t at = 0; (at = next++) < count && !stop.stop_requested();) call(at);
    }));
  }
  for (auto& each : all) each.get();
}

/// Runs a manager with one controller while this object exists. Its requests come from the
/// measurement and from events of the config maps.
class Running : public base::Pinned {
 public:
  Running(const rest::Client& client,
          const std::function<void(controller::Builder<ConfigMap>&)>& make,
          const std::stop_token& stop)
      : manager_(client, options()) {
    controller::Builder<ConfigMap> builder(manager_);
    builder.source(channel_);
    make(builder);
    ended_ = std::async(std::launch::async, [this] { manager_.run(stop_.get_token()); });
    wait_until("the first list was complete", stop, [&] {
      if (ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) ended_.get();
      return manager_.cache().unsynced().empty();
    });
  }
  ~Running() {
    stop_.request_stop();
    if (ended_.valid()) ended_.wait();
  }

  void send(std::size_t objects) {
    for (std::size_t i = 0; i < objects; ++i) channel_->send(Request(kNamespace, object_name(i)));
  }

  static void wait_until(const char* what, const std::stop_token& stop,
                         const std::function<bool()>& condition) {
    const auto deadline = Steady::now() + kLongestJob;
    while (!condition()) {
      if (stop.stop_requested() || Steady::now() > deadline)
        throw Error(fmt::format("stopped before {}", what));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  /// Caches only this namespace.
  static controller::ManagerOptions options() {
    controller::ManagerOptions out;
    out.cache.namespaces = {kNamespace};
    return out;
  }

  const std::shared_ptr<controller::Channel> channel_ = std::make_shared<controller::Channel>();
  controller::Manager manager_;
  std::stop_source stop_;
  std::future<void> ended_;
};

/// Measures no-op reconciles of all objects, repeatedly.
void measure_nothing(const std::string& name, const rest::Client& client, bool coroutine,
                     const JobOptions& options, const std::stop_token& stop, Result& result) {
  std::atomic<std::uint64_t> count{0};
  const std::int64_t memory_before = process_status("RssAnon");
  Running running(
      client,
      [&](controller::Builder<ConfigMap>& builder) {
        if (coroutine) {
          builder.concurrency(16).reconcile(
              [&count](Request, Context&) -> Awaitable<controller::Result> {
                count.fetch_add(1, std::memory_order_relaxed);
                co_return controller::Result();
              });
        } else {
          builder.reconcile([&count](const Request&, Context&) -> controller::Result {
            count.fetch_add(1, std::memory_order_relaxed);
            return {};
          });
        }
      },
      stop);
  std::uint64_t wanted = options.objects;
  Running::wait_until("all had been reconciled", stop, [&] { return count >= wanted; });
  if (!coroutine) {
    result.set("cache_bytes_per_object", (process_status("RssAnon") - memory_before) /
                                             static_cast<std::int64_t>(options.objects));
  }

  const Usage begin = Usage::now();
  for (std::size_t round = 0; round < kRounds; ++round) {
    running.send(options.objects);
    wanted += options.objects;
    Running::wait_until("all had been reconciled", stop, [&] { return count >= wanted; });
  }
  const Usage end = Usage::now();
  const auto reconciles = static_cast<double>(options.objects * kRounds);
  const double wall = std::chrono::duration<double>(end.wall - begin.wall).count();
  result.set(name + "_per_s", reconciles / wall);
  result.set(name + "_cpu_us", end.cpu_seconds_since(begin) * 1e6 / reconciles);
}

/// Measures reconciles that patch their object once.
void measure_patches(const rest::Client& client, const JobOptions& options,
                     const std::stop_token& stop, Result& result) {
  std::atomic<bool> enabled{false};
  std::atomic<std::uint64_t> patches{0};
  std::atomic<std::uint64_t> count{0};
  Running running(
      client,
      [&](controller::Builder<ConfigMap>& builder) {
        builder.concurrency(kWriters).reconcile(
            [&](const Request& request, Context& context) -> controller::Result {
              ++count;
              const auto map = context.find<ConfigMap>(request);
              if (!map || !enabled || !map->data()[kPatched].empty()) return {};
              const auto change = map->edit();
              change.data().set(kPatched, "yes");
              context.patch(change);
              ++patches;
              return {};
            });
      },
      stop);
  Running::wait_until("all had been reconciled", stop, [&] { return count >= options.objects; });
  enabled = true;
  const Usage begin = Usage::now();
  running.send(options.objects);
  Running::wait_until("all had been patched", stop, [&] { return patches >= options.objects; });
  const Usage end = Usage::now();
  const auto all = static_cast<double>(options.objects);
  result.set("patch_per_s", all / std::chrono::duration<double>(end.wall - begin.wall).count());
  result.set("patch_cpu_us", end.cpu_seconds_since(begin) * 1e6 / all);
}

/// Measures the time from before a change is sent until the reconcile that sees it.
void measure_latency(const rest::Client& client, const JobOptions& options,
                     const std::stop_token& stop, Result& result) {
  std::mutex mutex;
  LagHistogram lags;
  std::vector<std::int64_t> seen(options.objects, 0);  // the newest change of each object
  std::atomic<std::uint64_t> count{0};
  const Running running(
      client,
      [&](controller::Builder<ConfigMap>& builder) {
        builder.concurrency(2).reconcile(
            [&](const Request& request, Context& context) -> controller::Result {
              const std::int64_t now = steady_us();
              const auto map = context.find<ConfigMap>(request);
              if (!map) return {};
              const auto sent = base::parse_number<std::int64_t>(map->data()[kSent]).value_or(0);
              const std::string_view digits = std::string_view(request.name).substr(7);
              const auto at = base::parse_number<std::size_t>(digits).value_or(0);
              const std::lock_guard lock(mutex);
              ++count;
              if (at >= seen.size() || seen[at] == sent) return {};
              seen[at] = sent;
              lags.add(now - sent);
              return {};
            });
      },
      stop);
  Running::wait_until("all had been reconciled", stop, [&] { return count >= options.objects; });

  const auto maps = client.resource<ConfigMap>(kNamespace);
  const auto begin = Steady::now();
  const auto pause = std::chrono::nanoseconds(std::chrono::seconds(1)) / options.rate;
  std::size_t sent = 0;
  for (auto at = begin; at - begin < options.load_time && sent < options.objects; at += pause) {
    std::this_thread::sleep_until(at);
    if (stop.stop_requested()) throw Error("stopped before all objects had been changed");
    maps.patch(object_name(sent), rest::PatchType::kMerge,
               fmt::format(R"({{"data":{{"{}":"{}"}}}})", kSent, steady_us()));
    ++sent;
  }
  Running::wait_until("all changes had been reconciled", stop, [&] {
    const std::lock_guard lock(mutex);
    return lags.count() >= sent;
  });
  const std::lock_guard lock(mutex);
  result.set("changes", static_cast<std::int64_t>(sent));
  result.set("latency_p50_ms", lags.quantile_ms(0.5));
  result.set("latency_p99_ms", lags.quantile_ms(0.99));
  result.set("latency_max_ms", lags.max_ms());
}

/// Measures one waiting coroutine per object, all at the same time.
void measure_waiting(const rest::Client& client, const JobOptions& options,
                     const std::stop_token& stop, Result& result) {
  std::atomic<std::uint64_t> waiting{0};
  std::atomic<bool> enabled{false};
  std::atomic<std::uint64_t> count{0};
  std::stop_source end;
  const auto clock = lookout::Clock::real();
  Running running(
      client,
      [&](controller::Builder<ConfigMap>& builder) {
        builder.concurrency(static_cast<unsigned>(options.objects))
            .reconcile([&, clock](Request, Context&) -> Awaitable<controller::Result> {
              ++count;
              if (!enabled) co_return controller::Result();
              ++waiting;
              co_await clock->sleep(kLongestJob, end.get_token());
              co_return controller::Result();
            });
      },
      stop);
  const std::stop_callback stopped(stop, [&] { end.request_stop(); });
  Running::wait_until("all had been reconciled", stop, [&] { return count >= options.objects; });
  const std::int64_t memory_before = process_status("RssAnon");
  enabled = true;
  running.send(options.objects);
  Running::wait_until("all were waiting", stop, [&] { return waiting >= options.objects; });
  result.set("waiting", static_cast<std::int64_t>(waiting.load()));
  result.set("waiting_threads", process_status("Threads"));
  result.set("waiting_bytes_each", (process_status("RssAnon") - memory_before) /
                                       static_cast<std::int64_t>(options.objects));
  end.request_stop();
}

}  // namespace

Result controller_job(const JobOptions& options, std::stop_token stop) {
  const Server server;
  const rest::Client client{server.config()};
  const auto maps = client.resource<ConfigMap>(kNamespace);
  in_parallel(options.objects, stop, [&](std::size_t i) {
    const auto draft = ConfigMap::draft(object_name(i), kNamespace);
    draft.data().set("data", std::string(options.object_bytes, 'x'));
    maps.create(draft);
  });
  if (stop.stop_requested()) throw Error("stopped before the objects had been created");

  Result result;
  result.set("job", "controller");
  result.set("client", "lookout");
  result.set("objects", static_cast<std::int64_t>(options.objects));
  const Usage begin = Usage::now();
  measure_nothing("noop", client, false, options, stop, result);
  measure_nothing("noop_coroutine", client, true, options, stop, result);
  measure_patches(client, options, stop, result);
  measure_latency(client, options, stop, result);
  measure_waiting(client, options, stop, result);
  Usage::now().report_since(begin, result);
  result.set("vm_hwm", process_status("VmHWM"));
  return result;
}

}  // namespace lookout::cmd::bench
