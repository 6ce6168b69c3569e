// Errors, late additions and the end of a manager's runnables; its HTTP endpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lookout/base/labelled_metrics.h"
#include "lookout/controller/builder.h"
#include "lookout/k8s/coordination/v1_draft.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"
#include "tests/support/own_resources.h"

namespace lookout::controller {
namespace {

class ManagerLifecycleTest : public ManagerFixture {
 protected:
  static bool stopped(const std::stop_token& stop) {
    return eventually([&] { return stop.stop_requested(); });
  }
};

TEST_F(ManagerLifecycleTest, AnErrorDuringTheStopIsIgnored) {
  std::atomic<bool> begun{false};
  Manager manager{client_};
  manager.add("late", [&](std::stop_token stop) {
    begun = true;
    EXPECT_TRUE(stopped(stop));
    std::this_thread::sleep_for(20ms);
    throw std::runtime_error("cancelled");
  });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return begun.load(); }));
  EXPECT_NO_THROW(running.stop());
}

TEST_F(ManagerLifecycleTest, TheFirstErrorIsKeptIfTheStopTimesOut) {
  DeafRunnable deaf;
  ManagerOptions options;
  options.graceful_shutdown_timeout = 10ms;
  options.on_shutdown_overrun = deaf.on_overrun();
  Manager manager{client_, options};
  manager.add("deaf", std::ref(deaf));
  manager.add("fails", [&](std::stop_token) {
    EXPECT_TRUE(deaf.has_begun());
    throw std::runtime_error("not feeling like that");
  });
  Running running(manager);
  EXPECT_EQ(error_of(running), "not feeling like that");
  EXPECT_TRUE(deaf.overrun());
}

TEST_F(ManagerLifecycleTest, WithoutAGracefulTimeoutAStopWaitsForAllRunnables) {
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  std::atomic<bool> overrun{false};
  ManagerOptions options;
  options.graceful_shutdown_timeout = -1ms;
  options.on_shutdown_overrun = [&] { overrun = true; };
  Manager manager{client_, options};
  manager.add("slow", [&](std::stop_token stop) {
    begun = true;
    EXPECT_TRUE(stopped(stop));
    EXPECT_EQ(manager.stop_time_left(), std::nullopt) << "the stop has no deadline";
    ended = true;
  });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return begun.load(); }));
  EXPECT_NO_THROW(running.stop());
  EXPECT_TRUE(ended);
  EXPECT_FALSE(overrun);
}

TEST_F(ManagerLifecycleTest, TheLongestTimesAreNoLimits) {
  constexpr auto kForever = std::chrono::milliseconds::max();
  put("m", "1");
  std::atomic<bool> ran{false};
  ManagerOptions options;
  options.graceful_shutdown_timeout = kForever;
  options.catch_up_timeout = kForever;
  options.cache.sync_timeout = kForever;
  Manager manager{client_, options};
  Builder<ConfigMap>(manager)
      .options([&](ControllerOptions& controller) {
        controller.reconcile_timeout = kForever;
        controller.stuck_after = kForever;
        controller.sync_timeout = kForever;
        controller.write_timeout = kForever;
      })
      .reconcile([&](Request request, Context& context) -> Result {
        if (const auto map = context.find<ConfigMap>(request)) {
          const auto change = map->edit();
          change.data().set("seen", "yes");
          context.patch(change);
        }
        ran = true;
        return {};
      });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return ran.load(); }));
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_timeouts_total"), 0);
  EXPECT_NO_THROW(running.stop());
}

TEST_F(ManagerLifecycleTest, ASyncTimeoutOf0IsTheDefault) {
  ManagerOptions options;
  options.cache.sync_timeout = 0ms;
  Manager manager{client_, options};
  Builder<ConfigMap>(manager)
      .options([](ControllerOptions& controller) { controller.sync_timeout = 0ms; })
      .reconcile([](Request, Context&) -> Result { return {}; });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  EXPECT_NO_THROW(running.stop());
}

TEST_F(ManagerLifecycleTest, ACallbackThatThrowsDoesNotBlockTheStop) {
  DeafRunnable deaf;
  ManagerOptions options = elected("a");
  options.graceful_shutdown_timeout = 10ms;
  options.on_shutdown_overrun = [&] {
    deaf.on_overrun()();
    throw 1;
  };
  Manager manager{client_, options};
  manager.add("deaf", std::ref(deaf));
  Running running(manager);
  ASSERT_TRUE(deaf.has_begun());
  EXPECT_THROW(running.stop(), ShutdownOverrunError);
  EXPECT_FALSE(manager.is_leader());
}

