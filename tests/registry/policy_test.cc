// Feedback of calls to balancers, with a fake clock and the test's numbers.
#include "lookout/registry/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lookout/registry/balancer.h"
#include "lookout/testing/fake_clock.h"
#include "registry/node.h"
#include "tests/registry/fixed_discovery.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace std::chrono_literals;
using lookout::test::FakeClock;
using test::FixedDiscovery;
using test::numbered;
using testing::Pair;
using Counts = std::map<std::string, int>;

class PolicyTest : public testing::Test {
 protected:
  Balancer balancer(const BalancerPolicy& policy) {
    return {discovery_, "web", policy.with_seed(0).with_clock(clock_)};
  }
  static Counts count(const Balancer& balancer, int picks, const PickOptions& options = {}) {
    Counts out;
    for (int i = 0; i < picks; ++i) {
      const Pick pick = balancer.pick(options);
      ++out[pick ? pick->key() : "none"];
    }
    return out;
  }
  /// A pick of this instance.
  static Pick pick_of(const Balancer& balancer, const std::string& id) {
    std::vector<Pick> others;
    while (Pick pick = balancer.pick(others)) {
      if (pick->id == id) return pick;
      others.push_back(std::move(pick));
    }
    ADD_FAILURE() << id << " is never picked";
    return {};
  }
  static void fail(const Balancer& balancer, const std::string& id, int times) {
    for (int i = 0; i < times; ++i) pick_of(balancer, id).report(Outcome::kFailed, 1ms);
  }

  FixedDiscovery discovery_;
  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
};

/// A metric of the whole balancer, if it has it.
std::optional<double> gauge(const Balancer& balancer, const char* name) {
  std::vector<metrics::Sample> samples;
  balancer.collect(samples);
  const auto found = std::ranges::find(samples, name, &metrics::Sample::name);
  return found == samples.end() ? std::nullopt : std::optional(found->value);
}
std::optional<double> ejected(const Balancer& balancer) {
  return gauge(balancer, "lookout_registry_ejected");
}

TEST_F(PolicyTest, FindsAnEndpointOfTheScheme) {
  discovery_.publish({{.id = "a", .endpoints = {"grpc://a:1"}},
                      {.id = "b", .endpoints = {"grpc://b:1", "http://b:2"}},
                      {.id = "c", .endpoints = {"grpc://c:1", "HTTP://c:2"}}});
  for (const auto& policy : {round_robin(), weighted(), least_loaded(), p2c_ewma(),
                             consistent_hash(), BalancerPolicy::zones()}) {
    const auto web = balancer(policy);
    for (int i = 0; i < 20; ++i) {
      const Pick pick = web.pick({.scheme = "http"});
      ASSERT_TRUE(pick);
      EXPECT_TRUE(pick.endpoint().has_scheme("http"));
      EXPECT_EQ(pick.endpoint().port(), 2);
    }
    EXPECT_FALSE(web.pick({.scheme = "ws"}));
    EXPECT_EQ(web.pick().endpoint().scheme(), "grpc");
  }
}

TEST_F(PolicyTest, PicksTheLeastLoadedInstance) {
  discovery_.publish(numbered(3));
  const auto web = balancer(least_loaded());
  std::vector<Pick> held;
  for (int i = 0; i < 30; ++i) held.push_back(web.pick());
  for (const auto& instance : web.instances()) EXPECT_EQ(instance.in_flight, 10);
  // An instance that responds gets the next call.
  const std::string id = held[7]->id;
  web.report(held[7], Outcome::kOk, 1ms);
  EXPECT_EQ(web.pick()->id, id);
  // A copy of a pick is not a call.
  const Pick copy = held[0];
  EXPECT_EQ(
      web.instances()[0].in_flight + web.instances()[1].in_flight + web.instances()[2].in_flight,
      29);
  held.clear();
  for (const auto& instance : web.instances()) EXPECT_EQ(instance.in_flight, 0);
}

TEST_F(PolicyTest, LoadIsRelativeToWeight) {
  discovery_.publish({{.id = "a", .metadata = {{"weight", "300"}}}, {.id = "b"}});
  const auto web = balancer(least_loaded());
  std::vector<Pick> held;
  for (int i = 0; i < 40; ++i) held.push_back(web.pick());
  EXPECT_EQ(web.instances()[0].in_flight, 30);
}

