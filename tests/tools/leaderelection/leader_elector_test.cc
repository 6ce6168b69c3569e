#include "lookout/tools/leaderelection/leader_elector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/k8s/coordination/v1_draft.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/testing/fake_recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/held.h"
#include "tests/support/tcp_relay.h"

namespace lookout::leaderelection {
namespace {

using k8s::coordination::v1::Lease;
using namespace std::chrono_literals;
using test::eventually;

class LeaderElectorTest : public testing::Test {
 protected:
  Options options(std::string identity) const {
    Options out;
    out.name = "website";
    out.ns = "default";
    out.identity = std::move(identity);
    out.clock = clock_;
    return out;
  }

  /// Short times: with the default ones the client repeats a failed read for seconds of real time.
  Options brief(std::string identity) const {
    Options out = options(std::move(identity));
    out.lease_duration = 3s;
    out.renew_deadline = 2s;
    out.retry_period = 400ms;
    return out;
  }

  /// A candidate on its own thread, whose work runs until it is stopped.
  struct Candidate {
    Candidate(const rest::Client& client, Options options)
        : elector(client, std::move(options)), end(std::async(std::launch::async, [this] {
            return elector.run(
                [this](const Leadership& given) {
                  leadership = given;
                  leading.open();
                  EXPECT_TRUE(work_may_end.wait());
                },
                stop.get_token());
          })) {}
    ~Candidate() {
      stop.request_stop();
      work_may_end.open();
    }

    End end_work() {
      work_may_end.open();
      return test::get(end);
    }

    LeaderElector elector;
    std::stop_source stop;
    test::Gate leading;
    test::Gate work_may_end;
    std::optional<Leadership> leadership;
    std::future<End> end;  // the last member: its destructor waits for the thread
  };

  struct Leader : Candidate {
    Leader(const rest::Client& client, Options options) : Candidate(client, std::move(options)) {
      if (!leading.wait()) throw std::runtime_error("it does not lead");
    }
  };

  /// After a write of another holder: the leader loses the lease, and does not write it.
  void expect_lost(Leader& leader, std::string_view holder_now, int transitions_now) {
    ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
    clock_->advance(2s);
    ASSERT_TRUE(eventually([&] { return leader.leadership->stop().stop_requested(); }));
    EXPECT_FALSE(leader.leadership->valid());
    EXPECT_EQ(leader.end_work(), End::kLost);
    EXPECT_EQ(holder(), holder_now);
    EXPECT_EQ(transitions(), transitions_now);
  }

  /// A candidate that has observed the leader.
  struct Follower : Candidate {
    Follower(const rest::Client& client, Options options, std::string_view leader)
        : Candidate(client, std::move(options)) {
      if (!eventually([&] { return elector.leader() == leader; }))
        throw std::runtime_error("it does not know the leader");
    }
  };

  rest::Client client_of(const test::TcpRelay& relay) const {
    rest::Config config = server_.client_config();
    config.server = relay.url();
    return rest::Client(config);
  }

  Lease lease() const { return leases_.get("website"); }
  std::string holder() const { return std::string(test::held(lease()).spec().holder_identity()); }
  std::optional<int> transitions() const { return test::held(lease()).spec().lease_transitions(); }

