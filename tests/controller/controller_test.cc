// The lifecycle of a controller: its sources, retries, priorities and timeouts.
#include "lookout/controller/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/controller/builder.h"
#include "lookout/k8s/coordination/v1_draft.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/tools/workqueue/rate_limiter.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"
#include "tests/support/own_resources.h"

namespace lookout::controller {
namespace {

using k8s::coordination::v1::Lease;

/// A scripted source.
class FakeSource : public Source {
 public:
  using Start = std::function<void(const SourceContext& context, std::function<void()> ready)>;
  explicit FakeSource(Start start) : start_(std::move(start)) {}

  void start(const SourceContext& context, std::function<void()> ready) override {
    ++starts;
    start_(context, std::move(ready));
  }
  void stop() override {
    ++stops;
    if (stop_throws) throw std::runtime_error("cannot stop");
  }
  std::string name() const override { return "fake"; }

  std::atomic<int> starts{0};
  std::atomic<int> stops{0};
  std::atomic<bool> stop_throws{false};

 private:
  const Start start_;
};

std::shared_ptr<FakeSource> ready_source() {
  return std::make_shared<FakeSource>(
      [](const SourceContext&, const std::function<void()>& ready) { ready(); });
}
std::shared_ptr<FakeSource> broken_source() {
  return std::make_shared<FakeSource>([](const SourceContext&, const std::function<void()>&) {
    throw std::runtime_error("no such device");
  });
}

Result do_nothing(const Request&, Context&) { return {}; }

class ControllerTest : public ManagerFixture {};

// ---------------------------------------------------------------------------------- sources

TEST_F(ControllerTest, ASourceThatFailsToStartFailsTheRun) {
  const auto source = broken_source();
  Manager manager{client_};
  Builder<ConfigMap>(manager).source(source).reconcile(do_nothing);
  Running running(manager);
  EXPECT_EQ(error_of(running), "no such device");
  EXPECT_EQ(source->stops, 0);
}

TEST_F(ControllerTest, ASourceThatIsNotReadyInTimeFailsTheRun) {
  const auto source =
      std::make_shared<FakeSource>([](const SourceContext& context, const std::function<void()>&) {
        context.add({"default", "m"}, 0);
      });
  std::atomic<int> runs{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager)
      .source(source)
      .options([](ControllerOptions& options) { options.sync_timeout = 50ms; })
      .reconcile(counting(runs));
  Running running(manager);
  EXPECT_THAT(error_of(running), HasSubstr("source fake was not ready"));
  EXPECT_EQ(source->stops, 1);
  EXPECT_EQ(runs, 0);
}

TEST_F(ControllerTest, ASourceThatDoesNotStopDoesNotBlockOthers) {
  const auto first = ready_source();
  const auto second = ready_source();
  first->stop_throws = true;
  Manager manager{client_, elected("a")};
  Builder<ConfigMap>(manager).source(first).source(second).reconcile(do_nothing);
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return first->starts == 1 && second->starts == 1; }));
  running.stop();
  EXPECT_EQ(first->stops, 1);
  EXPECT_EQ(second->stops, 1);
  EXPECT_FALSE(manager.is_leader());
  const auto lease = client_.resource<Lease>("default").get("website");
  EXPECT_EQ(lease.spec().holder_identity(), "");
}

TEST_F(ControllerTest, AWatchEndsIfItsSourceDoesNotStop) {
  const auto source = ready_source();
  source->stop_throws = true;
  Manager manager{client_};
  const auto controller = Builder<ConfigMap>(manager).reconcile(do_nothing);
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  auto watch = controller.watch(source);
  ASSERT_TRUE(eventually([&] { return source->starts == 1; }));
  EXPECT_NO_THROW(watch.remove());
  EXPECT_EQ(source->stops, 1);
}

