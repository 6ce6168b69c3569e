// Coordinated leader election: the server chooses the leader.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "lookout/apiserver/server.h"
#include "lookout/k8s/coordination/v1_draft.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/tools/leaderelection/leader_elector.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/held.h"

namespace lookout::leaderelection {
namespace {

using k8s::coordination::v1::Lease;
using namespace std::chrono_literals;
using test::eventually;

/// The test acts as the API server's coordinator.
class CoordinatedElectionTest : public testing::Test {
 protected:
  CoordinatedElectionTest() {
    Options options;
    options.name = "website";
    options.ns = "default";
    options.identity = "a";
    options.coordinated = true;
    options.clock = clock_;
    elector_ = std::make_unique<LeaderElector>(client_, options);
  }
  ~CoordinatedElectionTest() override {
    stop_.request_stop();
    work_may_end_.open();
    if (end_.valid()) test::wait_for(end_);
  }

  void start() {
    end_ = std::async(std::launch::async, [this] {
      return elector_->run(
          [this](const Leadership& given) {
            leadership_ = given;
            leading_.open();
            EXPECT_TRUE(work_may_end_.wait());
          },
          stop_.get_token());
    });
  }
  Lease assign(const std::string& holder) {
    const auto draft = Lease::draft("website", "default");
    draft.spec().set_holder_identity(holder).set_lease_duration_seconds(5);
    draft.spec().set_strategy("OldestEmulationVersion").set_lease_transitions(3);
    return leases_.create(draft);
  }
  /// Advances the clock, so that the candidate retries, until `condition` holds.
  template <class Condition>
  bool while_time_passes(Condition condition) {
    return eventually([&] {
      if (condition()) return true;
      clock_->advance(500ms);
      return false;
    });
  }
  Lease lease() const { return leases_.get("website"); }

  const apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<Lease> leases_ = client_.resource<Lease>("default");
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  std::unique_ptr<LeaderElector> elector_;
  std::stop_source stop_;
  test::Gate leading_;
  test::Gate work_may_end_;
  std::optional<Leadership> leadership_;
  std::future<End> end_;
};

TEST_F(CoordinatedElectionTest, ACandidateDoesNotCreateTheLease) {
  start();
  std::size_t tries = 0;
  ASSERT_TRUE(while_time_passes([&] {
    tries = clock_->slept().size();
    return tries >= 4;
  }));
  EXPECT_TRUE(leases_.list().items.empty());
  EXPECT_FALSE(leading_.is_open());
}

TEST_F(CoordinatedElectionTest, ACandidateLeadsWhenTheLeaseNamesIt) {
  assign("a");
  start();
  ASSERT_TRUE(leading_.wait());
  const Lease held = lease();
  EXPECT_EQ(held.spec().holder_identity(), "a");
  EXPECT_EQ(held.spec().lease_transitions(), 3);
  EXPECT_EQ(held.spec().strategy(), "OldestEmulationVersion");
  EXPECT_EQ(leadership_->fencing_token(), 3);
  // The leader renews the Lease.
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  clock_->advance(2s);
  ASSERT_TRUE(eventually([&] { return lease().resource_version() != held.resource_version(); }));
  EXPECT_TRUE(leadership_->valid());
}

TEST_F(CoordinatedElectionTest, ACandidateDoesNotTakeAnExpiredLease) {
  const Lease theirs = assign("b");
  start();
  ASSERT_TRUE(while_time_passes([&] { return clock_->slept().size() >= 10; }));
  EXPECT_FALSE(leading_.is_open());
  EXPECT_EQ(lease().resource_version(), theirs.resource_version());
  EXPECT_EQ(elector_->leader(), "b");
}

TEST_F(CoordinatedElectionTest, ATermEndsWhenAnotherHolderIsPreferred) {
  assign("a");
  start();
  ASSERT_TRUE(leading_.wait());
  ASSERT_TRUE(while_time_passes([&] {
    try {
      const auto draft = lease().edit();
      draft.spec().set_preferred_holder("b");
      leases_.update(draft);
      return true;
    } catch (const api::StatusError&) {
      return false;  // conflict with a renewal
    }
  }));
  ASSERT_TRUE(while_time_passes([&] { return leadership_->stop().stop_requested(); }));
  EXPECT_FALSE(leadership_->valid());
  work_may_end_.open();
  EXPECT_EQ(test::get(end_), End::kLost);
  // The former leader leaves the Lease to the server.
  EXPECT_EQ(lookout::test::held(lease()).spec().holder_identity(), "a");
  EXPECT_EQ(lookout::test::held(lease()).spec().preferred_holder(), "b");
}

TEST_F(CoordinatedElectionTest, ALeaseWithAPreferredHolderIsNotTaken) {
  assign("a");
  const auto draft = lease().edit();
  draft.spec().set_preferred_holder("b");
  leases_.update(draft);
  start();
  ASSERT_TRUE(while_time_passes([&] { return clock_->slept().size() >= 4; }));
  EXPECT_FALSE(leading_.is_open());
}

}  // namespace
}  // namespace lookout::leaderelection