  const apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<Lease> leases_ = client_.resource<Lease>("default");
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
};

TEST_F(LeaderElectorTest, RejectsInvalidOptions) {
  const auto refused = [&](auto change) {
    Options out = options("a");
    change(out);
    EXPECT_THROW(LeaderElector(client_, out), InvalidArgument);
  };
  refused([](Options& o) { o.name.clear(); });
  refused([](Options& o) { o.ns.clear(); });
  refused([](Options& o) { o.renew_deadline = o.lease_duration; });
  refused([](Options& o) { o.retry_period = o.renew_deadline; });
  refused([](Options& o) { o.retry_period = 0ms; });
  refused([](Options& o) {  // exactly 1.2 times
    o.retry_period = 1s;
    o.renew_deadline = 1200ms;
  });
  Options barely = options("a");
  barely.retry_period = 1s;
  barely.renew_deadline = 1201ms;
  barely.lease_duration = 1202ms;
  EXPECT_NO_THROW(LeaderElector(client_, barely));
  refused([](Options& o) { o.clock = nullptr; });
  refused([](Options& o) {
    o.lease_duration = 900ms;
    o.renew_deadline = 500ms;
    o.retry_period = 100ms;
  });
  Options unnamed = options("");
  EXPECT_NE(LeaderElector(client_, unnamed).identity(), LeaderElector(client_, unnamed).identity());
}

TEST_F(LeaderElectorTest, LeadsAndReleasesTheLease) {
  std::vector<std::string> leaders;
  Options with_leaders = options("a");
  with_leaders.on_new_leader = [&](std::string_view name) { leaders.emplace_back(name); };
  LeaderElector elector(client_, with_leaders);
  EXPECT_FALSE(elector.is_leader());
  const End end = elector.run([&](const Leadership& leadership) {
    EXPECT_TRUE(leadership.valid());
    EXPECT_FALSE(leadership.stop().stop_requested());
    EXPECT_EQ(leadership.fencing_token(), 0);
    EXPECT_TRUE(elector.is_leader());
    EXPECT_EQ(elector.leader(), "a");
    const Lease held = lease();
    EXPECT_EQ(held.spec().holder_identity(), "a");
    EXPECT_EQ(held.spec().lease_duration_seconds(), 15);
    EXPECT_EQ(held.spec().lease_transitions(), 0);
    EXPECT_TRUE(held.spec().acquire_time());
    EXPECT_EQ(held.spec().acquire_time(), held.spec().renew_time());
  });
  EXPECT_EQ(end, End::kDone);
  EXPECT_FALSE(elector.is_leader());
  // As in client-go: no holder, a duration of one second, the transitions kept.
  EXPECT_EQ(holder(), "");
  EXPECT_EQ(lookout::test::held(lease()).spec().lease_duration_seconds(), 1);
  EXPECT_EQ(transitions(), 0);
  EXPECT_THAT(leaders, testing::ElementsAre("a", ""));

  // The next term has the next token.
  EXPECT_EQ(
      elector.run([](const Leadership& leadership) { EXPECT_EQ(leadership.fencing_token(), 1); }),
      End::kDone);
}

TEST_F(LeaderElectorTest, ALeaseMayBeHeldForEver) {
  Options for_ever = options("a");
  for_ever.lease_duration = std::chrono::milliseconds::max();
  for_ever.renew_deadline = std::chrono::milliseconds::max() - 1ms;
  Leader a(client_, for_ever);
  EXPECT_TRUE(a.leadership->valid());
  EXPECT_GE(test::held(lease()).spec().lease_duration_seconds().value_or(0), 86'400 * 365);
  EXPECT_EQ(a.elector.check(std::chrono::milliseconds::max()), std::nullopt);
  EXPECT_EQ(a.end_work(), End::kDone);
}

TEST_F(LeaderElectorTest, KeepsTheLeaseWithoutReleaseOnCancel) {
  Options keeping = options("a");
  keeping.release = false;
  LeaderElector elector(client_, keeping);
  EXPECT_EQ(elector.run([](const Leadership&) {}), End::kDone);
  EXPECT_EQ(holder(), "a");
}

TEST_F(LeaderElectorTest, AStopEndsTheWorkThenReleasesTheLease) {
  Leader a(client_, options("a"));
  a.stop.request_stop();
  ASSERT_TRUE(eventually([&] { return a.leadership->stop().stop_requested(); }));
  // The work ends slowly: the lease is held and renewed until then.
  const auto renewed = lookout::test::held(lease()).spec().renew_time();
  ASSERT_TRUE(eventually([&] {
    if (lookout::test::held(lease()).spec().renew_time() != renewed) return true;
    if (clock_->sleepers() >= 2) clock_->advance(500ms);  // no request is in flight
    return false;
  }));
  EXPECT_EQ(holder(), "a");
  EXPECT_EQ(a.end_work(), End::kStopped);
  EXPECT_EQ(holder(), "");
}

TEST_F(LeaderElectorTest, AStopEndsTheWaiting) {
  Leader a(client_, options("a"));
  Follower b(client_, options("b"), "a");
  b.stop.request_stop();
  EXPECT_EQ(test::get(b.end), End::kStopped);
  EXPECT_FALSE(b.leading.is_open());
  EXPECT_EQ(holder(), "a");
}

TEST_F(LeaderElectorTest, TheNextCandidateLeadsAfterARelease) {
  Leader a(client_, options("a"));
  Follower b(client_, options("b"), "a");
  EXPECT_EQ(a.end_work(), End::kDone);
  clock_->skip_sleeps_below(5s);
  clock_->advance(5s);
  ASSERT_TRUE(b.leading.wait());
  EXPECT_EQ(b.leadership->fencing_token(), 1);
  EXPECT_EQ(holder(), "b");
  EXPECT_EQ(transitions(), 1);
}

TEST_F(LeaderElectorTest, TheWorkIsStoppedBeforeAnotherCandidateLeads) {
  test::TcpRelay relay(server_.port());
  Leader a(client_of(relay), brief("a"));
  Follower b(client_, brief("b"), "a");

  relay.cut();
  Clock::Duration passed{0};
  const auto pass = [&](Clock::Duration time) {
    clock_->advance(time);
    passed += time;
  };
  while (a.leadership->valid()) {
    ASSERT_LT(passed, 2s);
    pass(100ms);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(passed, 1600ms);  // the last renewal may have arrived after the cut began
  ASSERT_TRUE(eventually([&] { return a.leadership->stop().stop_requested(); }));
  EXPECT_FALSE(b.elector.is_leader());
  EXPECT_EQ(holder(), "a");
  EXPECT_FALSE(a.elector.check(10s).has_value());

  EXPECT_EQ(a.end_work(), End::kLost);
  ASSERT_TRUE(eventually([&] {
    if (!b.leading.is_open()) clock_->advance(100ms);
    return b.leading.is_open();
  }));
  EXPECT_EQ(b.leadership->fencing_token(), 1);
}

TEST_F(LeaderElectorTest, ThePauseAfterAFailureEndsAtTheRenewDeadline) {
  test::TcpRelay relay(server_.port());
  Options slow = brief("a");
  slow.retry_period = 1600ms;
  Leader a(client_of(relay), slow);
  relay.cut();
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  const std::size_t pauses = clock_->slept().size();
  clock_->advance(1600ms);
  // The renewal fails.
  ASSERT_TRUE(eventually([&] { return clock_->slept().size() > pauses; }));
  EXPECT_EQ(clock_->slept().back(), 400ms) << "not 1.6 s";
  EXPECT_TRUE(a.leadership->valid());
  clock_->advance(400ms);
  EXPECT_TRUE(eventually([&] { return a.leadership->stop().stop_requested(); }));
  EXPECT_EQ(a.end_work(), End::kLost);
}

/// A server that never responds and keeps its connections open: requests end only at their
/// deadlines.
class HangingServerTest : public LeaderElectorTest {
 protected:
  test::TcpRelay relay_{server_.port()};
  const rest::Client hanging_ = client_of(relay_);
};

TEST_F(HangingServerTest, TheWorkIsStoppedAtTheRenewDeadline) {
  Options late = options("a");  // a renewal has a second and a half, and may need three requests
  late.clock = Clock::real();
  late.renew_deadline = 6s;
  late.retry_period = 4500ms;
  Leader a(hanging_, late);
  relay_.freeze();
  const auto frozen = Clock::real()->now();
  ASSERT_TRUE(eventually([&] { return a.leadership->stop().stop_requested(); }));
  EXPECT_LT(Clock::real()->now() - frozen, 7200ms);
  EXPECT_FALSE(a.leadership->valid());
  EXPECT_EQ(a.end_work(), End::kLost);
}

TEST_F(HangingServerTest, TheWorkIsStoppedDuringAHangingRenewal) {
  Leader a(hanging_, options("a"));
  relay_.freeze();
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  clock_->advance(2s);
  // The renewal hangs; the elector waits only for the thread of the work.
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() == 1; }));
  a.stop.request_stop();
  EXPECT_TRUE(a.leadership->stop().stop_requested());
  EXPECT_TRUE(a.leadership->valid());
  relay_.mend();
  EXPECT_EQ(a.end_work(), End::kStopped);
  EXPECT_EQ(holder(), "");
}

TEST_F(HangingServerTest, ARenewalCountsFromTheTimeItWasSent) {
  Leader a(hanging_, options("a"));
  const std::string before(lookout::test::held(lease()).resource_version());
  relay_.freeze();
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  clock_->advance(2s);
  // The renewal hangs; only the thread of the work is waited for.
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() == 1; }));
  clock_->advance(3s);
  relay_.mend();
  ASSERT_TRUE(eventually([&] { return lease().resource_version() != before; }));
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  relay_.freeze();
  // The renew deadline of 10 s began 3 s ago.
  clock_->advance(7s - 1ns);
  EXPECT_TRUE(a.leadership->valid());
  clock_->advance(1ns);
  EXPECT_FALSE(a.leadership->valid());
  EXPECT_EQ(a.end_work(), End::kLost);
}