TEST_F(PolicyTest, SlowInstancesGetFewerCalls) {
  discovery_.publish(numbered(4));
  const auto web = balancer(p2c_ewma());
  Counts counts;
  for (int i = 0; i < 2000; ++i) {
    const Pick pick = web.pick();
    ++counts[pick->id];
    clock_->advance(1ms);
    pick.report(Outcome::kOk, pick->id == "2" ? 500ms : 5ms);
  }
  EXPECT_LT(counts["2"], 100);
  EXPECT_GT(counts["2"], 0) << "it is asked now and then whether it is better";
  EXPECT_GT(counts["1"], 400);
}

TEST_F(PolicyTest, FailingInstancesGetFewerCalls) {
  discovery_.publish(numbered(4));
  const auto web = balancer(p2c_ewma().never_eject());
  Counts counts;
  for (int i = 0; i < 2000; ++i) {
    const Pick pick = web.pick();
    ++counts[pick->id];
    clock_->advance(1ms);
    pick.report(pick->id == "2" ? Outcome::kFailed : Outcome::kOk, 5ms);
  }
  EXPECT_LT(counts["2"], 100);
}

TEST_F(PolicyTest, ManySuccessesMakeUpForFailures) {
  detail::Health health(p2c_ewma().never_eject());
  const detail::Node node("a", 0, std::make_shared<detail::ZoneHealth>(), 0);
  detail::Nanos now = 1;
  // A thousand calls a second.
  const auto call = [&](Outcome outcome, int times) {
    for (int i = 0; i < times; ++i) node.learn(outcome, 5'000'000, now += 1'000'000, health);
  };
  call(Outcome::kOk, 1000);
  const double good = node.p2c_weight();
  call(Outcome::kFailed, 1000);
  EXPECT_LT(node.p2c_weight(), good / 2);
  call(Outcome::kOk, 5000);
  EXPECT_NEAR(node.p2c_weight(), good, good / 100);
}

TEST_F(PolicyTest, AFrozenInstanceGetsNoMoreCallsThanOthersHaveInFlight) {
  discovery_.publish(numbered(3));
  const auto web = balancer(p2c_ewma());
  std::vector<Pick> frozen;
  for (int i = 0; i < 1000; ++i) {
    Pick pick = web.pick();
    clock_->advance(1ms);
    if (pick->id == "1") {
      frozen.push_back(std::move(pick));
    } else {
      pick.report(Outcome::kOk, 5ms);
    }
  }
  EXPECT_LT(frozen.size(), 10u);
}

TEST_F(PolicyTest, HashesKeepTheirInstance) {
  discovery_.publish(numbered(10));
  const auto web = balancer(consistent_hash());
  std::map<int, std::string> owners;
  Counts counts;
  for (int key = 0; key < 1000; ++key) {
    const auto hash = hash_of("user-" + std::to_string(key));
    owners[key] = web.pick({.hash = hash})->id;
    ++counts[owners[key]];
    EXPECT_EQ(web.pick({.hash = hash})->id, owners[key]);
  }
  for (const auto& [id, count] : counts) EXPECT_GT(count, 40) << id;
  // Removing an instance moves only its own hashes.
  auto fewer = numbered(10);
  fewer.erase(fewer.begin() + 3);
  discovery_.publish(fewer);
  int moved = 0;
  for (const auto& [key, owner] : owners) {
    const auto now = web.pick({.hash = hash_of("user-" + std::to_string(key))})->id;
    if (owner != "4") {
      EXPECT_EQ(now, owner);
    } else {
      ++moved;
    }
  }
  EXPECT_EQ(moved, counts["4"]);
}

TEST_F(PolicyTest, HashesKeepTheirInstanceInShares) {
  std::vector<ServiceInstance> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back({.id = std::to_string(i),
                   .version = i < 10 ? "v1" : "v2",
                   .zone = i % 10 < 3 ? "here" : "there"});
  }
  discovery_.publish(all);
  for (const auto& policy :
       {consistent_hash().canary_version("v2", 0.3), consistent_hash().prefer_zone("here", 0.5),
        consistent_hash().canary_version("v2", 0.3).prefer_zone("here")}) {
    const auto web = balancer(policy);
    int canaries = 0;
    Counts counts;
    for (std::uint64_t hash = 0; hash < 2000; ++hash) {
      const PickOptions options{.hash = hash};
      const std::string id = web.pick(options)->id;
      for (int i = 0; i < 5; ++i) ASSERT_EQ(web.pick(options)->id, id);
      canaries += web.pick(options)->version == "v2" ? 1 : 0;
      ++counts[id];
    }
    EXPECT_EQ(counts.size(), 20u);
    if (policy.canary) {
      EXPECT_NEAR(canaries, 600, 60);
    }
  }
}