TEST_F(ManagerLifecycleTest, AsioCancellationEndsARunLikeAStop) {
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  std::atomic<int> reconciles{0};
  put("m", "1");
  Manager manager{client_};
  manager.add("slow", [&](std::stop_token stop) {
    begun = true;
    EXPECT_TRUE(stopped(stop));
    std::this_thread::sleep_for(20ms);
    ended = true;
  });
  Builder<ConfigMap>(manager).reconcile([&](Request, Context&) -> Result {
    ++reconciles;
    return requeue_after(1ms);
  });
  boost::asio::cancellation_signal cancel;
  std::promise<void> done;
  const auto strand = boost::asio::make_strand(client_.loop().context());
  boost::asio::co_spawn(
      strand, manager.async_run(std::stop_token()),
      boost::asio::bind_cancellation_slot(cancel.slot(), [&](const std::exception_ptr& error) {
        EXPECT_FALSE(error);
        EXPECT_TRUE(ended);
        done.set_value();
      }));
  EXPECT_TRUE(eventually([&] { return begun && reconciles > 0; }));
  EXPECT_EQ(manager.stop_time_left(), std::nullopt);
  boost::asio::post(strand, [&] { cancel.emit(boost::asio::cancellation_type::terminal); });
  test::wait_for(done.get_future());
  EXPECT_TRUE(ended);
  ASSERT_TRUE(manager.stop_time_left());
  EXPECT_LE(*manager.stop_time_left(), 30s);
  const int before = reconciles;
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(reconciles, before);
}

TEST_F(ManagerLifecycleTest, ItsDestructorEndsARunOnAnotherThread) {
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  std::future<void> run;
  {
    Manager manager{client_, elected("a")};
    manager.add("slow", [&](std::stop_token stop) {
      begun = true;
      EXPECT_TRUE(stopped(stop));
      std::this_thread::sleep_for(20ms);
      ended = true;
    });
    run = std::async(std::launch::async, [&manager] { manager.run({}); });
    EXPECT_TRUE(eventually([&] { return begun.load(); }));
  }
  EXPECT_TRUE(ended) << "no code of the program runs any more";
  const auto lease = client_.resource<k8s::coordination::v1::Lease>("default").get("website");
  EXPECT_EQ(lease.spec().holder_identity(), "") << "the lease is released";
  EXPECT_NO_THROW(test::get(std::move(run)));
}

TEST_F(ManagerLifecycleTest, ItsDestructorOnTheEventLoopEndsARunToo) {
  auto manager = std::make_unique<Manager>(client_);
  std::atomic<bool> begun{false};
  manager->add("runs", [&](std::stop_token stop) {
    begun = true;
    EXPECT_TRUE(stopped(stop));
  });
  auto run = std::async(std::launch::async, [running = manager.get()] { running->run({}); });
  EXPECT_TRUE(eventually([&] { return begun.load(); }));
  boost::asio::post(client_.loop().context(), [&] { manager.reset(); });
  EXPECT_NO_THROW(test::get(std::move(run)));
}

TEST_F(ManagerLifecycleTest, StartsNothingAfterStop) {
  std::atomic<int> started{0};
  Manager manager{client_};
  manager.cache().declare<ConfigMap>();
  for (const auto group : {RunnableGroup::kOthers, RunnableGroup::kLeader})
    manager.add(
        "never", [&](std::stop_token) { ++started; }, group);
  std::stop_source stop;
  stop.request_stop();
  manager.run(stop.get_token());
  EXPECT_EQ(started, 0);
}

TEST_F(ManagerLifecycleTest, RunnablesMayBeAddedFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10;
  std::atomic<int> started{0};
  std::atomic<int> ended{0};
  Manager manager{client_};
  const auto run = [&](std::stop_token stop) {
    ++started;
    EXPECT_TRUE(stopped(stop));
    ++ended;
  };
  manager.add("early", run, RunnableGroup::kOthers);
  Running running(manager);
  std::vector<std::future<void>> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::async(std::launch::async, [&] {
      for (int i = 0; i < kEach; ++i)
        manager.add("late", run, i % 2 == 0 ? RunnableGroup::kOthers : RunnableGroup::kLeader);
    }));
  }
  for (auto& thread : threads) test::get(thread);
  EXPECT_TRUE(eventually([&] { return started == kThreads * kEach + 1; }));
  running.stop();
  EXPECT_EQ(ended, kThreads * kEach + 1);
}