TEST_F(ControllerTest, ASourceThatRemovesItselfWhileItStartsIsStopped) {
  WatchHandle handle;
  const auto source =
      std::make_shared<FakeSource>([&](const SourceContext&, const std::function<void()>& ready) {
        handle.remove();
        ready();
      });
  Manager manager{client_};
  const auto controller = Builder<ConfigMap>(manager).reconcile(do_nothing);
  handle = controller.watch(source);
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return source->stops == 1; }));
}

/// A clock whose next sleeps throw.
class FaultyClock : public test::FakeClock {
 public:
  explicit FaultyClock(int failures) : failures_(failures) {}
  Awaitable<bool> sleep(Duration duration, std::stop_token stop) override {
    const int left = failures_--;
    if (left > 0) {
      ++thrown_;
      left % 2 == 0 ? throw std::runtime_error("no time") : throw 7;
    }
    return FakeClock::sleep(duration, std::move(stop));
  }
  int thrown() const { return thrown_; }

 private:
  std::atomic<int> failures_;
  std::atomic<int> thrown_{0};
};

/// A timer without a controller.
class TimerTest : public testing::Test {
 protected:
  void start(const std::shared_ptr<test::FakeClock>& clock, std::chrono::milliseconds period) {
    source_ = timer(period, [this](Enqueue&) { ++ticks_; });
    source_->start({.add = [](const Request&, int) {}, .loop = loop_, .clock = clock}, [] {});
  }

  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(1);
  std::atomic<int> ticks_{0};
  std::shared_ptr<Source> source_;
};

TEST_F(TimerTest, ContinuesAfterItsClockHasThrown) {
  const auto clock = std::make_shared<FaultyClock>(2);
  start(clock, 1h);
  ASSERT_TRUE(eventually([&] { return clock->sleepers() == 1; }));
  EXPECT_EQ(clock->thrown(), 2);
  EXPECT_EQ(ticks_, 1);
  clock->advance(1h);
  EXPECT_TRUE(eventually([&] { return ticks_ == 2; }));
  source_->stop();
}

TEST_F(TimerTest, StopsWhileItsClockThrows) {
  const auto clock = std::make_shared<FaultyClock>(1'000'000);
  start(clock, 1h);
  ASSERT_TRUE(eventually([&] { return clock->thrown() > 0; }));
  auto stopped = std::async(std::launch::async, [&] { source_->stop(); });
  test::wait_for(stopped);
  EXPECT_EQ(ticks_, 1);
}

TEST_F(TimerTest, MayHaveAPeriodThatNoClockCanRepresent) {
  const auto clock = std::make_shared<test::FakeClock>();
  start(clock, std::chrono::milliseconds::max());
  ASSERT_TRUE(eventually([&] { return !clock->slept().empty(); }));
  EXPECT_GT(clock->slept().front(), 24h * 365);
  source_->stop();
  EXPECT_EQ(ticks_, 1);
}

TEST_F(ControllerTest, AStopWhileASourceIsNotReadyEndsTheRun) {
  const auto source =
      std::make_shared<FakeSource>([](const SourceContext&, const std::function<void()>&) {});
  put("m", "1");
  std::atomic<int> runs{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).source(source).reconcile(counting(runs));
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return source->starts == 1; }));
  running.stop();
  EXPECT_EQ(source->stops, 1);
  EXPECT_EQ(runs, 0);
}

TEST_F(ControllerTest, WaitsForAllSourcesBeforeReconciling) {
  for (int i = 0; i < 20; ++i) put("m" + std::to_string(i), "1");
  std::function<void()> ready;
  const auto source =
      std::make_shared<FakeSource>([&](const SourceContext& context, auto when_ready) {
        for (int i = 0; i < 2; ++i) context.add({"default", "twice"}, 0);
        ready = std::move(when_ready);
      });
  const auto clock = std::make_shared<test::FakeClock>();
  std::atomic<int> runs{0};
  ManagerOptions options;
  options.clock = clock;
  Manager manager{client_, options};
  Builder<ConfigMap>(manager)
      .source(source)
      .options([](ControllerOptions& change) { change.sync_timeout = 77min; })
      .reconcile(counting(runs));
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_depth", "-100") == 20; }));
  // The controller waits for the source.
  const auto waits = [&] {
    const auto all = clock->slept();
    return std::find(all.begin(), all.end(), Clock::Duration(77min)) != all.end();
  };
  ASSERT_TRUE(eventually(waits));
  ASSERT_EQ(source->starts, 1);
  // A worker would take one of the queued requests before a later one arrives.
  put("last", "1");
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_adds_total") == 22; }));
  EXPECT_EQ(runs, 0);
  ready();
  EXPECT_TRUE(eventually([&] { return runs >= 22; }));
  running.stop();
  EXPECT_EQ(runs, 22) << "a request that is added again while it is queued runs once";
}

