#include "lookout/controller/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/controller/builder.h"
#include "lookout/controller/signals.h"
#include "lookout/k8s/coordination/v1_draft.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"
#include "tests/support/held.h"

namespace lookout::controller {
namespace {

using k8s::coordination::v1::Lease;

class ManagerTest : public ManagerFixture {
 protected:
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(what);
  }
  std::vector<std::string> notes() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
  bool noted(const std::string& what) const {
    const auto all = notes();
    return std::find(all.begin(), all.end(), what) != all.end();
  }
  /// Records its start and its end.
  Manager::Run noting(const std::string& name) {
    return [this, name](std::stop_token stop) {
      note("+" + name);
      EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
      note("-" + name);
    };
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

TEST_F(ManagerTest, GroupsStartAndStopInOrder) {
  put("m", "1");
  Manager manager{client_, elected("a")};
  manager.cache().declare<ConfigMap>();
  manager.add("leader", noting("leader"));
  manager.add(
      "others",
      [&](std::stop_token stop) {
        EXPECT_EQ(manager.cache().view().list<ConfigMap>().size(), 1u);
        note("+others");
        EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
        note("-others");
      },
      RunnableGroup::kOthers);
  manager.add("webhooks", noting("webhooks"), RunnableGroup::kWebhooks);
  manager.add_async(
      "servers",
      [&](std::stop_token stop) -> Awaitable<void> {
        note("+servers");
        while (!stop.stop_requested()) co_await Clock::real()->sleep(1h, stop);
        // The caches have ended, and the lease is still held.
        EXPECT_EQ(metric(manager, "informer_live", "configmaps"), 0);
        const auto leases = client_.resource<Lease>("default");
        const Lease lease = co_await leases.async_get("website");
        EXPECT_EQ(lease.spec().holder_identity(), "a");
        note("-servers");
      },
      RunnableGroup::kServers);
  Running running(manager);
  // Runnables are threads: a group does not wait for the first actions of the previous one.
  ASSERT_TRUE(eventually([&] {
    return noted("+servers") && noted("+webhooks") && noted("+others") && noted("+leader");
  }));
  EXPECT_TRUE(manager.is_leader());
  EXPECT_EQ(metric(manager, "informer_live", "configmaps"), 1);
  running.stop();
  const auto all = notes();
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ((std::vector<std::string>(all.begin() + 4, all.end())),
            (std::vector<std::string>{"-others", "-leader", "-webhooks", "-servers"}));
  EXPECT_EQ(lookout::test::held(client_.resource<Lease>("default").get("website"))
                .spec()
                .holder_identity(),
            "");
  EXPECT_FALSE(manager.is_leader());
}

TEST_F(ManagerTest, TheErrorOfARunnableEndsTheRun) {
  Manager manager{client_};
  manager.add("others", noting("others"), RunnableGroup::kOthers);
  manager.add("fails", [&](std::stop_token) {
    EXPECT_TRUE(eventually([&] { return noted("+others"); }));
    throw std::runtime_error("no disk");
  });
  Running running(manager);
  EXPECT_THROW(
      try { running.end(); } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "no disk");
        throw;
      },
      std::runtime_error);
  EXPECT_TRUE(noted("-others"));
}

TEST_F(ManagerTest, ARunnableMayEndEarlyAndMayBeAddedLate) {
  Manager manager{client_};
  manager.add("short", [&](std::stop_token) { note("short"); });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return noted("short"); }));
  manager.add("late", noting("late"));
  ASSERT_TRUE(eventually([&] { return noted("+late"); }));
  EXPECT_FALSE(running.ended());
  running.stop();
  EXPECT_TRUE(noted("-late"));
  EXPECT_THROW(manager.add("never", noting("never")), InvalidArgument);
}

TEST_F(ManagerTest, RunsOnce) {
  Manager manager{client_};
  std::stop_source stopped;
  stopped.request_stop();
  manager.run(stopped.get_token());
  EXPECT_THROW(manager.run(stopped.get_token()), InvalidArgument);
}