TEST_F(PolicyTest, AHotHashSpillsOver) {
  discovery_.publish(numbered(4));
  const auto web = balancer(consistent_hash());
  std::vector<Pick> held;
  for (int i = 0; i < 40; ++i) held.push_back(web.pick({.hash = hash_of("hot")}));
  std::int64_t in_flight = 0;
  for (const auto& instance : web.instances()) {
    EXPECT_LE(instance.in_flight, 13) << "1.25 times the mean";
    in_flight += instance.in_flight;
  }
  EXPECT_EQ(in_flight, 40);
}

TEST_F(PolicyTest, AZoneGetsCallsUpToItsCapacity) {
  // A third of the callers, but only a quarter of the instances.
  discovery_.publish({{.id = "a1", .zone = "a"},
                      {.id = "a2", .zone = "a"},
                      {.id = "b1", .zone = "b"},
                      {.id = "b2", .zone = "b"},
                      {.id = "b3", .zone = "b"},
                      {.id = "c1", .zone = "c"},
                      {.id = "c2", .zone = "c"},
                      {.id = "c3", .zone = "c"}});
  const auto of_a = [](const Counts& counts) {
    int out = 0;
    for (const auto& [id, count] : counts) out += id.starts_with('a') ? count : 0;
    return out;
  };
  const auto web = balancer(round_robin().prefer_zone("a").eject_after(1));
  EXPECT_NEAR(of_a(count(web, 1000)), 750, 10);
  EXPECT_EQ(of_a(count(balancer(round_robin().prefer_zone("a", 0.25)), 1000)), 1000);
  EXPECT_EQ(of_a(count(balancer(round_robin().prefer_zone("none")), 800)), 200);
  EXPECT_EQ(of_a(count(balancer(round_robin().prefer_zone("b")), 1000)), 0) << "b can carry all";
  // An ejected instance has no capacity: 1 of 7 for a third of the callers.
  fail(web, "a1", 1);
  const auto counts = count(web, 1000);
  EXPECT_NEAR(of_a(counts), 428, 20);
  EXPECT_FALSE(counts.contains("a1"));
}

TEST_F(PolicyTest, ACanaryGetsItsShare) {
  auto instances = numbered(10);
  instances[3].version = "v2";
  discovery_.publish(instances);
  const auto web = balancer(round_robin().canary_version("v2", 0.05));
  EXPECT_NEAR(count(web, 1000)["4"], 50, 2);
  // Without other instances it gets all calls, and without a canary the others do.
  discovery_.publish({instances[3]});
  EXPECT_EQ(count(web, 10)["4"], 10);
  instances.erase(instances.begin() + 3);
  discovery_.publish(instances);
  EXPECT_EQ(count(web, 90)["1"], 10);
}

TEST_F(PolicyTest, FiltersAreCombined) {
  auto instances = numbered(4);
  instances[0].version = instances[1].version = "v2";
  instances[1].metadata = instances[2].metadata = {{"tier", "gold"}};
  discovery_.publish(instances);
  EXPECT_THAT(count(balancer(round_robin().only_version("v2")), 10),
              ElementsAre(Pair("1", 5), Pair("2", 5)));
  EXPECT_THAT(count(balancer(p2c_ewma().only_version("v2").where("tier", "gold")), 10),
              ElementsAre(Pair("2", 10)));
}

TEST_F(PolicyTest, AFunctionThatThrowsDoesNotAccept) {
  const auto is_first = [](const ServiceInstance& instance) {
    return instance.metadata.at("shard") == "1";
  };
  BalancerPolicy canaries = round_robin();
  canaries.canary = is_first;
  canaries.canary_share = 0.5;
  const auto filtered = balancer(round_robin().where(is_first));
  const auto split = balancer(canaries);
  discovery_.publish({{.id = "a", .metadata = {{"shard", "1"}}}, {.id = "b"}, {.id = "c"}});
  EXPECT_THAT(count(filtered, 4), ElementsAre(Pair("a", 4)));
  const Counts counts = count(split, 1000);
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_NEAR(counts.at("a"), 500, 2);
}

