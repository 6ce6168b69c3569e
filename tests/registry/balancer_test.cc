// Feeds and policies, with a discovery that the test controls.
#include "lookout/registry/balancer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "registry/atomic_ref.h"
#include "tests/registry/fixed_discovery.h"
#include "tests/support/allocations.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using test::FixedDiscovery;
using testing::Pair;
using Counts = std::map<std::string, int>;

ServiceInstance in_zone(const std::string& id, const std::string& zone) {
  return {.id = id, .zone = zone};
}
ServiceInstance weighing(const std::string& id, const std::string& weight) {
  return {.id = id, .metadata = {{"weight", weight}}};
}

/// Starts at the first instance.
BalancerPolicy from_the_first(BalancerPolicy policy = {}) {
  policy.seed = 0;
  return policy;
}

Counts count(const Balancer& balancer, int picks) {
  Counts out;
  for (int i = 0; i < picks; ++i) {
    const Pick pick = balancer.pick();
    ++out[pick ? pick->id : "none"];
  }
  return out;
}

TEST(BalancerTest, WithoutInstancesThereIsNoPick) {
  FixedDiscovery discovery;
  for (const auto& policy :
       {BalancerPolicy::round_robin(), BalancerPolicy::weighted(), BalancerPolicy::zones("a"),
        least_loaded(), p2c_ewma(), consistent_hash()}) {
    const Balancer balancer(discovery, "web", policy);
    EXPECT_FALSE(balancer.pick());
    EXPECT_TRUE(balancer.load()->empty());
    discovery.publish({{.id = "1", .ready = false}});
    EXPECT_FALSE(balancer.pick()) << "it is not ready";
    discovery.publish({});
  }
}

// A duration that overflows when added to the clock's time.
TEST(BalancerTest, AnInfiniteWaitIsAllowed) {
  constexpr auto kForever = std::chrono::milliseconds::max();
  FixedDiscovery discovery;
  const Balancer balancer(discovery, "web", from_the_first());
  const std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    discovery.publish({{.id = "1"}});
  });
  EXPECT_TRUE(balancer.wait_for_instance(kForever));
  const auto set = balancer.load();
  const std::jthread last([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    discovery.publish({{.id = "2"}});
  });
  EXPECT_TRUE(balancer.wait_for_change(*set, kForever));
}

TEST(BalancerTest, RoundRobinPicksOneAfterTheOther) {
  FixedDiscovery discovery;
  discovery.publish({{.id = "1"}, {.id = "2"}, {.id = "3"}});
  const Balancer balancer(discovery, "web", from_the_first());
  std::string order;
  for (int i = 0; i < 6; ++i) order += balancer.pick()->id;
  EXPECT_EQ(order, "123123");
}

TEST(BalancerTest, FirstPicksAreSpread) {
  FixedDiscovery discovery;
  discovery.publish(
      {in_zone("a1", "a"), in_zone("a2", "a"), in_zone("b1", "b"), in_zone("b2", "b")});
  for (const auto& policy : {BalancerPolicy::round_robin(), BalancerPolicy::weighted(),
                             BalancerPolicy::zones(), BalancerPolicy::zones("a")}) {
    Counts firsts;
    for (int i = 0; i < 400; ++i) ++firsts[Balancer(discovery, "web", policy).pick()->id];
    // (Each gets a quarter or half of 400 picks; the probability that one gets none is negligible.)
    EXPECT_EQ(firsts.size(), policy.local_zone.empty() ? 4u : 2u);
  }
  BalancerPolicy seeded;
  seeded.seed = 6;
  EXPECT_EQ(Balancer(discovery, "web", seeded).pick()->id, "b1") << "tests know where it begins";
}

TEST(BalancerTest, AMissingWeightIs100) {
  FixedDiscovery discovery;
  discovery.publish({weighing("a", "300"), {.id = "b"}, weighing("c", "?")});
  const Balancer balancer(discovery, "web", BalancerPolicy::weighted());
  EXPECT_THAT(count(balancer, 500), ElementsAre(Pair("a", 300), Pair("b", 100), Pair("c", 100)));
}

TEST(BalancerTest, InstancesWithoutEndpointAreNotPicked) {
  FixedDiscovery discovery;
  discovery.publish_as_they_are({in_zone("a", "a"), {.id = "b", .endpoints = {"http://h:1"}}});
  for (const auto& policy : {BalancerPolicy::round_robin(), BalancerPolicy::weighted(),
                             BalancerPolicy::zones(), BalancerPolicy::zones("a")}) {
    EXPECT_THAT(count(Balancer(discovery, "web", policy), 10), ElementsAre(Pair("b", 10)));
  }
}