TEST_F(ControllerTest, ASourceThatWarmsUpIsStartedOnce) {
  const auto source = std::make_shared<FakeSource>(
      [](const SourceContext& context, const std::function<void()>& ready) {
        context.add({"default", "m"}, 0);
        ready();
      });
  std::atomic<int> runs{0};
  Manager manager{client_, elected("us")};
  Builder<ConfigMap>(manager).source(source).warm_up().reconcile(counting(runs));
  Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 1; }));
  running.stop();
  EXPECT_EQ(source->starts, 1);
  EXPECT_EQ(source->stops, 1);
}

TEST_F(ControllerTest, AWarmUpThatFailsFailsTheRunBeforeTheElection) {
  Manager manager{client_, elected("us")};
  Builder<ConfigMap>(manager).source(broken_source()).warm_up().reconcile(do_nothing);
  Running running(manager);
  EXPECT_EQ(error_of(running), "no such device");
  EXPECT_FALSE(client_.resource<Lease>("default").find("website"));
}

TEST_F(ControllerTest, AWarmUpThatIsNotReadyInTimeFailsTheRun) {
  const auto source =
      std::make_shared<FakeSource>([](const SourceContext&, const std::function<void()>&) {});
  Manager manager{client_, elected("us")};
  Builder<ConfigMap>(manager)
      .source(source)
      .warm_up()
      .options([](ControllerOptions& options) { options.sync_timeout = 50ms; })
      .reconcile(do_nothing);
  Running running(manager);
  EXPECT_THAT(error_of(running), HasSubstr("source fake was not ready"));
}

TEST_F(ControllerTest, AStopDuringTheWarmUpEndsTheRun) {
  const auto source =
      std::make_shared<FakeSource>([](const SourceContext&, const std::function<void()>&) {});
  Manager manager{client_, elected("us")};
  Builder<ConfigMap>(manager).source(source).warm_up().reconcile(do_nothing);
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return source->starts == 1; }));
  running.stop();
  EXPECT_EQ(source->stops, 1);
}

TEST_F(ControllerTest, SourcesWithoutWarmUpStartWithTheLeadership) {
  Manager leader{client_, elected("leader")};
  auto leading = std::make_unique<Running>(leader);
  ASSERT_TRUE(eventually([&] { return leader.is_leader(); }));
  const auto cold = ready_source();
  const auto warm = ready_source();
  const auto clock = std::make_shared<test::FakeClock>();
  ManagerOptions options = elected("standby");
  options.clock = clock;
  Manager standby{client_, options};
  Builder<ConfigMap>(standby).named("cold").source(cold).reconcile(do_nothing);
  Builder<ConfigMap>(standby).named("warm").source(warm).warm_up().reconcile(do_nothing);
  const Running running(standby);
  // The warm-up precedes the candidacy.
  ASSERT_TRUE(eventually([&] { return failed_candidacies(*clock) > 0; }));
  EXPECT_EQ(warm->starts, 1);
  EXPECT_EQ(cold->starts, 0);
  leading.reset();
  EXPECT_TRUE(eventually([&] {
    end_pause(*clock);
    return cold->starts == 1;
  }));
  EXPECT_EQ(warm->starts, 1);
}

// ---------------------------------------------------------------------------------- retries