TEST_F(LeaderElectorTest, LeadershipIsInvalidAfterAFreeze) {
  test::TcpRelay relay(server_.port());
  Leader a(client_of(relay), options("a"));
  relay.freeze();  // no renewal
  EXPECT_TRUE(a.leadership->valid());
  EXPECT_TRUE(a.elector.is_leader());
  clock_->advance(10s);
  EXPECT_FALSE(a.leadership->valid());
  EXPECT_FALSE(a.elector.is_leader());
  relay.cut();
  EXPECT_EQ(a.end_work(), End::kLost);
}

TEST_F(LeaderElectorTest, WorkThatDoesNotEndIsUnhealthy) {
  test::TcpRelay relay(server_.port());
  Leader a(client_of(relay), options("a"));
  EXPECT_FALSE(a.elector.check().has_value());
  relay.cut();
  clock_->advance(14s);
  EXPECT_FALSE(a.elector.check(5s).has_value());
  clock_->advance(6s);
  EXPECT_FALSE(a.elector.check(5s).has_value())
      << "the lease has lasted 15 s, and 5 s are tolerated";
  clock_->advance(1ns);
  const auto wrong = a.elector.check(5s);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_THAT(*wrong, testing::HasSubstr("default/website"));
  EXPECT_EQ(a.end_work(), End::kLost);
  EXPECT_FALSE(a.elector.check(5s).has_value());
}