TEST_F(ManagerLifecycleTest, AdditionsDuringTheStopAreRejected) {
  std::atomic<bool> begun{false};
  test::Gate go_on;
  Manager manager{client_};
  manager.add("slow", [&](std::stop_token stop) {
    begun = true;
    EXPECT_TRUE(stopped(stop));
    EXPECT_TRUE(go_on.wait());
  });
  std::stop_source stop;
  auto run = std::async(std::launch::async, [&] { manager.run(stop.get_token()); });
  ASSERT_TRUE(eventually([&] { return begun.load(); }));
  stop.request_stop();
  EXPECT_TRUE(eventually([&] {
    try {
      manager.add("late", [](std::stop_token) {});
    } catch (const InvalidArgument&) {
      return true;
    }
    return false;
  }));
  EXPECT_THROW(
      Builder<ConfigMap>(manager).reconcile([](Request, Context&) -> Result { return {}; }),
      InvalidArgument);
  go_on.open();
  test::get(run);
}

TEST_F(ManagerLifecycleTest, AKindMayBeDeclaredWhileTheManagerRuns) {
  put("m", "1");
  Manager manager{client_};
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  EXPECT_THROW(manager.cache().view().list<ConfigMap>(), NotCachedError);
  manager.cache().declare<ConfigMap>();
  EXPECT_EQ(manager.cache().view().list<ConfigMap>().size(), 1u);
}

TEST_F(ManagerLifecycleTest, AControllerThatIsAddedLateWaitsForItsCaches) {
  for (int i = 0; i < 5; ++i) put("m" + std::to_string(i), "1");
  Manager manager{client_};
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  std::atomic<int> runs{0};
  std::atomic<int> incomplete{0};
  Builder<ConfigMap>(manager).reconcile([&](Request, Context& context) -> Result {
    if (context.list<ConfigMap>().size() != 5) ++incomplete;
    ++runs;
    return {};
  });
  EXPECT_TRUE(eventually([&] { return runs == 5; }));
  EXPECT_EQ(incomplete, 0);
}

TEST_F(ManagerLifecycleTest, RunnablesThatHaveEndedAreForgotten) {
  Manager manager{client_};
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> weak = held;
  manager.add("short", [held = std::move(held)](std::stop_token) {});
  const Running running(manager);
  EXPECT_TRUE(eventually([&] {
    manager.add("next", [](std::stop_token) {});
    return weak.expired();
  }));
}

TEST_F(ManagerLifecycleTest, NobodyLeadsAfterTheRun) {
  Manager manager{client_};
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  running.stop();
  EXPECT_FALSE(manager.is_leader());
}

TEST_F(ManagerLifecycleTest, ALeaseThatIsLostDuringTheStopIsNoFailure) {
  Manager manager{client_, elected("us")};
  std::atomic<bool> begun{false};
  manager.add("slow", [&](std::stop_token stop) {
    begun = true;
    EXPECT_TRUE(stopped(stop));
    client_.resource<k8s::coordination::v1::Lease>("default").patch(
        "website", rest::PatchType::kMerge,
        R"({"spec":{"holderIdentity":"thief","leaseDurationSeconds":60}})");
    EXPECT_TRUE(eventually([&] { return !manager.is_leader(); }));
  });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return begun.load(); }));
  EXPECT_NO_THROW(running.stop());
}

TEST_F(ManagerLifecycleTest, ASourceThatDoesNotEndIsReported) {
  put("m", "1");
  DeafRunnable deaf;
  ManagerOptions options;
  options.graceful_shutdown_timeout = 10ms;
  options.on_shutdown_overrun = deaf.on_overrun();
  Manager manager{client_, options};
  Builder<Secret>(manager)
      .watches<ConfigMap>([&](const ConfigMap&, Enqueue&) { deaf({}); })
      .reconcile([](Request, Context&) -> Result { return {}; });
  Running running(manager);
  ASSERT_TRUE(deaf.has_begun());
  running.request_stop();
  EXPECT_THAT(error_of(running), HasSubstr("still running: the sources of controllers"));
  EXPECT_TRUE(deaf.overrun());
}

