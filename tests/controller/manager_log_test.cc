// The log lines of a manager.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/reconcile_ids.h"
#include "lookout/controller/builder.h"
#include "lookout/k8s/coordination/v1.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"

namespace lookout::controller {
namespace {

/// Records the log lines of managers, controllers and leader election.
class Lines : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<std::string> take() {
    const std::lock_guard lock(lines_mutex_);
    return std::exchange(lines_, {});
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view line(message.payload.data(), message.payload.size());
    const std::lock_guard lock(lines_mutex_);
    for (const std::string_view about :
         {"manager", "controller ", "leader election ", "the cache of "}) {
      if (message.level >= spdlog::level::info && line.starts_with(about))
        lines_.emplace_back(line);
    }
  }
  void flush_() override {}

  // ThreadSanitizer does not see the mutex of the base, which spdlog's library locks.
  std::mutex lines_mutex_;
  std::vector<std::string> lines_;  // guarded by lines_mutex_
};

class ManagerLogTest : public ManagerFixture {
 protected:
  // Nothing logs before the first test, so the sinks may be replaced.
  static void SetUpTestSuite() {
    lines_ = std::make_shared<Lines>();
    spdlog::default_logger()->sinks().push_back(lines_);
  }
  static void TearDownTestSuite() {
    spdlog::default_logger()->sinks().pop_back();
    lines_.reset();
  }

  static long count(const std::vector<std::string>& lines, std::string_view part) {
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  }

  static inline std::shared_ptr<Lines> lines_;
};

TEST_F(ManagerLogTest, StartAndStopAreLoggedOnce) {
  put("one", "1");
  put("two", "2");
  lines_->take();
  ManagerOptions options;
  options.health_listen = "127.0.0.1:0";
  options.metrics_listen = "127.0.0.1:0";
  options.leader_election = LeaderElection{.name = "lease", .ns = "default", .identity = "me"};
  Manager manager{client_, options};
  Builder<ConfigMap>(manager).named("maps").concurrency(3).reconcile(
      [](Request, Context&) -> Result { return {}; });
  Running running(manager);
  ASSERT_TRUE(eventually(
      [&] { return metric(manager, "controller_runtime_reconcile_total", "success") == 2; }));
  const std::vector<std::string> begin = lines_->take();
  for (const char* line : {
           "manager: serves /healthz and /readyz on port ",
           "manager: serves /metrics on port ",
           "manager: caches synced in ",
           " s: configmaps",
           "leader election default/lease: me waits for the lease",
           "leader election default/lease: me leads",
           "manager: caches caught up in ",
           "controller maps: watches configmaps",
           "controller maps: started: reconciles configmaps, concurrency 3",
       }) {
    EXPECT_EQ(count(begin, line), 1) << line;
  }
  EXPECT_EQ(begin.size(), 8u) << testing::PrintToString(begin);

  running.stop();
  const std::vector<std::string> end = lines_->take();
  for (const char* line : {
           "manager: stopping: stop requested",
           "leader election default/lease: me released the lease",
           "manager: stopped in ",
       }) {
    EXPECT_EQ(count(end, line), 1) << line;
  }
  EXPECT_EQ(end.size(), 3u) << testing::PrintToString(end);
}

TEST_F(ManagerLogTest, AFailureDuringTheStopOfOthersIsOnlyLogged) {
  lines_->take();
  test::Gate stopping;
  Manager manager{client_};
  manager.add(
      "server",
      [&](std::stop_token) {
        EXPECT_TRUE(stopping.wait());
        throw std::runtime_error("there is nothing to serve");
      },
      RunnableGroup::kServers);
  manager.add("work", [&](std::stop_token stop) {
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
    stopping.open();
    EXPECT_TRUE(eventually([&] {
      return count(lines_->take(), "server failed during the stop: there is nothing") == 1;
    }));
  });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  EXPECT_NO_THROW(running.stop());
}

TEST_F(ManagerLogTest, ALostLeaseIsTheReasonForTheStop) {
  lines_->take();
  ManagerOptions options = elected("us");
  DeafRunnable deaf;
  options.on_shutdown_overrun = deaf.on_overrun();
  Manager manager{client_, options};
  manager.add("work", std::ref(deaf));
  Running running(manager);
  ASSERT_TRUE(deaf.has_begun());
  client_.resource<k8s::coordination::v1::Lease>("default").patch(
      "website", rest::PatchType::kMerge,
      R"({"spec":{"holderIdentity":"thief","leaseDurationSeconds":60}})");
  EXPECT_THROW(running.end(), LeaderElectionLostError);
  const std::vector<std::string> lines = lines_->take();
  for (const char* line : {
           "manager: stopping: leadership was lost",
           "manager: leadership was lost; still running: work",
       }) {
    EXPECT_EQ(count(lines, line), 1) << testing::PrintToString(lines);
  }
  EXPECT_EQ(count(lines, "too long"), 0) << testing::PrintToString(lines);
}

TEST_F(ManagerLogTest, AForbiddenNamespaceIsLoggedOnce) {
  lines_->take();
  apiserver::ServerOptions serving;
  serving.before_request = [](const apiserver::ServedRequest& request) {
    if (request.ns == "refused")
      throw api::StatusError::forbidden("", "configmaps", "", "no rights there");
  };
  const apiserver::Server server(serving);
  const rest::Client client(server.client_config());
  client.resource<ConfigMap>("default").create(ConfigMap::draft("m", "default"));
  ManagerOptions options;
  options.cache.namespaces = {"default", "refused"};
  Manager manager{client, options};
  std::atomic<int> runs{0};
  Builder<ConfigMap>(manager).named("maps").reconcile(counting(runs));
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return runs > 0; }));
  const std::vector<std::string> lines = lines_->take();
  EXPECT_EQ(count(lines, "continues without this namespace"), 1) << testing::PrintToString(lines);
}

