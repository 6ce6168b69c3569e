// Reconcilers: reads and writes, retries, and concurrency.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/testing/fake_clock.h"
#include "tests/controller/calls.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"
#include "tests/support/held.h"
#include "tests/support/notes.h"
#include "tests/support/own_resources.h"
#include "tests/support/thrown.h"

namespace lookout::controller {
namespace {

class ReconcilingTest : public ManagerFixture {
 protected:
  /// Polls without a pause, for a minute.
  template <class Condition>
  static bool eventually_spinning(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 1min;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_F(ReconcilingTest, RetriesExceptionsExceptTerminalErrors) {
  put("fails", "1");
  put("terminal", "1");
  put("nested", "1");
  put("odd", "1");
  Calls calls;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    calls.note(request);
    if (request.name == "terminal") throw TerminalError("an invalid spec");
    if (request.name == "nested") {
      try {
        throw TerminalError("an invalid spec");
      } catch (...) {
        std::throw_with_nested(std::runtime_error("while it was read"));
      }
    }
    if (calls.of(request.key()) < 4) {
      if (request.name == "odd") throw 42;  // NOLINT: programs should not throw this
      if (request.name == "fails") throw std::runtime_error("not yet");
    }
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return calls.of("default/fails") == 4; }));
  EXPECT_TRUE(eventually([&] { return calls.of("default/odd") == 4; }));
  EXPECT_TRUE(eventually(
      [&] { return metric(manager, "controller_runtime_reconcile_total", "success") == 2; }));
  EXPECT_EQ(calls.of("default/terminal"), 1);
  EXPECT_EQ(calls.of("default/nested"), 1);
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_errors_total"), 8);
  EXPECT_EQ(metric(manager, "controller_runtime_terminal_reconcile_errors_total"), 2);
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_panics_total"), 3);
}

TEST_F(ReconcilingTest, ResultsRequeue) {
  put("after", "1");
  put("again", "1");
  Calls calls;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    calls.note(request);
    if (calls.of(request.key()) > 2) return done();
    return request.name == "after" ? requeue_after(1ms) : requeue();
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return calls.of("default/after") == 3; }));
  EXPECT_TRUE(eventually([&] { return calls.of("default/again") == 3; }));
  EXPECT_TRUE(eventually(
      [&] { return metric(manager, "controller_runtime_reconcile_total", "success") == 2; }));
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_total", "requeue_after"), 2);
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_total", "requeue"), 2);
}

TEST_F(ReconcilingTest, ImmediateRequeuesDoNotStarveOtherRequests) {
  constexpr int kCount = 5'000;
  const auto channel = std::make_shared<Channel>();
  for (int i = 0; i < kCount; ++i) channel->send({"default", "key-" + std::to_string(i)});
  std::atomic<int> runs{0};
  Calls calls;
  Manager manager{client_};
  Builder<ConfigMap>(manager).source(channel).concurrency(2).reconcile(
      [&](Request request, Context&) -> Result {
        calls.note(request);
        ++runs;
        return requeue_after(1us);
      });
  Running running(manager);
  EXPECT_TRUE(
      eventually([&] { return calls.keys() == std::size_t{kCount} && runs >= 3 * kCount; }));
  running.stop();
  const int at_the_end = runs;
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(runs, at_the_end);
}

TEST_F(ReconcilingTest, ABurstOfEventsIsOneReconcile) {
  const auto clock = std::make_shared<test::FakeClock>();
  ConfigMap first = put("first", "1");
  Calls calls;
  ManagerOptions options;
  options.clock = clock;
  Manager manager{client_, options};
  Builder<ConfigMap>(manager).debounce(1h).reconcile([&](Request request, Context&) -> Result {
    calls.note(request);
    return {};
  });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_adds_total") == 1; }));
  for (int i = 2; i < 9; ++i) {
    auto change = first.edit();
    change.data().set("value", std::to_string(i));
    first = client_.resource<ConfigMap>("default").patch(change);
  }
  // Events arrive in order.
  put("last", "1");
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_adds_total") == 2; }));
  EXPECT_EQ(calls.keys(), 0u);
  clock->advance(1h);
  EXPECT_TRUE(eventually([&] { return calls.keys() == 2; }));
  running.stop();
  EXPECT_EQ(calls.of("default/first"), 1);
}

TEST_F(ReconcilingTest, AReconcileTimeoutStopsTheContext) {
  put("slow", "1");
  std::atomic<bool> stopped{false};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile_timeout(20ms).reconcile(
      [&](Request, Context& context) -> Result {
        if (stopped) return {};
        stopped = eventually([&] { return context.stop().stop_requested(); });
        // Calls end at once as well.
        EXPECT_THROW(context.uncached().resource<ConfigMap>("default").get("slow"),
                     rest::TransportError);
        throw std::runtime_error("out of time");
      });
  const Running running(manager);
  EXPECT_TRUE(eventually(
      [&] { return metric(manager, "controller_runtime_reconcile_timeouts_total") == 1; }));
  EXPECT_TRUE(eventually([&] { return stopped.load(); }));
}