class ControllerRetryTest : public ControllerTest {
 protected:
  using Reconcile = std::function<Result()>;

  /// The rate limiter's number of retries, before each run and after the last one.
  std::vector<int> failures(const std::vector<Reconcile>& results) const {
    const auto limiter =
        std::make_shared<workqueue::ItemExponentialFailureRateLimiter<Request>>(1ms, 10ms);
    const auto channel = std::make_shared<Channel>();
    channel->send({"default", "m"});
    std::mutex mutex;
    std::vector<int> out;
    std::atomic<std::size_t> runs{0};
    Manager manager{client_};
    Builder<ConfigMap>(manager).source(channel).rate_limiter(limiter).reconcile(
        [&](Request request, Context&) -> Result {
          const std::size_t run = runs++;
          const std::lock_guard lock(mutex);
          out.push_back(limiter->num_requeues(request));
          return run < results.size() ? results[run]() : Result();
        });
    Running running(manager);
    EXPECT_TRUE(eventually([&] { return runs == results.size(); }));
    running.stop();
    EXPECT_EQ(runs, results.size());
    // Each run but the last one has requeued the request.
    EXPECT_EQ(metric(manager, "workqueue_retries_total"), static_cast<double>(results.size() - 1));
    out.push_back(limiter->num_requeues({"default", "m"}));
    return out;
  }

  /// True if a request of priority 7 that is requeued waits with this priority.
  bool again_with(int priority, const Reconcile& result) const {
    const auto channel = std::make_shared<Channel>();
    channel->send({"default", "first"}, 7);
    test::Gate go_on;
    std::atomic<bool> first{true};
    Manager manager{client_};
    Builder<ConfigMap>(manager).source(channel).reconcile([&](Request request, Context&) -> Result {
      if (request.name == "second") {
        EXPECT_TRUE(go_on.wait());
        return {};
      }
      if (!first.exchange(false)) return {};
      // Occupies the only worker while the first request waits.
      channel->send({"default", "second"}, 100);
      return result();
    });
    const Running running(manager);
    const bool out = eventually(
        [&] { return metric(manager, "workqueue_depth", std::to_string(priority)) == 1; }, 20s);
    go_on.open();
    return out;
  }

  static Result fail() { throw std::runtime_error("not yet"); }
};

TEST_F(ControllerRetryTest, FailuresAccumulateUntilARunSucceeds) {
  EXPECT_THAT(failures({fail, requeue, fail, done}), ElementsAre(0, 1, 2, 3, 0));
}

TEST_F(ControllerRetryTest, ARequeueAfterATimeForgetsFailures) {
  EXPECT_THAT(failures({fail, [] { return requeue_after(1ms); }, done}), ElementsAre(0, 1, 0, 0));
}

TEST_F(ControllerRetryTest, ATerminalErrorIsNotRetried) {
  EXPECT_THAT(failures({fail, []() -> Result { throw TerminalError("an invalid spec"); }}),
              ElementsAre(0, 1, 0));
}

TEST_F(ControllerRetryTest, TheNextRunKeepsThePriority) {
  EXPECT_TRUE(again_with(7, requeue));
  EXPECT_TRUE(again_with(7, [] { return requeue_after(1ms); }));
  EXPECT_TRUE(again_with(7, fail));
}

TEST_F(ControllerRetryTest, AResultSetsThePriorityOfTheNextRun) {
  const auto with_priority = [](Result result) {
    result.priority = 9;
    return result;
  };
  EXPECT_TRUE(again_with(9, [&] { return with_priority(requeue()); }));
  EXPECT_TRUE(again_with(9, [&] { return with_priority(requeue_after(1ms)); }));
}

/// A program's rate limiter that throws.
class BrokenLimiter : public workqueue::RateLimiter<Request> {
 public:
  Clock::Duration when(const Request&) override {
    ++asked;
    throw std::runtime_error("no such bucket");
  }
  void forget(const Request&) override {
    ++asked;
    throw 1;
  }
  int num_requeues(const Request&) const override { return 0; }

