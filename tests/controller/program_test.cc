// Programs that use controller::Program, run as separate processes.
#include "lookout/controller/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "lookout/k8s/coordination/v1.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/testing/self_signed_certificate.h"
#include "tests/cmd/program.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/files.h"
#include "tests/support/held.h"

namespace lookout::controller {
namespace {

using k8s::coordination::v1::Lease;
using k8s::core::v1::Event;

class ProgramTest : public ManagerFixture {
 protected:
  test::ProgramResult run(const std::vector<std::string>& arguments) const {
    return environment_.run(LOOKOUT_PROGRAM_UNDER_TEST, arguments);
  }
  void start(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"--server", server_.url()});
    program_.emplace(environment_.start(LOOKOUT_PROGRAM_UNDER_TEST, arguments, log()));
  }
  std::filesystem::path log() const { return environment_.home() / "log"; }
  int terminate() {
    program_->signal(SIGTERM);
    return program_->wait();
  }
  /// The message of the one Event about ConfigMaps in a namespace.
  std::string greeting(const std::string& ns) const {
    const auto events = client_.resource<Event>(ns).list();
    for (const Event& event : events.items) {
      if (event.reason() == "Greeted") return std::string(event.message());
    }
    return "";
  }

  test::ProgramEnvironment environment_;
  std::optional<test::Process> program_;
};