TEST_F(PolicyTest, EachCallerHasAStableSubset) {
  const auto members = [&](const std::string& caller) {
    return count(balancer(round_robin().subset(4, caller)), 400);
  };
  discovery_.publish(numbered(20));
  const Counts first = members("caller-1");
  EXPECT_EQ(first.size(), 4u);
  EXPECT_EQ(members("caller-1"), first);
  Counts all;
  for (int caller = 0; caller < 100; ++caller) {
    for (const auto& [id, picks] : members("caller-" + std::to_string(caller))) ++all[id];
  }
  EXPECT_EQ(all.size(), 20u) << "each instance has callers";
  discovery_.publish(numbered(21));
  int kept = 0;
  for (const auto& [id, picks] : members("caller-1")) kept += first.contains(id) ? 1 : 0;
  EXPECT_GE(kept, 3);
}

TEST_F(PolicyTest, ASubsetHasInstancesOfEachScheme) {
  auto instances = numbered(20);  // "http"
  for (std::size_t i : {3u, 7u, 11u, 15u, 19u}) {
    instances[i].endpoints = {"GRPC://host:90", "http://host:80"};
  }
  instances[0].endpoints = {"grpc://host:90"};
  discovery_.publish(instances);
  for (int caller = 0; caller < 50; ++caller) {
    const auto web = balancer(round_robin().subset(3, "caller-" + std::to_string(caller)));
    const Counts grpc = count(web, 60, {.scheme = "grpc"});
    EXPECT_FALSE(grpc.contains("none")) << "caller " << caller;
    EXPECT_GE(grpc.size(), 3u) << "caller " << caller;
    EXPECT_GE(count(web, 60, {.scheme = "http"}).size(), 3u) << "caller " << caller;
    EXPECT_LE(count(web, 60).size(), 6u) << "caller " << caller;
  }
}

TEST_F(PolicyTest, NewInstancesStartSlowly) {
  discovery_.publish(numbered(3));
  const auto web = balancer(round_robin().slow_start_for(10s));
  EXPECT_EQ(count(web, 300)["1"], 100) << "the first set is not new";
  discovery_.publish(numbered(4));
  EXPECT_LT(count(web, 1000)["4"], 60);
  clock_->advance(5s);
  EXPECT_NEAR(count(web, 1000)["4"], 125, 40);
  clock_->advance(5s);
  EXPECT_EQ(count(web, 1000)["4"], 250);
}

TEST_F(PolicyTest, SlowStartDoesNotPreventPicks) {
  discovery_.publish(numbered(1));
  const auto web = balancer(round_robin().slow_start_for(10s));
  auto other = numbered(2);
  other.erase(other.begin());
  discovery_.publish(other);
  EXPECT_EQ(count(web, 100)["2"], 100);
}

// ------------------------------------------------------------------------------- ejection

class EjectionTest : public PolicyTest, public testing::WithParamInterface<BalancerPolicy> {};

TEST_P(EjectionTest, FailuresInARowEject) {
  discovery_.publish(numbered(4));
  const auto web = balancer(GetParam().eject_after(3, 30s));
  fail(web, "2", 2);
  pick_of(web, "2").report(Outcome::kOk, 1ms);
  fail(web, "2", 2);
  EXPECT_EQ(web.instances()[1].ejected, false) << "not in a row";
  fail(web, "2", 1);
  EXPECT_TRUE(web.instances()[1].ejected);
  EXPECT_FALSE(count(web, 1000).contains("2"));
  clock_->advance(30s);
  EXPECT_TRUE(count(web, 1000).contains("2"));
  // The next ejection needs as many failures, and is twice as long.
  fail(web, "2", 2);
  EXPECT_FALSE(web.instances()[1].ejected);
  fail(web, "2", 1);
  clock_->advance(59s);
  EXPECT_FALSE(count(web, 1000).contains("2"));
  clock_->advance(1s);
  EXPECT_TRUE(count(web, 1000).contains("2"));
  // After a time without failures it is short again.
  clock_->advance(300s);
  fail(web, "2", 3);
  clock_->advance(30s);
  EXPECT_TRUE(count(web, 1000).contains("2"));
}