TEST_F(ManagerLogTest, AFailureIsLoggedBeforeTheStop) {
  lines_->take();
  Manager manager{client_};
  manager.add("disk", [](std::stop_token) { throw Error("no space left"); });
  Running running(manager);
  EXPECT_THROW(running.end(), Error);
  const std::vector<std::string> all = lines_->take();
  EXPECT_EQ(count(all, "manager: disk failed: no space left"), 1);
  EXPECT_EQ(count(all, "manager: stopping: a part of it failed"), 1);
  EXPECT_EQ(count(all, "manager: stopped in "), 1);
}

class ReconcileLogTest : public ManagerLogTest {
 protected:
  /// The lines so far that contain this text.
  std::vector<std::string> with(std::string_view part) {
    for (auto& line : lines_->take()) all_.push_back(std::move(line));
    std::vector<std::string> out;
    for (const auto& line : all_) {
      if (line.find(part) != std::string::npos) out.push_back(line);
    }
    return out;
  }
  void SetUp() override { lines_->take(); }

 private:
  std::vector<std::string> all_;
};

TEST_F(ReconcileLogTest, EachLineHasTheIdOfItsReconcile) {
  put("m", "1");
  Manager manager{client_};
  std::mutex mutex;
  std::vector<std::string> ids;
  Builder<ConfigMap>(manager).named("maps").reconcile([&](Request, Context& context) -> Result {
    const std::lock_guard lock(mutex);
    ids.push_back(context.reconcile_id());
    context.logger().info("run {}", ids.size());
    context.logger().with("deployment", "web").with("replicas", 3).warn("{}", "scaled {}");
    if (ids.size() == 1) throw Error("not yet");
    if (ids.size() == 2) throw TerminalError("never");
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return !with("never").empty(); }));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_NE(ids[0], ids[1]);
  for (const auto& id : ids) {
    EXPECT_THAT(id, testing::MatchesRegex(
                        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  }
  const auto line = [](const std::string& id, const std::string& text) {
    return "controller maps: default/m (reconcileID=" + id + text;
  };
  EXPECT_THAT(with("controller maps: default/m"),
              testing::ElementsAre(line(ids[0], "): run 1"),
                                   line(ids[0], ", deployment=web, replicas=3): scaled {}"),
                                   line(ids[0], "): not yet"), line(ids[1], "): run 2"),
                                   line(ids[1], ", deployment=web, replicas=3): scaled {}"),
                                   line(ids[1], "): never; it is not retried")));
}

TEST_F(ReconcileLogTest, CoroutinesAndTheirTimeoutsHaveIdsToo) {
  put("m", "1");
  Manager manager{client_};
  std::string id;  // written before the line of the timeout
  std::atomic<int> runs{0};
  const auto reconcile = [&](Request, Context& context) -> Awaitable<Result> {
    if (runs++ == 0) {
      id = context.reconcile_id();
      co_await Clock::real()->sleep(1min, context.stop());
    }
    co_return Result();
  };
  Builder<ConfigMap>(manager).named("maps").reconcile_timeout(200ms).reconcile(reconcile);
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return !with("(timeout)").empty(); }));
  EXPECT_EQ(with("(timeout)").front(), "controller maps: default/m (reconcileID=" + id +
                                           "): stopping the reconciler after 200 ms (timeout)");
}

TEST_F(ReconcileLogTest, ALoggerMayOutliveItsReconcile) {
  put("m", "1");
  std::optional<Logger> kept;
  std::string id;
  {
    Manager manager{client_};
    std::atomic<bool> done{false};
    Builder<ConfigMap>(manager).named("maps").reconcile([&](Request, Context& context) -> Result {
      if (done) return {};
      kept = context.logger();
      id = context.reconcile_id();
      done = true;
      return {};
    });
    const Running running(manager);
    ASSERT_TRUE(eventually([&] { return done.load(); }));
  }
  EXPECT_EQ(kept->subject(), "controller maps: default/m");
  EXPECT_EQ(kept->values(), "reconcileID=" + id);
  kept->error("late");
  EXPECT_THAT(with("late"),
              ElementsAre("controller maps: default/m (reconcileID=" + id + "): late"));
  // Below the logger's level: nothing is formatted. A format error becomes a line.
  kept->debug("{}", "quiet");
  kept->trace("{}", "quiet");
  kept->info("{:{}}", "width", -1);
  EXPECT_THAT(with("quiet"), IsEmpty());
  EXPECT_EQ(with("could not be formatted").size(), 1u);
}

TEST(ReconcileIdsTest, AreUniqueInAProcess) {
  detail::ReconcileIds ids;
  const detail::ReconcileIds others;
  std::set<std::string> seen;
  constexpr int kMany = 10'000;
  for (int i = 0; i < kMany; ++i) {
    const auto number = ids.next();
    EXPECT_EQ(ids.id(number), ids.id(number));
    seen.insert(ids.id(number));
    seen.insert(others.id(number));
  }
  EXPECT_EQ(seen.size(), 2u * kMany);
}

}  // namespace
}  // namespace lookout::controller