TEST_F(ManagerTest, TheNextLeaderStartsAfterTheLastReconcile) {
  put("m", "1");
  test::Gate working;
  std::atomic<bool> active{false};
  const auto clock = std::make_shared<test::FakeClock>();  // of the second manager
  // The second manager tries at least once from the start to the end.
  const auto tries_in_vain = [&] {
    const auto before = failed_candidacies(*clock);
    return eventually([&] {
      end_pause(*clock);
      return failed_candidacies(*clock) >= before + 2;
    });
  };
  Manager first{client_, elected("first")};
  Builder<ConfigMap>(first).reconcile([&](Request, Context& context) -> Result {
    active = true;
    working.open();
    EXPECT_TRUE(eventually([&] { return context.stop().stop_requested(); }));
    EXPECT_TRUE(tries_in_vain());
    active = false;
    return {};
  });
  auto running_first = std::make_unique<Running>(first);
  ASSERT_TRUE(working.wait());

  test::Gate second_works;
  ManagerOptions options = elected("second");
  options.clock = clock;
  Manager second{client_, options};
  Builder<ConfigMap>(second).reconcile([&](Request, Context&) -> Result {
    EXPECT_FALSE(active);
    second_works.open();
    return {};
  });
  const Running running_second(second);
  ASSERT_TRUE(tries_in_vain());
  EXPECT_FALSE(second.is_leader());
  EXPECT_FALSE(second_works.is_open());
  const auto token = first.leadership()->fencing_token();
  running_first->stop();
  EXPECT_FALSE(active);
  // At once, not after the lease duration of a minute.
  const auto released = clock->now();
  EXPECT_TRUE(eventually([&] {
    end_pause(*clock);
    return second_works.is_open();
  }));
  EXPECT_LT(clock->now() - released, 20s);
  EXPECT_GT(second.leadership()->fencing_token(), token);
}

TEST_F(ManagerTest, ALostLeaseStopsTheWorkAndRejectsWrites) {
  put("m", "1");
  test::Gate working;
  std::atomic<bool> refused{false};
  Manager manager{client_, elected("us")};
  manager.add("others", noting("others"), RunnableGroup::kOthers);
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    working.open();
    EXPECT_TRUE(eventually([&] { return context.stop().stop_requested(); }));
    const auto change = map->edit();
    change.data().set("value", "from the grave");
    try {
      context.patch(change);
    } catch (const LeadershipLostError&) {
      refused = true;
    }
    return {};
  });
  Running running(manager);
  ASSERT_TRUE(working.wait());
  client_.resource<Lease>("default").patch(
      "website", rest::PatchType::kMerge,
      R"({"spec":{"holderIdentity":"thief","leaseDurationSeconds":60}})");
  EXPECT_THROW(running.end(), LeaderElectionLostError);
  EXPECT_TRUE(refused);
  EXPECT_TRUE(noted("-others"));
  EXPECT_EQ(lookout::test::held(maps_.get("m")).data()["value"], "1");
  EXPECT_EQ(lookout::test::held(client_.resource<Lease>("default").get("website"))
                .spec()
                .holder_identity(),
            "thief");
}

TEST_F(ManagerTest, TheLeaseHasTheConfiguredLabels) {
  ManagerOptions options = elected("a");
  options.leader_election->labels = {{"team", "web"}};
  Manager manager{client_, options};
  manager.add("leader", noting("leader"));
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return noted("+leader"); }));
  const Lease lease = client_.resource<Lease>("default").get("website");
  EXPECT_EQ(lease.metadata().labels()["team"], "web");
}

TEST_F(ManagerTest, EventsOfTheLeaseNameTheLeader) {
  struct Sink : EventSink {
    void event(const api::Object& regarding, EventType type, std::string_view reason,
               const std::string& message, std::string_view controller) override {
      EXPECT_EQ(regarding.kind(), "Lease");
      EXPECT_EQ(regarding.key(), "default/website");
      EXPECT_FALSE(regarding.uid().empty());
      EXPECT_EQ(type, EventType::kNormal);
      const std::lock_guard lock(mutex);
      texts.push_back(fmt::format("{}: {} {}", controller, reason, message));
    }
    std::mutex mutex;
    std::vector<std::string> texts;
  };
  const auto sink = std::make_shared<Sink>();
  ManagerOptions options = elected("a");
  options.events = sink;
  Manager manager{client_, options};
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  running.stop();
  EXPECT_THAT(sink->texts, ElementsAre("a: LeaderElection a became leader",
                                       "a: LeaderElection a stopped leading"));
}

TEST_F(ManagerTest, AStandbyWarmsUpAndRunsLeaderlessRunnables) {
  put("m", "1");
  Manager leader{client_, elected("leader")};
  leader.add("work", noting("leader"));
  auto leading = std::make_unique<Running>(leader);
  ASSERT_TRUE(eventually([&] { return noted("+leader"); }));

  std::atomic<int> warm{0};
  std::atomic<int> everywhere{0};
  Manager standby{client_, elected("standby")};
  Builder<ConfigMap>(standby).named("warm").warm_up().reconcile(counting(warm));
  Builder<ConfigMap>(standby)
      .named("everywhere")
      .needs_leader_election(false)
      .reconcile([&](Request, Context& context) -> Result {
        if (everywhere++ == 0) context.create(ConfigMap::draft("made", "default"));
        return {};
      });
  const Running running(standby);
  EXPECT_TRUE(eventually([&] { return everywhere > 0; }));
  // The sources run, the workers do not.
  EXPECT_TRUE(eventually([&] { return metric(standby, "workqueue_adds_total", "warm") >= 1; }));
  EXPECT_EQ(warm, 0);
  leading->stop();
  EXPECT_TRUE(eventually([&] { return warm > 0; }));
}