INSTANTIATE_TEST_SUITE_P(, EjectionTest,
                         testing::Values(round_robin(), weighted(), BalancerPolicy::zones(),
                                         least_loaded(), p2c_ewma(), consistent_hash(),
                                         round_robin().prefer_zone("a")));

TEST_F(PolicyTest, AnEjectionLastsFiveMinutesAtMost) {
  discovery_.publish(numbered(4));
  const auto web = balancer(round_robin().eject_after(1, 100s));
  for (const auto length : {100s, 200s, 300s, 300s, 300s}) {
    fail(web, "2", 1);
    clock_->advance(length - 1s);
    EXPECT_FALSE(count(web, 40).contains("2"));
    clock_->advance(1s);
    EXPECT_TRUE(count(web, 40).contains("2"));
  }
}

TEST_F(PolicyTest, ASilentInstanceIsEjectedAtOnce) {
  discovery_.publish(numbered(4));
  const auto web = balancer(p2c_ewma().eject_after(3));
  const auto lenient = balancer(p2c_ewma().never_eject());
  // It responds to other calls in the meantime: one slow call is no reason.
  const Pick slow = pick_of(web, "2");
  clock_->advance(500ms);
  pick_of(web, "2").report(Outcome::kOk, 1ms);
  clock_->advance(500ms);
  slow.report(Outcome::kTimedOut, 1s);
  EXPECT_FALSE(web.instances()[1].ejected);
  // It has not responded to any call since this one began.
  for (const auto* balancer : {&web, &lenient}) {
    const Pick silent = pick_of(*balancer, "2");
    clock_->advance(1s);
    silent.report(Outcome::kTimedOut, 1s);
  }
  EXPECT_TRUE(web.instances()[1].ejected);
  EXPECT_FALSE(count(web, 1000).contains("2"));
  EXPECT_FALSE(lenient.instances()[1].ejected);
  clock_->advance(30s);
  EXPECT_TRUE(count(web, 1000).contains("2"));
}

TEST_F(PolicyTest, AtMostHalfIsEjected) {
  discovery_.publish(numbered(5));
  const auto web = balancer(round_robin().eject_after(1));
  for (const char* id : {"1", "2", "3"}) fail(web, id, 1);
  const Counts counts = count(web, 900);
  EXPECT_EQ(counts.size(), 3u);
  for (const char* id : {"3", "4", "5"}) EXPECT_GT(counts.at(id), 200) << id;
  // The only instance is never ejected.
  discovery_.publish(numbered(1));
  fail(web, "1", 5);
  EXPECT_EQ(count(web, 5)["1"], 5);
}

TEST_F(PolicyTest, EjectionsAreIgnoredWhenFewInstancesAreLeft) {
  discovery_.publish(numbered(6));
  const auto web = balancer(round_robin().eject_after(1));
  for (const char* id : {"1", "2", "3"}) fail(web, id, 1);
  EXPECT_EQ(count(web, 60).size(), 3u);
  // Two healthy instances leave: one of four is left.
  discovery_.publish(numbered(4));
  EXPECT_EQ(count(web, 60).size(), 4u);
}

TEST_F(PolicyTest, EjectedInstancesArePickedIfThereIsNoOther) {
  discovery_.publish(numbered(2));
  const auto web = balancer(round_robin().eject_after(1));
  fail(web, "1", 1);
  const Pick good = web.pick();
  EXPECT_EQ(good->id, "2");
  EXPECT_EQ(web.pick(std::span(&good, 1))->id, "1");
}

TEST_F(PolicyTest, AnInstanceWithALowSuccessRateIsEjected) {
  discovery_.publish(numbered(10));
  const auto web = balancer(round_robin().eject_after(0));
  int calls = 0;
  const auto second = [&] {
    for (int i = 0; i < 2000; ++i) {
      const Pick pick = web.pick();
      // Never enough failures in a row, and the other instances fail rarely.
      const bool ok = pick->id == "7" ? ++calls % 2 == 0 : i % 100 != 0;
      pick.report(ok ? Outcome::kOk : Outcome::kFailed, 1ms);
    }
  };
  second();
  EXPECT_EQ(count(web, 1000)["7"], 100) << "the interval is not over";
  clock_->advance(10s);
  second();
  EXPECT_FALSE(count(web, 1000).contains("7"));
  EXPECT_EQ(count(web, 900).size(), 9u);
}