  std::atomic<int> asked{0};
};

TEST_F(ControllerTest, ARateLimiterThatThrowsDoesNotLoseRequests) {
  for (const bool coroutine : {false, true}) {
    SCOPED_TRACE(coroutine);
    const auto limiter = std::make_shared<BrokenLimiter>();
    const auto channel = std::make_shared<Channel>();
    const auto clock = std::make_shared<test::FakeClock>();
    std::atomic<int> runs{0};
    ManagerOptions options;
    options.clock = clock;
    Manager manager{client_, options};
    Builder<ConfigMap> builder(manager);
    builder.source(channel).rate_limiter(limiter);
    const auto result = [&runs]() -> Result { return ++runs == 1 ? requeue() : done(); };
    if (coroutine) {
      builder.reconcile([&](Request, Context&) -> Awaitable<Result> { co_return result(); });
    } else {
      builder.reconcile([&](Request, Context&) -> Result { return result(); });
    }
    Running running(manager);
    channel->send({"default", "m"});
    ASSERT_TRUE(eventually([&] { return runs == 1 && limiter->asked == 1; }));
    // It runs again some seconds later.
    ASSERT_TRUE(eventually([&] {
      clock->advance(1s);
      return runs == 2 && limiter->asked == 2;
    }));
    channel->send({"default", "m"});
    EXPECT_TRUE(eventually([&] { return runs == 3; }));
    running.stop();
  }
}

TEST(ResultTest, TellsIfAndWhenTheRequestIsRequeued) {
  EXPECT_EQ(Result().next, Result::Next::kDone);
  EXPECT_EQ(done().next, Result::Next::kDone);
  EXPECT_EQ(requeue().next, Result::Next::kRequeue);
  EXPECT_EQ(requeue_after(1s).next, Result::Next::kRequeueAfter);
  EXPECT_EQ(requeue_after(1s).after, 1s);
  EXPECT_EQ(requeue_after(0s).next, Result::Next::kDone);
  EXPECT_EQ(requeue_after(-1s).next, Result::Next::kDone);
}

// ---------------------------------------------------------------------------------- options

/// A clock that throws at every third question.
class UnreliableClock : public Clock {
 public:
  TimePoint now() const override {
    if (++asked_ % 3 == 0) throw std::runtime_error("no time");
    return real_->now();
  }
  Awaitable<bool> sleep(Duration duration, std::stop_token stop) override {
    if (++asked_ % 3 == 0) throw 7;
    return real_->sleep(duration, std::move(stop));
  }

 private:
  const std::shared_ptr<Clock> real_ = Clock::real();
  mutable std::atomic<unsigned> asked_{0};
};

TEST_F(ControllerTest, AClockThatThrowsEndsNothing) {
  for (const bool with_election : {false, true}) {
    ManagerOptions options = with_election ? elected("us") : ManagerOptions();
    options.clock = std::make_shared<UnreliableClock>();
    Manager manager{client_, options};
    std::atomic<int> runs{0};
    std::atomic<int> async_runs{0};
    std::atomic<int> ticks{0};
    const std::string name = with_election ? "m-elected" : "m";
    Builder<ConfigMap>(manager)
        .concurrency(2)
        .reconcile_timeout(1min)
        .source(timer(1ms, [&](Enqueue&) { ++ticks; }))
        .reconcile([&](const Request& request, Context& context) -> Result {
          if (request.name != name) return {};
          ++runs;
          const auto map = context.find<ConfigMap>(request);
          if (!map || map->data()["value"] != "1") return {};
          const auto draft = map->edit();
          draft.data().set("value", "2");
          context.update(draft);
          return requeue_after(1ms);
        });
    Builder<ConfigMap>(manager).named("async").reconcile(
        [&](const Request& request, Context&) -> Awaitable<Result> {
          if (request.name == name) ++async_runs;
          co_return Result();
        });
    Running running(manager);
    put(name, "1");
    EXPECT_TRUE(eventually([&] { return runs >= 2 && async_runs >= 1 && ticks >= 10; }));
    running.stop();
  }
}

