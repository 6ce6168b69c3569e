#include "lookout/tools/leaderelection/lease_candidate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "lookout/api/draft.h"
#include "lookout/api/error.h"
#include "lookout/api/time.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/apiextensions/v1.h"
#include "lookout/testing/fake_clock.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"

namespace lookout::leaderelection {
namespace {

using namespace std::chrono_literals;
using test::eventually;

/// The beta API as a custom resource; for candidates there is no difference.
constexpr std::string_view kDefinition = R"({
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "leasecandidates.coordination.k8s.io",
    "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1"}},
  "spec": {"group": "coordination.k8s.io", "scope": "Namespaced",
    "names": {"kind": "LeaseCandidate", "listKind": "LeaseCandidateList",
      "plural": "leasecandidates", "singular": "leasecandidate"},
    "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
      {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})";

class LeaseCandidateTest : public testing::Test {
 protected:
  LeaseCandidateTest() {
    client_.resource<k8s::apiextensions::v1::CustomResourceDefinition>().dynamic().create(
        api::Object::parse(kDefinition));
    EXPECT_TRUE(eventually([&] {
      try {
        candidates_.list();
        return true;
      } catch (const api::StatusError&) {
        return false;
      }
    }));
    options_.name = "website-1";
    options_.ns = "default";
    options_.lease_name = "website";
    options_.binary_version = "1.30.0";
    options_.emulation_version = "1.29.0";
    options_.clock = clock_;
  }
  ~LeaseCandidateTest() override {
    stop_.request_stop();
    if (running_.valid()) test::wait_for(running_);
  }

  void start() {
    candidate_.emplace(client_, options_);
    running_ = std::async(std::launch::async, [this] { candidate_->run(stop_.get_token()); });
  }
  api::Object found() const { return candidates_.find("website-1"); }
  std::string renew_time() const {
    return std::string(lookout::test::held(found())["spec"]["renewTime"].as_string());
  }

  const apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::ResourceClient candidates_ = client_.resource(
      api::Resource("coordination.k8s.io", "v1beta1", "LeaseCandidate", "leasecandidates", true),
      "default");
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  CandidateOptions options_;
  std::stop_source stop_;
  std::optional<LeaseCandidate> candidate_;
  std::future<void> running_;
};

TEST_F(LeaseCandidateTest, IsCreated) {
  start();
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(found()); }));
  const api::Object made = found();
  EXPECT_EQ(made["spec"]["leaseName"].as_string(), "website");
  EXPECT_EQ(made["spec"]["binaryVersion"].as_string(), "1.30.0");
  EXPECT_EQ(made["spec"]["emulationVersion"].as_string(), "1.29.0");
  EXPECT_EQ(made["spec"]["strategy"].as_string(), "OldestEmulationVersion");
  EXPECT_TRUE(api::parse_time(made["spec"]["renewTime"].as_string()).has_value());
}

TEST_F(LeaseCandidateTest, IsRenewedWhenItIsPinged) {
  start();
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(found()); }));
  const std::string before = renew_time();
  const api::ObjectDraft ping(found());
  ping["spec"]["pingTime"].set(api::format_micro_time(*api::parse_time(before) + 1us));
  candidates_.update(ping);
  ASSERT_TRUE(eventually([&] { return renew_time() > before; }));
}

TEST_F(LeaseCandidateTest, IsRenewedPeriodically) {
  start();
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(found()); }));
  const std::string before = renew_time();
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() == 1; }));
  EXPECT_EQ(clock_->next_wake(), 5min);
  EXPECT_EQ(renew_time(), before);
  clock_->advance(5min);
  ASSERT_TRUE(eventually([&] { return renew_time() > before; }));
}

TEST_F(LeaseCandidateTest, MayBeRenewedOnlyWhenItIsPinged) {
  options_.renew_period = std::chrono::milliseconds::max();
  start();
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(found()); }));
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() == 1; }));
  EXPECT_GT(clock_->next_wake(), 24h * 365);
}

TEST_F(LeaseCandidateTest, IsRecreatedAfterADeletion) {
  start();
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(found()); }));
  const std::string uid(found().uid());
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() == 1; }));
  candidates_.remove("website-1");
  ASSERT_TRUE(eventually([&] { return found() && found().uid() != uid; }));
}

TEST_F(LeaseCandidateTest, TriesAgainAfterAFailure) {
  options_.ns = "nowhere";
  const rest::ResourceClient nowhere = client_.resource(candidates_.resource(), "nowhere");
  start();
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() == 1; }));
  client_.resource(api::Resource("", "v1", "Namespace", "namespaces", false))
      .create(api::Object::parse(
          R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"nowhere"}})"));
  clock_->advance(1s);
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(nowhere.find("website-1")); }));
}

TEST_F(LeaseCandidateTest, AStopEndsIt) {
  start();
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(found()); }));
  stop_.request_stop();
  test::wait_for(running_);
}

TEST_F(LeaseCandidateTest, RejectsInvalidOptions) {
  options_.lease_name.clear();
  EXPECT_THROW(LeaseCandidate(client_, options_), InvalidArgument);
  options_.lease_name = "website";
  options_.renew_period = 0ms;
  EXPECT_THROW(LeaseCandidate(client_, options_), InvalidArgument);
}

}  // namespace
}  // namespace lookout::leaderelection