TEST_F(PolicyTest, CancelledCallsAreIgnored) {
  discovery_.publish(numbered(2));
  const auto web = balancer(round_robin().eject_after(1));
  for (int i = 0; i < 10; ++i) pick_of(web, "1").report(Outcome::kIgnored, 1ms);
  EXPECT_EQ(count(web, 10)["1"], 5);
  EXPECT_EQ(web.instances()[0].in_flight, 0);
}

TEST_F(PolicyTest, OnlyTheFirstReportOfAPickCounts) {
  discovery_.publish(numbered(2));
  const auto web = balancer(round_robin().eject_after(2));
  Pick pick = pick_of(web, "1");
  const Pick copy = pick;
  copy.report(Outcome::kFailed, 1ms);
  EXPECT_EQ(web.instances()[0].failed, 0u) << "a copy is no call";
  EXPECT_EQ(web.instances()[0].in_flight, 1);
  const Pick moved = std::move(pick);
  for (int i = 0; i < 2; ++i) {
    web.report(moved, Outcome::kFailed, 1ms);
    copy.report(Outcome::kFailed, 1ms);
  }
  EXPECT_EQ(web.instances()[0].failed, 1u);
  EXPECT_EQ(web.instances()[0].in_flight, 0);
  EXPECT_FALSE(web.instances()[0].ejected);
}

TEST_F(PolicyTest, AnEjectionEndsWhenTheInstanceLeaves) {
  discovery_.publish(numbered(4));
  const auto web = balancer(round_robin().eject_after(1));
  fail(web, "1", 1);
  auto others = numbered(4);
  others.erase(others.begin());
  discovery_.publish(others);
  discovery_.publish(numbered(4));
  EXPECT_EQ(count(web, 40)["1"], 10);
}

// The pod of a StatefulSet is replaced, and no set without it is published.
TEST_F(PolicyTest, AnInstanceWithAnotherAddressIsANewOne) {
  discovery_.publish(numbered(4));
  const auto web = balancer(round_robin().eject_after(1));
  fail(web, "1", 1);
  auto others = numbered(4);
  others[0].endpoints = {"http://host-9:80"};
  discovery_.publish(others);
  EXPECT_EQ(count(web, 40)["1"], 10);
  others[0].metadata["note"] = "changed";
  fail(web, "1", 1);
  discovery_.publish(others);
  EXPECT_EQ(count(web, 40)["1"], 0) << "other changes make it no other";
}

TEST_F(PolicyTest, CallsBeforeAMoveDoNotEject) {
  discovery_.publish(numbered(4));
  const auto web = balancer(round_robin().eject_after(1));
  const Pick late = pick_of(web, "1");
  auto moved = numbered(4);
  moved[0].zone = "b";
  discovery_.publish(moved);
  late.report(Outcome::kFailed, 1ms);
  EXPECT_EQ(ejected(web), 0);
}

// ----------------------------------------------------------------------- sets that empty

TEST_F(PolicyTest, CallsOfARemovedInstanceDoNotEject) {
  discovery_.publish(numbered(4));
  const auto web = balancer(round_robin().eject_after(1));
  const Pick late = pick_of(web, "1");
  auto others = numbered(4);
  others.erase(others.begin());
  discovery_.publish(others);
  late.report(Outcome::kFailed, 1ms);
  EXPECT_EQ(ejected(web), 0);
  EXPECT_EQ(count(web, 30).size(), 3u);
}

TEST_F(PolicyTest, TheLastInstancesAreKeptForTheConfiguredTime) {
  discovery_.publish(numbered(2));
  const auto web = balancer(round_robin().keep_last_for(30s));
  discovery_.publish({});
  EXPECT_EQ(count(web, 10)["1"], 5);
  clock_->advance(29s);
  EXPECT_EQ(count(web, 10)["1"], 5);
  EXPECT_EQ(web.instances().size(), 2u);
  EXPECT_EQ(gauge(web, "lookout_registry_instances"), 2);
  EXPECT_EQ(web.load()->size(), 2u);
  clock_->advance(1s);
  EXPECT_EQ(count(web, 10)["none"], 10);
  EXPECT_EQ(web.instances().size(), 0u);
  EXPECT_EQ(gauge(web, "lookout_registry_instances"), 0);
  EXPECT_EQ(web.load()->size(), 0u);
  discovery_.publish(numbered(1));
  EXPECT_EQ(count(web, 10)["1"], 10);
}