TEST_F(ManagerTest, ACandidateThatDoesNotLeadStopsAtOnce) {
  Manager leader{client_, elected("leader")};
  leader.add("work", noting("leader"));
  const Running leading(leader);
  ASSERT_TRUE(eventually([&] { return noted("+leader"); }));
  Manager standby{client_, elected("standby")};
  standby.add("never", noting("never"));
  standby.add("others", noting("others"), RunnableGroup::kOthers);
  Running running(standby);
  ASSERT_TRUE(eventually([&] { return noted("+others"); }));
  running.stop();
  EXPECT_FALSE(noted("+never"));
}

TEST_F(ManagerTest, ASlowShutdownIsReported) {
  DeafRunnable deaf;
  Manager manager{client_, deaf.options(20ms)};
  manager.add("deaf", [&](const std::stop_token& stop) {
    deaf(stop);
    note("-deaf");
  });
  Running running(manager);
  ASSERT_TRUE(deaf.has_begun());
  try {
    running.stop();
    FAIL() << "no error";
  } catch (const ShutdownOverrunError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the shutdown takes too long; still running: deaf"));
  }
  // run() still waits for it.
  EXPECT_TRUE(noted("-deaf"));
}

TEST_F(ManagerTest, CachesThatDoNotSyncFailTheRun) {
  ManagerOptions options;
  options.cache.sync_timeout = 100ms;
  Manager manager{client_, options};
  manager.cache().declare(api::Resource("example.com", "v1", "Website", "websites", true), false,
                          {});
  Running running(manager);
  EXPECT_THAT(error_of(running), HasSubstr("websites.example.com"));
}

TEST_F(ManagerTest, AStopWhileCachesSyncEndsTheRun) {
  Manager manager{client_};
  manager.cache().declare(api::Resource("example.com", "v1", "Website", "websites", true), false,
                          {});
  manager.add("others", noting("others"), RunnableGroup::kOthers);
  Running running(manager);
  // The first list has failed.
  ASSERT_TRUE(eventually([&] {
    return manager.cache().check().value_or("").find("CustomResourceDefinition") !=
           std::string::npos;
  }));
  running.stop();
  EXPECT_TRUE(notes().empty());
}

// ------------------------------------------------------------------------------------ HTTP

class ManagerPagesTest : public ManagerTest {};

TEST_F(ManagerPagesTest, ChecksHaveNames) {
  std::atomic<bool> broken{false};
  Manager manager{client_, listening()};
  manager.add_health_check("disk", [&]() -> std::optional<std::string> {
    if (broken) return "no space left";
    return std::nullopt;
  });
  manager.add_health_check("cpu", [&]() -> std::optional<std::string> {
    if (broken) throw std::runtime_error("too hot");
    return std::nullopt;
  });
  EXPECT_THROW(manager.add_health_check("cpu", {}), InvalidArgument);
  const Running running(manager);
  const auto port = manager.health_port();
  EXPECT_EQ(get(port, "/healthz"), "ok");
  EXPECT_EQ(get(port, "/healthz?verbose"), "[+]cpu ok\n[+]disk ok\nhealthz check passed\n");
  EXPECT_EQ(get(port, "/healthz/disk"), "ok");
  EXPECT_THAT(get(port, "/healthz/none"), HasSubstr("404"));
  EXPECT_THAT(get(port, "/nothing"), HasSubstr("404"));
  EXPECT_THAT(get(port, "/healthzz"), HasSubstr("404"));
  broken = true;
  EXPECT_THAT(get(port, "/healthz"), testing::StartsWith("500"));
  EXPECT_THAT(get(port, "/healthz/disk"), HasSubstr("500"));
  EXPECT_EQ(get(port, "/healthz?exclude=disk&exclude=cpu"), "ok");
  EXPECT_EQ(get(port, "/healthz?verbose&exclude=disk&exclude=cpu&exclude=x"),
            "[+]cpu excluded: ok\n[+]disk excluded: ok\nwarn: some health checks cannot be "
            "excluded: no matches for \"x\"\nhealthz check passed\n");
}