TEST_F(LeaderElectorTest, ALeaseTakenByAnotherHolderIsLostAndNotReleased) {
  Leader a(client_, options("a"));
  const auto draft = lease().edit();
  draft.spec().set_holder_identity("intruder").set_lease_transitions(7);
  leases_.update(draft.build());
  expect_lost(a, "intruder", 7);
}

TEST_F(LeaderElectorTest, ALeaseTakenAndReleasedByAnotherHolderIsLost) {
  Leader a(client_, options("a"));
  const auto draft = lease().edit();
  draft.spec().set_holder_identity("").set_lease_duration_seconds(1).set_lease_transitions(7);
  leases_.update(draft.build());
  expect_lost(a, "", 7);
}

TEST_F(LeaderElectorTest, ReleasingDoesNotClearASuccessor) {
  Leader a(client_, options("a"));
  const auto draft = lease().edit();
  draft.spec().set_holder_identity("successor");
  leases_.update(draft.build());
  EXPECT_EQ(a.end_work(), End::kDone);
  EXPECT_EQ(holder(), "successor");
}

TEST_F(LeaderElectorTest, ALabelOnTheLeaseDoesNotEndTheTerm) {
  Leader a(client_, options("a"));
  const auto draft = lease().edit();
  draft.metadata().labels().set("team", "web");
  const auto labelled = leases_.update(draft.build());
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  clock_->advance(2s);
  ASSERT_TRUE(
      eventually([&] { return lease().resource_version() != labelled.resource_version(); }));
  EXPECT_TRUE(a.leadership->valid());
  std::vector<metrics::Sample> samples;
  a.elector.collect(samples);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].name, "leader_election_master_status");
  EXPECT_EQ(samples[0].value, 1);
  EXPECT_EQ(samples[1].name, "leader_election_slowpath_total");
  EXPECT_EQ(samples[1].value, 1);
  EXPECT_EQ(a.end_work(), End::kDone);
  EXPECT_EQ(lookout::test::held(lease()).metadata().labels()["team"], "web");
  EXPECT_EQ(holder(), "");
}

