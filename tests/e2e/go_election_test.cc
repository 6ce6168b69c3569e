// client-go's and Lookout's leader election as candidates for one Lease, which they release and take
// over in turn. Needs the program of tests/interop/election: scripts/go-interop.sh builds it, or
// $LOOKOUT_GO_ELECTION names it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "lookout/k8s/coordination/v1.h"
#include "lookout/rest/client.h"
#include "lookout/tools/leaderelection/leader_elector.h"
#include "tests/cmd/program.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/go_program.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;
using k8s::coordination::v1::Lease;
using std::chrono::steady_clock;
using test::eventually;
using testing::HasSubstr;

constexpr std::chrono::milliseconds kLeaseTime = 4s;
constexpr std::chrono::milliseconds kRenewDeadline = 3s;
constexpr std::chrono::milliseconds kRetry = 300ms;

/// A candidate in Go.
class GoCandidate {
 public:
  GoCandidate(const rest::Config& config, const std::string& identity)
      : log_(environment_.home() / "log") {
    process_.emplace(environment_.start(
        lookout::test::go_program("LOOKOUT_GO_ELECTION", "go-interop-election"),
        {"-server", config.server, "-ca", config.ca_file, "-token", config.bearer_token,
         "-identity", identity, "-lease", fmt::format("{}ms", kLeaseTime.count()), "-renew",
         fmt::format("{}ms", kRenewDeadline.count()), "-retry",
         fmt::format("{}ms", kRetry.count())},
        log_));
  }
  bool says(const std::string& what) const { return log().find(what) != std::string::npos; }
  std::string log() const { return test::read_file(log_); }
  test::Process& process() { return *process_; }

 private:
  test::ProgramEnvironment environment_;
  const std::filesystem::path log_;
  std::optional<test::Process> process_;
};

/// A candidate of Lookout, on threads of this process.
class OurCandidate {
 public:
  OurCandidate(const rest::Client& client, const std::string& identity)
      : elector_(client, options(identity)), ended_(std::async(std::launch::async, [this] {
          return elector_.run([](const auto& leadership) { wait_for_stop(leadership.stop()); },
                              stop_.get_token());
        })) {}
  ~OurCandidate() { stop_.request_stop(); }

  bool leads() const { return elector_.is_leader(); }
  std::string leader() const { return elector_.leader(); }
  leaderelection::End stop() {
    stop_.request_stop();
    return test::get(ended_);
  }

 private:
  static leaderelection::Options options(const std::string& identity) {
    leaderelection::Options out;
    out.name = "shared";
    out.ns = "default";
    out.identity = identity;
    out.lease_duration = kLeaseTime;
    out.renew_deadline = kRenewDeadline;
    out.retry_period = kRetry;
    return out;
  }
  static void wait_for_stop(const std::stop_token& stop) {
    EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }, 120s));
  }

  std::stop_source stop_;
  leaderelection::LeaderElector elector_;
  std::future<leaderelection::End> ended_;
};

class GoElectionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access(test::go_program("LOOKOUT_GO_ELECTION", "go-interop-election").c_str(), X_OK) != 0)
      GTEST_SKIP() << "there is no Go program: scripts/go-interop.sh builds it";
  }

  static Lease lease(const rest::Client& client) {
    return client.resource<Lease>("default").get("shared");
  }

  /// Lookout takes over released, expired and frozen leases from Go, and vice versa.
  static void alternate(const rest::Config& config) {
    const rest::Client client{config};
    auto go = std::make_unique<GoCandidate>(config, "go-1");
    ASSERT_TRUE(eventually([&] { return go->says("STARTED"); })) << go->log();
    const Lease first = lease(client);
    EXPECT_EQ(first.spec().holder_identity(), "go-1");
    const std::int32_t transitions = first.spec().lease_transitions().value_or(0);

    // Lookout waits as long as Go renews.
    auto ours = std::make_unique<OurCandidate>(client, "cc-1");
    ASSERT_TRUE(eventually([&] { return ours->leader() == "go-1"; }));
    EXPECT_FALSE(eventually([&] { return ours->leads(); },
                            std::chrono::ceil<std::chrono::seconds>(kLeaseTime + 1s)));

    // Go releases the lease: Lookout does not wait for its expiry.
    auto begin = steady_clock::now();
    go->process().signal(SIGTERM);
    ASSERT_TRUE(eventually([&] { return ours->leads(); }));
    EXPECT_LT(steady_clock::now() - begin, kLeaseTime);
    EXPECT_THAT(go->log(), HasSubstr("STOPPED"));
    const Lease second = lease(client);
    EXPECT_EQ(second.spec().holder_identity(), "cc-1");
    EXPECT_EQ(second.spec().lease_transitions(), transitions + 1);

    // Go waits as long as Lookout renews.
    go = std::make_unique<GoCandidate>(config, "go-2");
    ASSERT_TRUE(eventually([&] { return go->says("LEADER cc-1"); })) << go->log();
    EXPECT_FALSE(eventually([&] { return go->says("STARTED"); },
                            std::chrono::ceil<std::chrono::seconds>(kLeaseTime + 1s)));
    EXPECT_TRUE(ours->leads());

    // Lookout releases the lease.
    begin = steady_clock::now();
    EXPECT_EQ(ours->stop(), leaderelection::End::kStopped);
    ASSERT_TRUE(eventually([&] { return go->says("STARTED"); })) << go->log();
    EXPECT_LT(steady_clock::now() - begin, kLeaseTime);
    const Lease third = lease(client);
    EXPECT_EQ(third.spec().holder_identity(), "go-2");
    EXPECT_EQ(third.spec().lease_transitions(), transitions + 2);

    // Go is frozen: Lookout leads after the lease has expired, and Go notices when it continues.
    ours = std::make_unique<OurCandidate>(client, "cc-2");
    ASSERT_TRUE(eventually([&] { return ours->leader() == "go-2"; }));
    begin = steady_clock::now();
    go->process().signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] { return ours->leads(); }));
    EXPECT_GT(steady_clock::now() - begin, kLeaseTime - kRenewDeadline);
    go->process().signal(SIGCONT);
    EXPECT_EQ(go->process().wait(), 3) << go->log();
    EXPECT_TRUE(ours->leads());
    const Lease fourth = lease(client);
    EXPECT_EQ(fourth.spec().holder_identity(), "cc-2");
    EXPECT_EQ(fourth.spec().lease_transitions(), transitions + 3);

    // Lookout stops, Go leads, and is killed.
    go = std::make_unique<GoCandidate>(config, "go-3");
    ASSERT_TRUE(eventually([&] { return go->says("LEADER cc-2"); })) << go->log();
    EXPECT_EQ(ours->stop(), leaderelection::End::kStopped);
    ASSERT_TRUE(eventually([&] { return go->says("STARTED"); })) << go->log();
    ours = std::make_unique<OurCandidate>(client, "cc-3");
    ASSERT_TRUE(eventually([&] { return ours->leader() == "go-3"; }));
    go->process().signal(SIGKILL);
    ASSERT_TRUE(eventually([&] { return ours->leads(); }));
    const Lease last = lease(client);
    EXPECT_EQ(last.spec().holder_identity(), "cc-3");
    EXPECT_EQ(last.spec().lease_transitions(), transitions + 5);
    EXPECT_EQ(ours->stop(), leaderelection::End::kStopped);
  }
};

TEST_F(GoElectionTest, SharesALeaseWithLookout) {
  const test::ProgramEnvironment environment;
  const test::ServeProcess server(environment);
  rest::Config config;
  config.server = server.url();
  alternate(config);
}

TEST_F(GoElectionTest, SharesALeaseWithLookoutOnARealServer) {
  const auto program = test::KubeApiserver::find_program();
  if (!program) GTEST_SKIP() << "*** no kube-apiserver or no etcd ***";
  const test::KubeApiserver server(*program);
  alternate(server.config());
}

}  // namespace
}  // namespace lookout