TEST_F(ControllerTest, TheConcurrencyDefaultsToTheManagers) {
  const auto concurrency = [](const Manager& manager, const std::string& name) {
    return metric(manager, "controller_runtime_max_concurrent_reconciles", name);
  };
  Manager one{client_};
  Builder<ConfigMap>(one).named("a").reconcile(do_nothing);
  EXPECT_EQ(concurrency(one, "a"), 1);
  ManagerOptions options;
  options.concurrency = 3;
  Manager three{client_, options};
  Builder<ConfigMap>(three).named("a").reconcile(do_nothing);
  Builder<ConfigMap>(three).named("b").concurrency(5).reconcile(do_nothing);
  EXPECT_EQ(concurrency(three, "a"), 3);
  EXPECT_EQ(concurrency(three, "b"), 5);
}

TEST_F(ControllerTest, OnlyRunsBeyondTheLimitAreTimeouts) {
  for (const char* name : {"a", "b", "c"}) put(name, "1");
  std::atomic<int> quick{0};
  std::atomic<int> unlimited{0};
  std::atomic<int> waiting{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).named("slow").reconcile_timeout(10ms).reconcile(
      [&](Request, Context& context) -> Result {
        EXPECT_TRUE(eventually([&] { return context.stop().stop_requested(); }));
        throw TerminalError("out of time");
      });
  Builder<ConfigMap>(manager).named("quick").reconcile_timeout(1h).reconcile(counting(quick));
  Builder<ConfigMap>(manager)
      .named("unlimited")
      .reconcile([&](Request, Context& context) -> Result {
        EXPECT_FALSE(context.stop().stop_requested());
        ++unlimited;
        return {};
      });
  // A stop of the manager is no timeout.
  Builder<ConfigMap>(manager).named("stopped").reconcile_timeout(1h).reconcile(
      [&](Request, Context& context) -> Result {
        ++waiting;
        EXPECT_TRUE(eventually([&] { return context.stop().stop_requested(); }));
        throw std::runtime_error("stopped");
      });
  Running running(manager);
  const auto timeouts = [&](const std::string& name) {
    return metric(manager, "controller_runtime_reconcile_timeouts_total", name);
  };
  EXPECT_TRUE(eventually([&] { return timeouts("slow") == 3; }));
  EXPECT_TRUE(eventually([&] { return quick == 3 && unlimited == 3 && waiting == 1; }));
  running.stop();
  EXPECT_EQ(timeouts("slow"), 3);
  EXPECT_EQ(timeouts("quick"), 0);
  EXPECT_EQ(timeouts("unlimited"), 0);
  EXPECT_EQ(timeouts("stopped"), 0);
}

TEST_F(ControllerTest, AllThreadsEnd) {
  put("m", "1");
  for (const bool with_election : {false, true}) {
    const test::ResourceMark before;
    {
      ManagerOptions options = with_election ? elected("us") : ManagerOptions();
      options.health_listen = "127.0.0.1:0";
      options.metrics_listen = "127.0.0.1:0";
      std::atomic<int> runs{0};
      Manager manager{client_, options};
      Builder<ConfigMap>(manager)
          .warm_up()
          .concurrency(3)
          .source(timer(1h, [](Enqueue&) {}))
          .reconcile(counting(runs));
      const Running running(manager);
      EXPECT_TRUE(eventually([&] { return runs == 1; }));
    }
    EXPECT_TRUE(eventually([&] { return test::thread_count() == before.threads(); }))
        << test::thread_count() << " threads, not " << before.threads();
  }
}

TEST_F(ControllerTest, AManagerThatNeverRanHasNoThreads) {
  put("m", "1");
  const test::ResourceMark before;
  Manager manager{client_};
  Builder<ConfigMap>(manager).concurrency(3).reconcile(do_nothing);
  EXPECT_EQ(test::thread_count(), before.threads());
}

}  // namespace
}  // namespace lookout::controller