TEST_F(ReconcilingTest, ReconcilesWithTheGivenConcurrency) {
  for (int i = 0; i < 8; ++i) put("m" + std::to_string(i), "1");
  std::atomic<int> active{0};
  std::atomic<int> most{0};
  std::atomic<int> done_count{0};
  test::Gate three;
  Manager manager{client_};
  Builder<ConfigMap>(manager).concurrency(3).reconcile([&](Request, Context&) -> Result {
    const int now = ++active;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    if (now == 3) three.open();
    EXPECT_TRUE(three.wait());
    --active;
    ++done_count;
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return done_count == 8; }));
  EXPECT_EQ(most, 3);
}

TEST_F(ReconcilingTest, AKeyIsNeverReconciledConcurrently) {
  put("m", "0");
  std::atomic<int> active{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> runs{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).concurrency(4).reconcile([&](Request, Context&) -> Result {
    if (++active > 1) ++overlaps;
    std::this_thread::sleep_for(2ms);
    --active;
    ++runs;
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return runs > 0; }));
  for (int i = 1; i < 30; ++i) change("m", std::to_string(i));
  EXPECT_TRUE(eventually([&] { return runs > 2; }));
  EXPECT_EQ(overlaps, 0);
}

TEST_F(ReconcilingTest, ThousandsOfCoroutinesWaitOnAFewThreads) {
  constexpr unsigned kCount = 10'000;
  std::atomic<unsigned> waiting{0};
  std::atomic<unsigned> ended{0};
  std::atomic<std::size_t> threads{0};
  const auto channel = std::make_shared<Channel>();
  for (unsigned i = 0; i < kCount; ++i) channel->send({"default", "key-" + std::to_string(i)});
  std::stop_source go_on;
  Manager manager{client_};
  Builder<ConfigMap>(manager).source(channel).concurrency(kCount).reconcile(
      [&](Request, Context&) -> Awaitable<Result> {
        if (++waiting == kCount) threads = test::thread_count();
        while (!go_on.stop_requested())
          co_await Clock::real()->sleep(std::chrono::minutes(1), go_on.get_token());
        ++ended;
        co_return Result();
      });
  const std::size_t before = test::thread_count();
  const std::size_t memory = test::resident_bytes();
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return waiting == kCount && threads > 0; }));
  // The threads of the test, its server and the event loop existed before.
  EXPECT_LE(threads, before + 8);
  RecordProperty("threads", static_cast<int>(threads));
  RecordProperty("bytes_per_waiting_reconcile",
                 static_cast<int>(
                     (test::resident_bytes() - std::min(memory, test::resident_bytes())) / kCount));
  go_on.request_stop();
  EXPECT_TRUE(eventually([&] { return ended == kCount; }));
}

TEST_F(ReconcilingTest, CoroutinesThatNeverSuspendDoNotStarveOthers) {
  const auto loop = std::make_shared<EventLoop>(1u);
  const rest::Client client{server_.client_config(), loop};
  const auto channel = std::make_shared<Channel>();
  channel->send({"default", "again-and-again"});
  std::atomic<unsigned> runs{0};
  Manager manager{client};
  Builder<ConfigMap>(manager)
      .source(channel)
      .options([](ControllerOptions& options) { options.hot_loop = 0; })
      .reconcile([&](Request request, Context&) -> Awaitable<Result> {
        ++runs;
        channel->send(std::move(request));
        co_return Result();
      });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs > 1000; }));
  EXPECT_FALSE(client.resource<ConfigMap>("default").find("another"));
}

TEST_F(ReconcilingTest, ARequestThatArrivesWhileACoroutineEndsIsNotLost) {
  constexpr int kRounds = 3'000;
  const auto channel = std::make_shared<Channel>();
  std::atomic<int> runs{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).source(channel).reconcile(
      [&](Request, Context&) -> Awaitable<Result> {
        ++runs;
        co_return Result();
      });
  const Running running(manager);
  for (int i = 1; i <= kRounds; ++i) {
    channel->send({"default", std::to_string(i)});
    ASSERT_TRUE(eventually_spinning([&] { return runs == i; })) << i;
    // The next request arrives a little later after each end.
    for (std::atomic<int> wait{i % 300}; wait > 0; --wait) continue;
  }
}