TEST_F(LeaderElectorTest, ADeletedLeaseKeepsItsTransitions) {
  auto draft = Lease::draft("website", "default");
  draft.spec().set_lease_transitions(4).set_holder_identity("").set_lease_duration_seconds(1);
  leases_.create(draft.build());
  Leader a(client_, options("a"));
  EXPECT_EQ(a.leadership->fencing_token(), 5);
  leases_.remove("website");
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  clock_->advance(2s);
  ASSERT_TRUE(eventually([&] { return !leases_.list().items.empty(); }));
  EXPECT_EQ(holder(), "a");
  EXPECT_EQ(transitions(), 5);
  EXPECT_TRUE(a.leadership->valid());
}

TEST_F(LeaderElectorTest, ADeletedLeaseIsLeftToItsHolder) {
  Leader a(client_, options("a"));
  Options follower = options("b");
  const auto clock = std::make_shared<test::FakeClock>();
  follower.clock = clock;
  Follower b(client_, follower, "a");
  ASSERT_TRUE(eventually([&] { return clock->sleepers() == 1; }));
  leases_.remove("website");
  // b tries once.
  clock->advance(5s);
  ASSERT_TRUE(eventually([&] { return clock->slept().size() == 2; }));
  EXPECT_TRUE(leases_.list().items.empty());
  // a renews.
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  clock_->advance(2s);
  ASSERT_TRUE(eventually([&] { return !leases_.list().items.empty(); }));
  EXPECT_EQ(holder(), "a");
  EXPECT_TRUE(a.leadership->valid());
  EXPECT_FALSE(b.leading.is_open());
}

TEST_F(LeaderElectorTest, ADeletedLeaseIsTakenAfterItsHoldersDuration) {
  auto draft = Lease::draft("website", "default");
  draft.spec().set_lease_transitions(4).set_holder_identity("dead").set_lease_duration_seconds(15);
  leases_.create(draft.build());
  Follower b(client_, options("b"), "dead");
  leases_.remove("website");
  Clock::Duration passed{0};
  ASSERT_TRUE(eventually([&] {
    if (b.leading.is_open()) return true;
    EXPECT_TRUE(passed >= 15s || leases_.list().items.empty());
    clock_->advance(500ms);
    passed += 500ms;
    return false;
  }));
  EXPECT_GE(passed, 15s);
  EXPECT_EQ(b.leadership->fencing_token(), 5);
}

TEST_F(LeaderElectorTest, AnExpiredLeaseOfADeadHolderIsTaken) {
  // Times in the Lease are ignored: they come from another machine's clock.
  const auto hour = std::chrono::time_point_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now() - 1h);
  auto draft = Lease::draft("website", "default");
  draft.spec().set_lease_transitions(4).set_holder_identity("dead").set_lease_duration_seconds(3);
  draft.spec().set_acquire_time(hour).set_renew_time(hour);
  leases_.create(draft.build());
  std::vector<std::string> leaders;
  Options with_leaders = options("b");
  with_leaders.on_new_leader = [&](std::string_view name) { leaders.emplace_back(name); };
  Follower b(client_, with_leaders, "dead");
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() == 1; }));
  clock_->advance(2900ms);  // the candidate may have tried once more
  EXPECT_EQ(holder(), "dead");
  ASSERT_TRUE(eventually([&] {
    // Not while a request is in flight: the lease would have expired when the response arrives.
    if (!b.leading.is_open() && clock_->sleepers() == 1) clock_->advance(500ms);
    return b.leading.is_open();
  }));
  EXPECT_EQ(holder(), "b");
  EXPECT_EQ(transitions(), 5);
  EXPECT_GT(lookout::test::held(lease()).spec().acquire_time(), hour);
  EXPECT_EQ(b.end_work(), End::kDone);
  EXPECT_THAT(leaders, testing::ElementsAre("dead", "b", ""));
}