TEST_F(ManagerPagesTest, IsReadyWhenTheCachesHaveSynced) {
  Manager manager{client_, listening()};
  manager.cache().declare(api::Resource("example.com", "v1", "Website", "websites", true), false,
                          {});
  const Running running(manager);
  EXPECT_THAT(get(manager.health_port(), "/readyz"), testing::StartsWith("500"));
  EXPECT_EQ(get(manager.health_port(), "/healthz"), "ok");

  Manager other{client_, listening()};
  other.cache().declare<ConfigMap>();
  const Running running_other(other);
  EXPECT_TRUE(eventually([&] {
    return get(other.health_port(), "/readyz?verbose") == "[+]caches ok\nreadyz check passed\n";
  }));
}

TEST_F(ManagerPagesTest, ServeMetricsForPrometheus) {
  put("m", "1");
  Manager manager{client_, listening()};
  Builder<ConfigMap>(manager).reconcile([](Request, Context&) -> Result { return {}; });
  const Running running(manager);
  const auto page = [&] { return get(manager.metrics_port(), "/metrics"); };
  EXPECT_TRUE(eventually([&] {
    return page().find(
               "controller_runtime_reconcile_total{controller=\"configmap\","
               "result=\"success\"} 1\n") != std::string::npos;
  }));
  const std::string all = page();
  for (const char* line :
       {"# TYPE controller_runtime_reconcile_total counter\n",
        "controller_runtime_reconcile_total{controller=\"configmap\",result=\"error\"} 0\n",
        "controller_runtime_reconcile_panics_total{controller=\"configmap\"} 0\n",
        "controller_runtime_max_concurrent_reconciles{controller=\"configmap\"} 1\n",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"configmap\",le=\"+Inf\"} "
        "1\n",
        "controller_runtime_reconcile_time_seconds_count{controller=\"configmap\"} 1\n",
        "workqueue_depth{name=\"configmap\",controller=\"configmap\",priority=\"0\"} 0\n",
        "workqueue_adds_total{name=\"configmap\",controller=\"configmap\"} 1\n",
        "informer_synced{name=\"configmaps\"} 1\n"}) {
    EXPECT_THAT(all, HasSubstr(line));
  }
  // A name is described once.
  EXPECT_EQ(all.find("# TYPE controller_runtime_reconcile_total"),
            all.rfind("# TYPE controller_runtime_reconcile_total"));
}

TEST_F(ManagerPagesTest, ListenOnBothAddressFamiliesAndOnNames) {
  ManagerOptions options;
  options.health_listen = ":0";
  options.metrics_listen = "localhost:0";
  Manager manager{client_, options};
  const Running running(manager);
  const auto answers = [](const std::string& url) {
    rest::Config config;
    config.server = url;
    try {
      return rest::Client(config).get_raw("/") == "";
    } catch (const api::StatusError&) {
      return true;  // 404
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(answers(fmt::format("http://127.0.0.1:{}", manager.health_port())));
  EXPECT_TRUE(answers(fmt::format("http://127.0.0.1:{}", manager.metrics_port())));
  ManagerOptions six;
  six.health_listen = "[::1]:0";
  try {
    const Manager has_ipv6{client_, six};
  } catch (const Error&) {
    GTEST_SKIP() << "the machine has no IPv6";
  }
  EXPECT_TRUE(answers(fmt::format("http://[::1]:{}", manager.health_port())));
}

TEST_F(ManagerPagesTest, AnUnusableAddressIsAnError) {
  ManagerOptions taken;
  taken.health_listen = "127.0.0.1:" + std::to_string(server_.port());
  EXPECT_THROW(Manager(client_, taken), Error);
  ManagerOptions wrong;
  wrong.health_listen = "here";
  EXPECT_THROW(Manager(client_, wrong), InvalidArgument);
  ManagerOptions off;
  off.health_listen = "0";
  EXPECT_EQ(Manager(client_, off).health_port(), 0);
  ManagerOptions nowhere;
  nowhere.leader_election = LeaderElection{.name = "x"};
  EXPECT_THROW(Manager(client_, nowhere), InvalidArgument);
}

TEST(SignalsTest, TheFirstSignalStopsAndTheSecondExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto stop = stop_on_signals();
        if (stop.stop_requested()) std::_Exit(3);
        std::raise(SIGTERM);
        if (!eventually([&] { return stop.stop_requested(); })) std::_Exit(4);
        if (!stop_on_signals().stop_requested()) std::_Exit(5);
        std::raise(SIGINT);
        std::this_thread::sleep_for(30s);
        std::_Exit(6);
      },
      testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace lookout::controller