TEST_F(PolicyTest, TimesMayHaveNoLimit) {
  constexpr auto kForever = std::chrono::milliseconds::max();
  discovery_.publish(numbered(3));
  const auto web = balancer(
      round_robin().keep_last_for(kForever).eject_after(1, kForever).slow_start_for(kForever));
  for (int i = 0; i < 2; ++i) {
    fail(web, "1", 1);
    EXPECT_EQ(ejected(web), 1);
    clock_->advance(1h);
    EXPECT_EQ(count(web, 10)["1"], 0);
  }
  discovery_.publish({});
  clock_->advance(24h);
  EXPECT_EQ(count(web, 10)["none"], 0);
}

TEST_F(PolicyTest, UnusableSetsNeitherEndNorExtendTheTime) {
  auto unready = numbered(2);
  for (auto& instance : unready) instance.ready = false;
  discovery_.publish(numbered(2));
  const auto web = balancer(round_robin().keep_last_for(30s));
  discovery_.publish(unready);
  clock_->advance(20s);
  unready.pop_back();
  discovery_.publish(unready);
  EXPECT_EQ(count(web, 10)["1"], 5);
  clock_->advance(9s);
  discovery_.publish({});
  EXPECT_EQ(count(web, 10)["1"], 5);
  clock_->advance(1s);
  EXPECT_EQ(count(web, 10)["none"], 10);
  discovery_.publish(unready);
  EXPECT_EQ(count(web, 10)["none"], 10);
  // Each usable set restarts the time.
  discovery_.publish(numbered(1));
  discovery_.publish({});
  clock_->advance(29s);
  discovery_.publish(unready);
  EXPECT_EQ(count(web, 10)["1"], 10);
}

TEST_F(PolicyTest, InstancesAreNotKeptByDefault) {
  discovery_.publish(numbered(2));
  const auto web = balancer(round_robin());
  discovery_.publish({});
  EXPECT_EQ(count(web, 10)["none"], 10);
}

// -------------------------------------------------------------------------------- metrics

TEST_F(PolicyTest, HasMetrics) {
  discovery_.publish(numbered(4));
  const auto web = balancer(round_robin().eject_after(2));
  fail(web, "3", 2);
  std::vector<metrics::Sample> samples;
  web.collect(samples);
  const auto value = [&](const std::string& name, const std::string& instance = {}) {
    for (const auto& sample : samples) {
      if (sample.name != name) continue;
      if (instance.empty() || sample.labels.back().second == instance) return sample.value;
    }
    ADD_FAILURE() << name;
    return -1.0;
  };
  EXPECT_EQ(value("lookout_registry_instances"), 4);
  EXPECT_EQ(value("lookout_registry_ejected"), 1);
  EXPECT_EQ(value("lookout_registry_ejections_total"), 1);
  EXPECT_EQ(value("lookout_registry_errors_total", "3"), 2);
  EXPECT_EQ(value("lookout_registry_errors_total", "1"), 0);
  EXPECT_EQ(value("lookout_registry_instance_ejected", "3"), 1);
  EXPECT_EQ(value("lookout_registry_instance_ejected", "1"), 0);
  EXPECT_EQ(value("lookout_registry_picks_total", "3"), 2);
  EXPECT_EQ(value("lookout_registry_live"), 1);
}

TEST_F(PolicyTest, ManyThreadsReportAtOnce) {
  discovery_.publish(numbered(8));
  const Balancer web(discovery_, "web", p2c_ewma().eject_after(3, 1ms).slow_start_for(2ms));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const Pick pick = web.pick();
        ASSERT_TRUE(pick);
        pick.report((i + t) % 3 == 0 ? Outcome::kFailed : Outcome::kOk, 1ms);
      }
    });
  }
  for (int i = 0; i < 200; ++i) discovery_.publish(numbered(6 + i % 3));
  threads.clear();
  for (const auto& instance : web.instances()) {
    EXPECT_EQ(instance.in_flight, 0) << instance.key;
  }
}

}  // namespace
}  // namespace lookout::registry