TEST_F(LeaderElectorTest, CandidatesRetryAtDifferentTimes) {
  auto draft = Lease::draft("website", "default");
  draft.spec().set_holder_identity("other").set_lease_duration_seconds(3600);
  leases_.create(draft.build());
  Candidate b(client_, options("b"));
  ASSERT_TRUE(eventually([&] {
    if (clock_->sleepers() == 1) clock_->advance(100ms);
    return clock_->slept().size() >= 20;
  }));
  b.stop.request_stop();
  EXPECT_EQ(test::get(b.end), End::kStopped);
  const auto pauses = clock_->slept();
  for (const auto pause : pauses) {
    EXPECT_GE(pause, 2s);
    EXPECT_LE(pause, 4400ms);
  }
  const auto [shortest, longest] = std::minmax_element(pauses.begin(), pauses.end());
  EXPECT_GT(*longest - *shortest, 200ms);
}

TEST_F(LeaderElectorTest, ADeletedLeaseIsNotRecreatedForItsRelease) {
  Leader a(client_, options("a"));
  leases_.remove("website");
  EXPECT_EQ(a.end_work(), End::kDone);
  EXPECT_TRUE(leases_.list().items.empty());
}

TEST_F(LeaderElectorTest, ACandidateIsHealthyIfTheLeaderIsNot) {
  Leader a(client_, options("a"));
  const LeaderElector idle(client_, options("idle"));
  EXPECT_FALSE(idle.check().has_value());
  Follower b(client_, options("b"), "a");
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 3; }));  // no request is in flight
  clock_->advance(1h);
  EXPECT_FALSE(b.elector.check().has_value());
  EXPECT_FALSE(idle.check().has_value());
}

TEST_F(LeaderElectorTest, ChecksDoNotRaceWithRenewals) {
  Options quick = options("a");
  quick.clock = Clock::real();
  quick.retry_period = 2ms;
  Leader a(client_, quick);
  const std::string before(lookout::test::held(lease()).resource_version());
  ASSERT_TRUE(eventually([&] {
    EXPECT_FALSE(a.elector.check(1s).has_value());
    EXPECT_TRUE(a.elector.is_leader());
    EXPECT_EQ(a.elector.leader(), "a");
    std::vector<metrics::Sample> samples;
    a.elector.collect(samples);
    const Lease now = lease();
    return now.resource_version() != before;
  }));
}

TEST_F(LeaderElectorTest, LabelsAreAddedToExistingOnes) {
  leases_.create(Lease::draft("website", "default"));  // without labels
  Options labelled = options("a");
  labelled.labels = {{"team", "web"}};
  Leader a(client_, labelled);
  EXPECT_EQ(lookout::test::held(lease()).metadata().labels()["team"], "web");
  const auto draft = lease().edit();
  draft.metadata().labels().set("team", "other");
  draft.metadata().labels().set("tier", "front");
  const Lease changed = leases_.update(draft.build());
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  clock_->advance(2s);
  ASSERT_TRUE(eventually([&] { return lease().resource_version() != changed.resource_version(); }));
  EXPECT_EQ(lookout::test::held(lease()).metadata().labels()["team"], "web");
  EXPECT_EQ(lookout::test::held(lease()).metadata().labels()["tier"], "front");
}

TEST_F(LeaderElectorTest, LabelsAreSetOnANewLease) {
  Options labelled = options("a");
  labelled.labels = {{"team", "web"}};
  LeaderElector elector(client_, labelled);
  EXPECT_EQ(elector.run([](const Leadership&) {}), End::kDone);
  EXPECT_EQ(lookout::test::held(lease()).metadata().labels()["team"], "web");
}

TEST_F(LeaderElectorTest, ALabelBeforeTheReleaseDoesNotKeepTheLease) {
  Leader a(client_, options("a"));
  const auto draft = lease().edit();
  draft.metadata().labels().set("team", "web");
  leases_.update(draft.build());
  EXPECT_EQ(a.end_work(), End::kDone);
  EXPECT_EQ(holder(), "");
  EXPECT_EQ(lookout::test::held(lease()).metadata().labels()["team"], "web");
}