TEST(BalancerTest, PicksAnUntriedInstance) {
  const std::vector<ServiceInstance> all = {
      in_zone("a1", "a"), in_zone("a2", "a"), in_zone("b1", "b"), {.id = "c", .zone = "c"}};
  for (const auto& policy :
       {BalancerPolicy::round_robin(), BalancerPolicy::weighted(), BalancerPolicy::zones(),
        BalancerPolicy::zones("a"), least_loaded(), p2c_ewma(), consistent_hash(),
        round_robin().prefer_zone("b"), p2c_ewma().canary_version("v2", 0.5)}) {
    FixedDiscovery discovery;
    discovery.publish(all);
    const Balancer balancer(discovery, "web", policy);
    // Calls on several threads; each picks until no untried instance is left.
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int call = 0; call < 200; ++call) {
          std::vector<Pick> tried;
          std::set<std::string> ids;
          while (const Pick pick = balancer.pick(tried)) {
            EXPECT_TRUE(ids.insert(pick->id).second) << pick->id << " again";
            if (!policy.local_zone.empty() && tried.size() < 2) {
              EXPECT_EQ(pick->zone, "a");
            }
            tried.push_back(pick);
          }
          EXPECT_EQ(ids.size(), 4u);
        }
      });
    }
    threads.clear();
    // An instance is identified by its key, even if its other properties have changed.
    const std::vector<Pick> tried = {balancer.pick(), Pick()};
    std::vector<ServiceInstance> changed = all;
    for (auto& instance : changed) instance.version = "v2";
    discovery.publish(changed);
    for (int i = 0; i < 20; ++i) EXPECT_NE(balancer.pick(tried)->id, tried[0]->id);
  }
}

TEST(BalancerTest, RetriesAreSpreadOverOtherInstances) {
  FixedDiscovery discovery;
  discovery.publish({{.id = "1"}, {.id = "2"}, {.id = "3"}});
  const Balancer balancer(discovery, "web");
  // One thread, one of three instances is broken: the other two share its calls equally.
  Counts seconds;
  for (int call = 0; call < 3000; ++call) {
    const Pick first = balancer.pick();
    if (first->id == "2") ++seconds[balancer.pick(std::vector{first})->id];
  }
  EXPECT_GT(seconds["1"], 200);
  EXPECT_GT(seconds["3"], 200);
}

TEST(BalancerTest, CallsOfUnwantedInstancesAreSpread) {
  // As in a rolling update: the first half has no gRPC yet. Its successor must not get its calls.
  std::vector<ServiceInstance> all;
  for (char id = 'a'; id <= 'l'; ++id) {
    const std::string host(1, id);
    all.push_back({.id = host, .endpoints = {(id < 'g' ? "http://" : "grpc://") + host + ":80"}});
  }
  FixedDiscovery discovery;
  discovery.publish(all);
  for (const auto& policy : {BalancerPolicy::round_robin(), BalancerPolicy::zones(),
                             BalancerPolicy::weighted(), least_loaded(), p2c_ewma()}) {
    const Balancer balancer(discovery, "web", policy.with_seed(1));
    Counts counts;
    for (int i = 0; i < 6000; ++i) ++counts[balancer.pick({.scheme = "grpc"})->id];
    EXPECT_EQ(counts.size(), 6u);
    for (const auto& [id, count] : counts) {
      EXPECT_NEAR(count, 1000, 150) << id << ", policy " << static_cast<int>(policy.kind);
    }
  }
}

TEST(BalancerTest, WeightsAreKeptExactlyAndSpread) {
  FixedDiscovery discovery;
  discovery.publish({weighing("a", "5"),
                     weighing("b", "1"),
                     weighing("c", "0"),
                     weighing("d", "two"),
                     weighing("e", "-1"),
                     {.id = "f"}});
  const Balancer balancer(discovery, "web", BalancerPolicy::weighted("weight", 2));
  EXPECT_THAT(count(balancer, 12),
              ElementsAre(Pair("a", 5), Pair("b", 1), Pair("d", 2), Pair("e", 2), Pair("f", 2)));
  // The picks are interleaved, not grouped by instance.
  int longest = 0;
  int run = 0;
  std::string last;
  for (int i = 0; i < 120; ++i) {
    const std::string id = balancer.pick()->id;
    run = id == last ? run + 1 : 1;
    longest = std::max(longest, run);
    last = id;
  }
  EXPECT_LE(longest, 2);
}

TEST(BalancerTest, ExcessiveWeightsAreClamped) {
  FixedDiscovery discovery;
  discovery.publish({weighing("a", "4294967295"), weighing("b", "65535")});
  const Balancer balancer(discovery, "web", BalancerPolicy::weighted());
  const auto counts = count(balancer, 2 * 65535);
  EXPECT_EQ(counts.at("a"), counts.at("b"));
}

TEST(BalancerTest, ZonesGetEqualShares) {
  FixedDiscovery discovery;
  discovery.publish(
      {in_zone("a1", "a"), in_zone("a2", "a"), in_zone("a3", "a"), in_zone("b1", "b")});
  const Balancer balancer(discovery, "web", BalancerPolicy::zones());
  EXPECT_THAT(count(balancer, 12),
              ElementsAre(Pair("a1", 2), Pair("a2", 2), Pair("a3", 2), Pair("b1", 6)));
}