TEST_F(ReconcilingTest, CoroutinesReadAndWrite) {
  put("site", "1");
  Manager manager{client_};
  Builder<ConfigMap>(manager).owns<Secret>().concurrency(10).reconcile(
      [&](Request request, Context& context) -> Awaitable<Result> {
        const auto map = context.find<ConfigMap>(request);
        if (!map) co_return Result();
        const auto fill = [&](const k8s::core::v1::SecretDraft& secret) {
          secret.string_data().set("value", map->data()["value"]);
        };
        const auto made = co_await context.async_create_or_update<Secret>(request, fill);
        if (made.written == Written::kCreated) {
          const auto note = map->edit();
          note.data().set("made", "yes");
          co_await context.async_patch(note);
        }
        co_return Result();
      });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] {
    const auto map = maps_.get("site");
    return map.data()["made"] == "yes";
  }));
  EXPECT_TRUE(client_.resource<Secret>("default").find("site"));
}

TEST_F(ReconcilingTest, AnObjectOutsideTheCachesSelectionIsUpdated) {
  put("site", "1");
  client_.resource<Secret>("default").create(Secret::draft("site", "default"));
  Manager manager{client_};
  KindOptions web;
  web.label_selector = "app=web";
  manager.cache().declare<Secret>(web);
  std::atomic<bool> done{false};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto result = context.create_or_update<Secret>(
        request, [](const auto& secret) { secret.string_data().set("made", "yes"); });
    EXPECT_EQ(result.written, Written::kUpdated);
    done = true;
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return done.load(); }));
}

TEST_F(ReconcilingTest, AReconcileReadsOneSnapshotOfTheCaches) {
  put("m", "1");
  std::atomic<bool> checked{false};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    if (checked) return {};
    const auto before = context.get<ConfigMap>(request);
    put("other", "1");
    change("m", "2");
    EXPECT_TRUE(eventually([&] {
      auto now = manager.cache().view();
      return now.find<ConfigMap>({"default", "other"}) &&
             now.find<ConfigMap>(request)->data()["value"] == "2";
    }));
    EXPECT_EQ(lookout::test::held(context.get<ConfigMap>(request)).data()["value"], "1");
    EXPECT_FALSE(context.find<ConfigMap>("default", "other"));
    EXPECT_EQ(context.list<ConfigMap>("default").size(), 1u);
    EXPECT_THROW(context.get<ConfigMap>({"default", "other"}), api::StatusError);
    checked = true;
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return checked.load(); }));
}

TEST_F(ReconcilingTest, LiveEventsPrecedeInitialOnes) {
  for (int i = 0; i < 200; ++i) put("old-" + std::to_string(i), "1");
  Calls calls;
  test::Gate go_on;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    calls.note(request);
    EXPECT_TRUE(go_on.wait());
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_depth", "-100") == 199; }));
  put("live", "1");
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_depth", "0") == 1; }));
  go_on.open();
  ASSERT_TRUE(eventually([&] { return calls.keys() == 201; }));
  const auto order = calls.order();
  EXPECT_EQ(order[1], "default/live");
}

TEST_F(ReconcilingTest, AHotLoopIsReportedOnce) {
  put("m", "1");
  constexpr int kMore = 40;
  std::atomic<int> runs{0};
  std::atomic<int> last{std::numeric_limits<int>::max()};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    if (!map || ++runs > last) return {};
    const auto change = map->edit();
    change.data().set("runs", std::to_string(runs.load()));
    context.update(change);
    return {};
  });
  const Running running(manager);
  // Until the rate was reached: 20 runs within a second.
  EXPECT_TRUE(eventually([&] { return metric(manager, "controller_hot_loops_total") == 1; }));
  last = runs + kMore;
  EXPECT_TRUE(eventually([&] { return runs > last; }));
  EXPECT_EQ(metric(manager, "controller_hot_loops_total"), 1);
}

/// Records events.
class FakeSink : public EventSink {
 public:
  void event(const api::Object& regarding, EventType type, std::string_view reason,
             const std::string& message, std::string_view controller) override {
    events_.add(std::string(type == EventType::kWarning ? "Warning " : "Normal ") +
                std::string(reason) + " " + regarding.key() + ": " + message + " by " +
                std::string(controller));
  }
  std::vector<std::string> events() const { return events_.all(); }

 private:
  test::Notes events_;
};

TEST_F(ReconcilingTest, EventsGoToTheSink) {
  put("m", "1");
  ManagerOptions options;
  const auto sink = std::make_shared<FakeSink>();
  options.events = sink;
  Manager manager{client_, options};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.get<ConfigMap>(request);
    context.event(map, "Created", "{} of {}", 1, 2);
    context.warning(map, "Late", "by a second");
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return sink->events().size() == 2; }));
  EXPECT_THAT(sink->events(),
              testing::ElementsAre("Normal Created default/m: 1 of 2 by configmap",
                                   "Warning Late default/m: by a second by configmap"));
}