TEST_F(LeaderElectorTest, RenewalsDoNotReadTheLease) {
  Leader a(client_, options("a"));
  for (int i = 0; i < 3; ++i) {
    const Lease before = lease();
    ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
    clock_->advance(2s);
    ASSERT_TRUE(
        eventually([&] { return lease().resource_version() != before.resource_version(); }));
    EXPECT_EQ(lookout::test::held(lease()).spec().acquire_time(), before.spec().acquire_time());
    EXPECT_EQ(transitions(), before.spec().lease_transitions());
  }
  std::vector<metrics::Sample> samples;
  a.elector.collect(samples);
  EXPECT_EQ(samples.at(1).name, "leader_election_slowpath_total");
  EXPECT_EQ(samples.at(1).value, 0);
}

TEST_F(LeaderElectorTest, EventsNameTheLeader) {
  Options recording = options("a");
  const auto recorder = std::make_shared<test::FakeRecorder>();
  recording.recorder = recorder;
  LeaderElector elector(client_, recording);
  EXPECT_EQ(elector.run([&](const Leadership&) {
    EXPECT_THAT(recorder->texts(), testing::ElementsAre("Normal LeaderElection a became leader"));
  }),
            End::kDone);
  EXPECT_THAT(recorder->texts(), testing::ElementsAre("Normal LeaderElection a became leader",
                                                      "Normal LeaderElection a stopped leading"));
  const record::ObjectReference regarding = recorder->events()[0].regarding;
  EXPECT_EQ(regarding.kind, "Lease");
  EXPECT_EQ(regarding.name, "website");
  EXPECT_EQ(regarding.uid, lease().uid());
}

TEST_F(LeaderElectorTest, ExceptionsOfCallbacksDoNotEndTheTerm) {
  struct Broken : record::EventRecorder {
    void record(record::Event) override { throw 1; }
  };
  Options throwing = options("a");
  throwing.recorder = std::make_shared<Broken>();
  throwing.on_new_leader = [](std::string_view) { throw 1; };
  Leader a(client_, throwing);
  // The leader's own renewal notices the new holder.
  const auto other = lease().edit();
  other.spec().set_holder_identity("b");
  leases_.update(other);
  // The term ends as usual: the work is stopped, and the call returns.
  ASSERT_TRUE(eventually([&] {
    clock_->advance(500ms);
    return a.leadership->stop().stop_requested();
  }));
  EXPECT_FALSE(a.leadership->valid());
  EXPECT_EQ(a.end_work(), End::kLost);
}

TEST_F(LeaderElectorTest, AnExceptionOfARenewalStopsTheWork) {
  /// Fails before the first renewal.
  struct BrokenClock : Clock {
    TimePoint now() const override { return Clock::real()->now(); }
    Awaitable<bool> sleep(Duration duration, std::stop_token stop) override {
      if (duration == 2s) throw std::runtime_error("no timers");
      return Clock::real()->sleep(duration, std::move(stop));
    }
  };
  Options broken = options("a");
  broken.clock = std::make_shared<BrokenClock>();
  LeaderElector elector(client_, broken);
  std::atomic<bool> ended{false};
  EXPECT_THROW(elector.run([&](const Leadership& leadership) {
    EXPECT_TRUE(eventually([&] { return leadership.stop().stop_requested(); }));
    EXPECT_FALSE(leadership.valid());
    ended = true;
  }),
               std::runtime_error);
  EXPECT_TRUE(ended) << "the work has ended before run() returns";
  EXPECT_FALSE(elector.is_leader());
}

/// On an event loop with one thread, which the thread of the work must not block.
TEST_F(LeaderElectorTest, WaitingForTheWorkDoesNotNeedAClock) {
  struct NoLongSleeps : Clock {
    TimePoint now() const override { return Clock::real()->now(); }
    Awaitable<bool> sleep(Duration duration, std::stop_token stop) override {
      if (duration > 1h) throw std::runtime_error("no timers");
      return Clock::real()->sleep(duration, std::move(stop));
    }
  };
  Options broken = options("a");
  broken.clock = std::make_shared<NoLongSleeps>();
  const rest::Client client(server_.client_config(), std::make_shared<EventLoop>(1));
  Leader a(client, broken);
  a.stop.request_stop();
  EXPECT_TRUE(eventually([&] { return a.leadership->stop().stop_requested(); }));
  EXPECT_EQ(a.end_work(), End::kStopped);
  EXPECT_EQ(holder(), "");
}