TEST(BalancerTest, TheLeastRecentlyUsedZoneComesFirst) {
  FixedDiscovery discovery;
  discovery.publish({in_zone("a", "a"), in_zone("b", "b"), in_zone("c", "c")});
  const Balancer balancer(discovery, "web", from_the_first(BalancerPolicy::zones()));
  EXPECT_EQ(balancer.pick()->id, "a");
  EXPECT_EQ(balancer.pick()->id, "b");
  // A change of the set keeps the order, and a new zone comes first.
  discovery.publish({in_zone("0", "0"), in_zone("a", "a"), in_zone("b", "b"), in_zone("c", "c")});
  EXPECT_EQ(balancer.pick()->id, "0");
  EXPECT_EQ(balancer.pick()->id, "c");
  EXPECT_EQ(balancer.pick()->id, "a");
  EXPECT_EQ(balancer.pick()->id, "b");
}

TEST(BalancerTest, PrefersItsOwnZone) {
  FixedDiscovery discovery;
  discovery.publish({in_zone("a1", "a"), in_zone("a2", "a"), in_zone("b1", "b")});
  const Balancer balancer(discovery, "web", BalancerPolicy::zones("a"));
  EXPECT_THAT(count(balancer, 10), ElementsAre(Pair("a1", 5), Pair("a2", 5)));
  ServiceInstance lost = in_zone("a1", "a");
  lost.ready = false;
  discovery.publish({lost, in_zone("b1", "b")});
  EXPECT_THAT(count(balancer, 10), ElementsAre(Pair("b1", 10)));
}

TEST(BalancerTest, PickingAllocatesNothing) {
  FixedDiscovery discovery;
  discovery.publish({in_zone("a1", "a"), in_zone("b1", "b")});
  const Feed feed(discovery, "web");
  EXPECT_EQ(lookout::test::allocations_of([&] {
              for (int i = 0; i < 100; ++i) EXPECT_EQ(feed.load()->size(), 2u);
            }),
            0u);
  for (const auto& policy :
       {BalancerPolicy::round_robin(), BalancerPolicy::weighted(), BalancerPolicy::zones(),
        least_loaded(), p2c_ewma(), consistent_hash(), p2c_ewma().prefer_zone("a"),
        round_robin().canary_version("v2", 0.1).slow_start_for(std::chrono::hours(1))}) {
    const Balancer balancer(discovery, "web", policy);
    EXPECT_EQ(lookout::test::allocations_of([&] {
                for (int i = 0; i < 100; ++i) {
                  const Pick pick = balancer.pick({.scheme = "http"});
                  EXPECT_TRUE(pick);
                  balancer.report(pick, i % 5 < 4 ? Outcome::kOk : Outcome::kFailed,
                                  std::chrono::milliseconds(1));
                }
              }),
              0u);
  }
}

TEST(BalancerTest, APickStaysValid) {
  FixedDiscovery discovery;
  discovery.publish({{.id = "1"}});
  const Balancer balancer(discovery, "web");
  const Pick pick = balancer.pick();
  discovery.publish({});
  EXPECT_EQ(pick->id, "1");
  EXPECT_EQ(pick.set()->size(), 1u);
}

TEST(BalancerTest, PicksWhileTheSetChanges) {
  FixedDiscovery discovery;
  discovery.publish({{.id = "0"}});
  const Feed feed(discovery, "web");
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> loads{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::uint64_t last = 0;
      while (!done) {
        const auto set = feed.load();
        // Each version has one instance, named after the version: a set is complete or absent.
        EXPECT_GE(set->version(), last);
        EXPECT_EQ((*set)[0].id, std::to_string(set->version() - 1));
        last = set->version();
        loads.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (int i = 1; i <= 20000 || loads < 20000; ++i) {
    discovery.publish({{.id = std::to_string(i)}});
  }
  done = true;
}

/// Counts its instances.
struct Tracked : detail::Counted {
  explicit Tracked(std::atomic<int>& count) : alive(count) { ++alive; }
  ~Tracked() { --alive; }
  std::atomic<int>& alive;
};

TEST(AtomicRefTest, NeitherLosesNorLeaksReferences) {
  std::atomic<int> alive{0};
  {
    using Ref = boost::intrusive_ptr<const Tracked>;
    detail::AtomicRef<Tracked> place{Ref(new Tracked(alive))};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const Ref mine(new Tracked(alive));
        for (int n = 0; n < 20000; ++n) {
          const Ref seen = place.load();
          EXPECT_GT(seen->alive.load(), 0);
          // Some store new objects, others store the same ones repeatedly.
          if (i == 0) place.store(Ref(new Tracked(alive)));
          if (i == 1) place.store(mine);
          if (i == 2 && n % 7 == 0) place.store(seen);
        }
      });
    }
    threads.clear();
    EXPECT_LE(alive, 3) << "the one that is there, and what the threads had";
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace lookout::registry