TEST_F(ManagerLifecycleTest, RejectsInvalidElectionOptions) {
  const auto make = [&](const auto& change) {
    LeaderElection election;
    election.name = "website";
    election.ns = "default";
    change(election);
    ManagerOptions options;
    options.leader_election = election;
    const Manager manager(client_, options);
  };
  EXPECT_NO_THROW(make([](LeaderElection&) {}));
  EXPECT_THROW(make([](LeaderElection& election) { election.name.clear(); }), InvalidArgument);
  EXPECT_THROW(make([](LeaderElection& election) { election.renew_deadline = 15s; }),
               InvalidArgument);
  EXPECT_THROW(make([](LeaderElection& election) { election.retry_period = 10s; }),
               InvalidArgument);
}

TEST_F(ManagerLifecycleTest, ALeaseIsKeptWithoutReleaseOnCancel) {
  LeaderElection election;
  election.name = "website";
  election.ns = "default";
  election.identity = "us";
  election.release = false;
  ManagerOptions options;
  options.leader_election = election;
  Manager manager{client_, options};
  {
    const Running running(manager);
    EXPECT_TRUE(eventually([&] { return manager.is_leader(); }));
  }
  const auto lease = client_.resource<k8s::coordination::v1::Lease>("default").get("website");
  EXPECT_EQ(lease.spec().holder_identity(), "us");
}

// ---------------------------------------------------------------------------------- pages

class ManagerServersTest : public ManagerLifecycleTest {};

TEST_F(ManagerServersTest, EndWithTheRun) {
  Manager manager{client_, listening()};
  Running running(manager);
  EXPECT_TRUE(eventually([&] { return get(manager.health_port(), "/healthz") == "ok"; }));
  EXPECT_THAT(get(manager.metrics_port(), "/metrics"), testing::Not(testing::IsEmpty()));
  running.stop();
  EXPECT_EQ(get(manager.health_port(), "/healthz"), "no answer");
  EXPECT_EQ(get(manager.metrics_port(), "/metrics"), "no answer");
}

TEST_F(ManagerServersTest, ReadinessAndHealthAreSeparate) {
  std::atomic<bool> ready{false};
  ManagerOptions options = listening();
  options.ready_when_caches_are_live = false;
  Manager manager{client_, options};
  manager.add_ready_check("warm", [&]() -> std::optional<std::string> {
    if (!ready) return "cold";
    return std::nullopt;
  });
  const Running running(manager);
  const auto port = manager.health_port();
  EXPECT_EQ(get(port, "/healthz"), "ok");
  EXPECT_THAT(get(port, "/readyz"), HasSubstr("500"));
  EXPECT_THAT(get(port, "/readyz/warm"), HasSubstr("500"));
  EXPECT_THAT(get(port, "/healthz/warm"), HasSubstr("404"));
  ready = true;
  EXPECT_EQ(get(port, "/readyz"), "ok");
  EXPECT_EQ(get(port, "/readyz/warm"), "ok");
  // An endpoint without checks has a check "ping", which always succeeds.
  EXPECT_EQ(get(port, "/healthz/ping"), "ok");
  EXPECT_EQ(get(port, "/healthz?verbose"), "[+]ping ok\nhealthz check passed\n");
  EXPECT_THAT(get(port, "/readyz/ping"), HasSubstr("404"));
}

TEST_F(ManagerServersTest, AFailureNamesTheFailedChecksWithoutReasons) {
  ManagerOptions options = listening();
  options.ready_when_caches_are_live = false;
  Manager manager{client_, options};
  manager.add_ready_check("bad", []() -> std::optional<std::string> { return "secret"; });
  manager.add_ready_check("good", []() -> std::optional<std::string> { return std::nullopt; });
  const Running running(manager);
  const auto port = manager.health_port();
  const std::string page = get(port, "/readyz");
  EXPECT_THAT(page, HasSubstr("500"));
  EXPECT_THAT(page, HasSubstr("[-]bad failed: reason withheld"));
  EXPECT_THAT(page, HasSubstr("[+]good ok"));
  EXPECT_THAT(page, HasSubstr("readyz check failed"));
  EXPECT_THAT(page, testing::Not(HasSubstr("secret")));
  EXPECT_THAT(get(port, "/readyz?verbose"), HasSubstr("[-]bad failed: reason withheld"));
  // A request for one check does not run the others.
  EXPECT_EQ(get(port, "/readyz/good"), "ok");
  EXPECT_THAT(get(port, "/readyz/bad"), HasSubstr("secret"));
}