TEST_F(ProgramTest, HelpNamesFlagsVariablesAndExamples) {
  const auto result = run({"--help"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(
      result.output,
      testing::AllOf(HasSubstr("Greets each ConfigMap."), HasSubstr("--leader-elect-namespace"),
                     HasSubstr("LOOKOUT_METRICS_LISTEN"), HasSubstr("--greeting"),
                     HasSubstr("greeter --kubeconfig"), HasSubstr("2 wrong usage")));
}

TEST_F(ProgramTest, WrongUsageExitsWith2) {
  const auto unknown = run({"--metrics-lisen", ":1"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("--metrics-lisen"));
  EXPECT_EQ(run({"--log-level", "loud"}).status, 2);
  const auto address = run({"--server", server_.url(), "--metrics-listen", "8080"});
  EXPECT_EQ(address.status, 2);
  EXPECT_THAT(address.errors, HasSubstr("\"8080\" is not an address to listen on"));
}

TEST_F(ProgramTest, AFailureExitsWith1) {
  const auto result = run({"--kubeconfig", (environment_.home() / "none").string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("none"));
}

TEST_F(ProgramTest, RunsUntilASignalAndWritesEvents) {
  put("web", "1");
  start({"--metrics-listen", "127.0.0.1:0", "--health-listen", "0", "--greeting", "good day"});
  EXPECT_TRUE(eventually([&] { return greeting("default") == "good day"; }));
  EXPECT_EQ(terminate(), 0) << test::read_file(log());
}

TEST_F(ProgramTest, ReleasesItsLeaseAtTheEnd) {
  start({"--metrics-listen=0", "--health-listen=0", "--leader-elect"});
  const auto leases = client_.resource<Lease>("default");
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(leases.find("greeter")); }));
  put("web", "1");
  EXPECT_TRUE(eventually([&] { return !greeting("default").empty(); }));
  EXPECT_EQ(terminate(), 0) << test::read_file(log());
  // The lease has no holder.
  const auto lease = leases.get("greeter");
  EXPECT_EQ(lease.spec().holder_identity(), "");
}

TEST_F(ProgramTest, EnvironmentVariablesAreDefaultsOfFlags) {
  environment_.set("LOOKOUT_METRICS_LISTEN", "0");
  environment_.set("LOOKOUT_HEALTH_LISTEN", "nowhere");
  environment_.set("LOOKOUT_LEADER_ELECT", "true");
  environment_.set("LOOKOUT_LEADER_ELECT_NAMESPACE", "kube-system");
  environment_.set("LOOKOUT_NAMESPACE", "default,kube-system");
  put("far", "1", "kube-public");
  put("near", "1", "kube-system");
  start({"--health-listen", "0"});
  EXPECT_TRUE(eventually([&] { return !greeting("kube-system").empty(); }))
      << test::read_file(log());
  EXPECT_TRUE(client_.resource<Lease>("kube-system").find("greeter"));
  EXPECT_EQ(greeting("kube-public"), "") << "that namespace is not watched";
  EXPECT_EQ(terminate(), 0);
}

TEST_F(ProgramTest, ServesWebhooksIfItHasACertificate) {
  const test::SelfSignedCertificate certificate;
  certificate.write_to(environment_.home().path());
  start({"--metrics-listen=0", "--health-listen=0", "--webhook-port=0", "--webhook-cert-dir",
         environment_.home().path().string()});
  ASSERT_TRUE(eventually([&] {
    return test::read_file(log()).find("webhook server: serves on port ") != std::string::npos;
  }));
  EXPECT_EQ(terminate(), 0) << test::read_file(log());

  const auto none = run({"--server", server_.url(), "--metrics-listen=0", "--health-listen=0",
                         "--webhook-cert-dir", "/nowhere"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.errors, HasSubstr("/nowhere/tls.crt"));
}

TEST_F(ProgramTest, ASlowStopEndsTheProcess) {
  put("web", "1");
  start({"--metrics-listen=0", "--health-listen=0", "--hang"});
  EXPECT_TRUE(eventually([&] { return !greeting("default").empty(); }));
  EXPECT_EQ(terminate(), 1);
  EXPECT_THAT(test::read_file(log()), HasSubstr("exiting immediately"));
}

TEST(ManagerFlagsTest, NamespacesWithSelectorsOfTheirOwnAreLimited) {
  ManagerFlags flags;
  ManagerOptions options;
  options.cache.by_namespace = {
      {"", {}}, {"shop", {.label_selector = "app=web"}}, {"kube-system", {}}};
  flags.apply_to(options, "website", {});
  EXPECT_EQ(options.cache.by_namespace.size(), 3u);
  flags.namespaces = {"shop", "blog"};
  flags.apply_to(options, "website", {});
  EXPECT_THAT(options.cache.namespaces, testing::ElementsAre("shop", "blog"));
  ASSERT_EQ(options.cache.by_namespace.size(), 1u);
  EXPECT_EQ(options.cache.by_namespace.at("shop").label_selector, "app=web");
}

TEST(ManagerFlagsTest, ACertificateIsForMetricsThatTheProgramSecures) {
  ManagerFlags flags;
  flags.metrics_cert_dir = "/certs";
  ManagerOptions options;
  options.secure_metrics.emplace();
  flags.apply_to(options, "website", {});
  EXPECT_EQ(options.secure_metrics->cert_dir, "/certs");
}

TEST(ManagerFlagsTest, ElectionKeepsItsDurationsAndFindsItsNamespace) {
  ManagerFlags flags;
  rest::Config config;
  config.default_namespace = "shop";
  ManagerOptions options;
  options.leader_election = LeaderElection{.name = "", .lease_duration = std::chrono::seconds(60)};
  flags.apply_to(options, "website", config);
  EXPECT_FALSE(options.leader_election) << "nobody has asked for it";

  options.leader_election = LeaderElection{.name = "", .lease_duration = std::chrono::seconds(60)};
  flags.leader_elect = true;
  flags.apply_to(options, "website", config);
  ASSERT_TRUE(options.leader_election);
  EXPECT_EQ(options.leader_election->name, "website");
  EXPECT_EQ(options.leader_election->ns, "shop");
  EXPECT_EQ(options.leader_election->lease_duration, std::chrono::seconds(60));

  flags.leader_elect_namespace = "ops";
  flags.apply_to(options, "other", config);
  EXPECT_EQ(options.leader_election->name, "website");
  EXPECT_EQ(options.leader_election->ns, "ops");
}

}  // namespace
}  // namespace lookout::controller