TEST_F(ReconcilingTest, ASinkThatThrowsFailsNoReconcile) {
  put("m", "1");
  struct ThrowingSink : EventSink {
    void event(const api::Object&, EventType, std::string_view, const std::string&,
               std::string_view) override {
      throw std::runtime_error("no room");
    }
  };
  ManagerOptions options;
  options.events = std::make_shared<ThrowingSink>();
  Manager manager{client_, options};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    context.event(context.get<ConfigMap>(request), "Created", "it is there");
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually(
      [&] { return metric(manager, "controller_runtime_reconcile_total", "success") == 1; }));
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_errors_total"), 0);
}

TEST_F(ReconcilingTest, AFinalizerRunsBeforeTheObjectIsRemoved) {
  put("site", "1");
  std::atomic<int> cleaned{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    if (!map) return {};
    const bool deleted = context.finalize(*map, "example.com/site", [&] {
      if (++cleaned == 1) throw std::runtime_error("not yet");
      // Another writer changes the object in between: the finalizer is removed nevertheless.
      change("site", "3");
    });
    if (deleted) return {};
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually(
      [&] { return lookout::test::held(maps_.get("site")).metadata().finalizers().size() == 1; }));
  maps_.remove("site");
  EXPECT_TRUE(eventually([&] { return !maps_.find("site"); }));
  EXPECT_EQ(cleaned, 2);
}

TEST_F(ReconcilingTest, AFinalizerDoesNotReplaceOthers) {
  put("site", "1");
  std::atomic<int> runs{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.get<ConfigMap>(request);
    // Another writer adds its own after the read.
    if (++runs == 1)
      maps_.patch("site", rest::PatchType::kMerge,
                  R"({"metadata":{"finalizers":["example.com/other"]}})");
    context.finalize(map, "example.com/site", [] {});
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return has_finalizer(maps_.get("site"), "example.com/site"); }));
  EXPECT_TRUE(has_finalizer(maps_.get("site"), "example.com/other"));
}

TEST_F(ReconcilingTest, TheFinalizerOfARecreatedObjectStays) {
  put("site", "1");
  ConfigMap next;
  std::atomic<bool> finalized{false};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    if (!map || finalized) return {};
    finalized = context.finalize(*map, "example.com/site", [&] {
      maps_.patch("site", rest::PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
      const auto draft = ConfigMap::draft("site", "default");
      add_finalizer(draft, "example.com/site");
      next = maps_.create(draft);
    });
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return has_finalizer(maps_.get("site"), "example.com/site"); }));
  maps_.remove("site");
  EXPECT_TRUE(eventually([&] { return finalized.load(); }));
  EXPECT_EQ(maps_.get("site"), next);
}

TEST_F(ReconcilingTest, ARecreatedObjectIsNotRemoved) {
  put("m", "1");
  std::atomic<bool> done{false};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    if (done) return {};
    const auto map = context.get<ConfigMap>(request);
    maps_.remove("m");
    put("m", "2");
    const auto error = test::thrown<api::StatusError>([&] { context.remove(map); });
    EXPECT_TRUE(error && api::is_conflict(*error));
    done = true;
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(lookout::test::held(maps_.get("m")).data()["value"], "2");
}

TEST_F(ReconcilingTest, AFinalizerMayBeACoroutine) {
  put("site", "1");
  std::atomic<int> cleaned{0};
  std::atomic<int> live{0};
  Manager manager{client_};
  const std::function<Awaitable<void>()> clean_up = [&]() -> Awaitable<void> {
    if (++cleaned == 1) throw std::runtime_error("not yet");
    co_return;
  };
  Builder<ConfigMap>(manager).reconcile(
      [&](Request request, Context& context) -> Awaitable<Result> {
        const auto map = context.find<ConfigMap>(request);
        if (!map) co_return Result{};
        const bool deleted = co_await context.async_finalize(*map, "example.com/site", clean_up);
        if (!deleted) ++live;
        co_return Result{};
      });
  const Running running(manager);
  ASSERT_TRUE(eventually(
      [&] { return lookout::test::held(maps_.get("site")).metadata().finalizers().size() == 1; }));
  EXPECT_EQ(cleaned, 0);
  EXPECT_TRUE(eventually([&] { return live > 0; }));
  maps_.remove("site");
  EXPECT_TRUE(eventually([&] { return !maps_.find("site"); }));
  EXPECT_EQ(cleaned, 2);
}

}  // namespace
}  // namespace lookout::controller