/// Counts its collections.
class OwnMetrics : public metrics::Source {
 public:
  void collect(std::vector<metrics::Sample>& out) const override {
    metrics::Collector(out, {{"color", "red"}}).gauge("own_things", "Things.", 3);
  }
};

TEST_F(ManagerServersTest, ServeOnlyTheProgramsMetrics) {
  Manager manager{client_, listening()};
  manager.add_metrics(std::make_shared<OwnMetrics>());
  const Running running(manager);
  EXPECT_TRUE(eventually([&] {
    return get(manager.metrics_port(), "/metrics").find("own_things{color=\"red\"} 3\n") !=
           std::string::npos;
  }));
  EXPECT_THAT(get(manager.metrics_port(), "/"), HasSubstr("404"));
  EXPECT_THAT(get(manager.metrics_port(), "/healthz"), HasSubstr("404"));
  EXPECT_THAT(get(manager.health_port(), "/metrics"), HasSubstr("404"));
}

TEST_F(ManagerServersTest, ServeTheProgramsCountersWithTheirLabels) {
  Manager manager{client_, listening()};
  const auto conflicts =
      metrics::CounterVec::create("own_conflicts_total", "Conflicts.", {"namespace"});
  manager.add_metrics(conflicts);
  const Running running(manager);
  conflicts->with({"default"})->add();
  EXPECT_TRUE(eventually([&] {
    return get(manager.metrics_port(), "/metrics")
               .find("own_conflicts_total{namespace=\"default\"} 1\n") != std::string::npos;
  }));
}

TEST_F(ManagerServersTest, ACheckThatHangsDelaysNoOtherRequest) {
  constexpr int kMostCalls = 16;
  test::Gate go_on;
  std::atomic<int> calls{0};
  ManagerOptions options = listening();
  options.ready_when_caches_are_live = false;
  Manager manager{client_, options};
  manager.add_ready_check("database", [&]() -> std::optional<std::string> {
    ++calls;
    EXPECT_TRUE(go_on.wait());
    return std::nullopt;
  });
  Running running(manager);
  const auto port = manager.health_port();
  std::vector<std::future<std::string>> hanging;
  hanging.reserve(kMostCalls);
  for (int i = 0; i < kMostCalls; ++i)
    hanging.push_back(std::async(std::launch::async, [&] { return get(port, "/readyz"); }));
  EXPECT_TRUE(eventually([&] { return calls == kMostCalls; }));
  EXPECT_EQ(get(port, "/healthz"), "ok");
  EXPECT_THAT(get(port, "/readyz/database"), HasSubstr("16 calls of it have not returned"));
  go_on.open();
  for (auto& each : hanging) EXPECT_EQ(test::get(each), "ok");
  EXPECT_EQ(get(port, "/readyz"), "ok");
}

TEST_F(ManagerServersTest, ACheckThatDoesNotEndIsReported) {
  DeafRunnable deaf;
  ManagerOptions options = listening();
  options.ready_when_caches_are_live = false;
  options.graceful_shutdown_timeout = 10ms;
  options.on_shutdown_overrun = deaf.on_overrun();
  Manager manager{client_, options};
  manager.add_ready_check("database", [&]() -> std::optional<std::string> {
    deaf({});
    return std::nullopt;
  });
  Running running(manager);
  auto hanging = std::async(std::launch::async,
                            [&, port = manager.health_port()] { return get(port, "/readyz"); });
  ASSERT_TRUE(deaf.has_begun());
  running.request_stop();
  EXPECT_THAT(error_of(running), HasSubstr("still running: the HTTP servers"));
  test::get(hanging);
}

TEST_F(ManagerServersTest, NoMetricsAreAnError) {
  Manager manager{client_};
  EXPECT_THROW(manager.add_metrics(nullptr), InvalidArgument);
}

TEST_F(ManagerServersTest, AMetricsAddressInUseIsAnError) {
  ManagerOptions taken;
  taken.metrics_listen = "127.0.0.1:" + std::to_string(server_.port());
  EXPECT_THROW(Manager(client_, taken), Error);
}

}  // namespace
}  // namespace lookout::controller