TEST_F(LeaderElectorTest, ALeaseWithoutAHolderOrADurationIsFree) {
  leases_.create(Lease::draft("website", "default"));
  Leader a(client_, options("a"));
  EXPECT_EQ(transitions(), 1);
}

TEST_F(LeaderElectorTest, ACandidateThatWasTheHolderLeadsWithoutATransition) {
  auto draft = Lease::draft("website", "default");
  draft.spec().set_lease_transitions(4).set_holder_identity("a").set_lease_duration_seconds(15);
  leases_.create(draft.build());
  Leader a(client_, options("a"));
  EXPECT_EQ(transitions(), 4);
}

TEST_F(LeaderElectorTest, ExceptionsOfTheWorkAreRethrown) {
  LeaderElector elector(client_, options("a"));
  EXPECT_THROW(elector.run([](const Leadership&) { throw std::runtime_error("broken"); }),
               std::runtime_error);
  EXPECT_EQ(holder(), "");
}

TEST_F(LeaderElectorTest, WorkMayBeACoroutine) {
  LeaderElector elector(client_, options("a"));
  std::atomic<int> worked{0};
  const auto work = [&](Leadership leadership) -> Awaitable<void> {
    const rest::ListOptions all;
    const auto listed = co_await leases_.dynamic().async_list(all);
    worked = static_cast<int>(listed.items.size());
    EXPECT_TRUE(leadership.valid());
  };
  EXPECT_EQ(client_.loop().run(elector.async_run(work)), End::kDone);
  EXPECT_EQ(worked, 1);
}

TEST_F(LeaderElectorTest, AsioCancellationEndsTheWork) {
  LeaderElector elector(client_, options("a"));
  std::stop_source stop;
  std::atomic<bool> leading{false};
  std::atomic<bool> ended{false};
  const auto work = [&](Leadership leadership) -> Awaitable<void> {
    leading = true;
    co_await Clock::real()->sleep(1h, leadership.stop());
    ended = true;
  };
  boost::asio::cancellation_signal cancel;
  std::promise<End> promise;
  const auto strand = boost::asio::make_strand(client_.loop().context());
  boost::asio::co_spawn(
      strand, elector.async_run(work, stop.get_token()),
      boost::asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr error, End end) {
        EXPECT_TRUE(ended) << "the work is over";
        EXPECT_FALSE(error);
        promise.set_value(end);
      }));
  ASSERT_TRUE(eventually([&] { return leading.load(); }));
  boost::asio::post(strand, [&] { cancel.emit(boost::asio::cancellation_type::terminal); });
  std::promise<void> emitted;
  boost::asio::post(strand, [&] { emitted.set_value(); });
  test::wait_for(emitted.get_future());
  EXPECT_FALSE(ended);
  stop.request_stop();
  EXPECT_EQ(test::get(promise.get_future()), End::kStopped);
  EXPECT_EQ(holder(), "");
}

TEST_F(LeaderElectorTest, ThereIsNeverMoreThanOneLeader) {
  std::atomic<int> leaders{0};
  std::atomic<int> terms{0};
  std::atomic<std::int64_t> last_token{-1};
  std::stop_source stop;
  const auto candidate = [&](std::string identity) {
    Options quick = options(std::move(identity));
    quick.clock = Clock::real();
    quick.lease_duration = 3s;
    quick.renew_deadline = 2s;
    quick.retry_period = 20ms;
    while (!stop.stop_requested()) {
      LeaderElector elector(client_, quick);
      elector.run(
          [&](const Leadership& leadership) {
            EXPECT_EQ(++leaders, 1);
            EXPECT_GT(leadership.fencing_token(), last_token.exchange(leadership.fencing_token()));
            std::this_thread::sleep_for(5ms);
            EXPECT_EQ(--leaders, 0);
            if (++terms == 20) stop.request_stop();
          },
          stop.get_token());
    }
  };
  std::vector<std::future<void>> running;
  for (const char* name : {"a", "b", "c"})
    running.push_back(std::async(std::launch::async, candidate, name));
  for (auto& each : running) test::get(each);
  EXPECT_GE(terms, 20);
}

}  // namespace
}  // namespace lookout::leaderelection
