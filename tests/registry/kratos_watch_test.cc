// The kratos registry against a server: what it announces to watchers and subscribers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/matchers.h"

namespace lookout::registry::kratos {
namespace {

using namespace registry::test;

class KratosWatchTest : public testing::Test {
 protected:
  /// A watcher of "web" that has received its first set.
  static Watcher watch_web(Registry& registry) {
    auto watcher = registry.watch("web");
    EXPECT_TRUE(watcher.next_for(kLong));
    return watcher;
  }

  Cluster cluster_;
};

TEST_F(KratosWatchTest, AnExistingSetIsDeliveredAtOnce) {
  cluster_.create_pod("web-1", kratos_pod("web", "1"));
  Registry registry(cluster_.client());
  registry.get_service("web");
  auto watcher = registry.watch("web");
  const auto first = watcher.next_for(kLong);
  ASSERT_TRUE(first);
  EXPECT_THAT(ids(*first), ElementsAre("1"));
  EXPECT_EQ(watcher.next_for(1ms).outcome(), NextOutcome::kTimedOut) << "nothing has changed";
  EXPECT_EQ(watcher.latest(), first.set());
  const auto computed = registry.stats().computed;
  EXPECT_EQ(registry.latest("web"), first.set());
  EXPECT_EQ(registry.stats().computed, computed);
}

TEST_F(KratosWatchTest, AnEmptySetIsAnnouncedOnce) {
  Registry registry(cluster_.client());
  auto early = registry.watch("web");
  registry.get_service("web");
  auto late = registry.watch("web");
  Gate told;
  const auto subscription = registry.subscribe("web", [&](const InstanceSetPtr& set) {
    EXPECT_TRUE(set->empty());
    told.open();
  });
  for (auto* watcher : {&early, &late}) {
    const auto first = watcher->next_for(kLong);
    ASSERT_TRUE(first) << to_string(first.outcome());
    EXPECT_TRUE(first->empty());
    EXPECT_EQ(watcher->next_for(1ms).outcome(), NextOutcome::kTimedOut) << "it is still empty";
  }
  EXPECT_TRUE(told.wait());
}

TEST_F(KratosWatchTest, AWaitMayHaveNoLimit) {
  constexpr auto kForever = std::chrono::milliseconds::max();
  Registry registry(cluster_.client());
  EXPECT_TRUE(registry.get_service("web", {.timeout = kForever})->empty());
  auto watcher = registry.watch("web");
  EXPECT_TRUE(watcher.next_for(kForever));
}

TEST_F(KratosWatchTest, NothingIsAnnouncedBeforeThereIsData) {
  cluster_.stop_server();
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  EXPECT_TRUE(registry.latest("web")->empty());
  EXPECT_EQ(watcher.next_for(100ms).outcome(), NextOutcome::kTimedOut)
      << "that nothing is known does not mean that there is nothing";
}

struct Departure {
  const char* what;
  void (*leave)(Cluster& cluster);
};

class KratosDepartureTest : public KratosWatchTest,
                            public testing::WithParamInterface<Departure> {};

TEST_P(KratosDepartureTest, IsAnnounced) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  cluster_.create_pod("b", kratos_pod("web", "b"));
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  GetParam().leave(cluster_);
  const auto result = watcher.next_for(kLong);
  ASSERT_TRUE(result) << to_string(result.outcome());
  EXPECT_THAT(ids(*result), ElementsAre("b"));
}

INSTANTIATE_TEST_SUITE_P(
    , KratosDepartureTest,
    testing::Values(
        Departure{"Deleted", [](Cluster& c) { c.remove_pod("a"); }},
        Departure{"Terminating",
                  [](Cluster& c) {
                    c.pods().remove("a");  // with its grace period
                  }},
        Departure{"Failed", [](Cluster& c) { c.set_status("a", "10.0.0.1", "Failed", false); }},
        Departure{"NotReady", [](Cluster& c) { c.set_status("a", "10.0.0.1", "Running", false); }},
        Departure{"Relabelled", [](Cluster& c) { c.label("a", "kratos-service-app", "api"); }},
        Departure{"Deregistered", [](Cluster& c) { c.label("a", "kratos-service-app", ""); }},
        Departure{"LabelRemoved",
                  [](Cluster& c) {
                    c.patch_pod("a", R"({"metadata":{"labels":{"kratos-service-app":null}}})");
                  }}),
    [](const auto& test) { return test.param.what; });

TEST_F(KratosWatchTest, AMoveToAnotherServiceIsAnnouncedToBoth) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  Registry registry(cluster_.client());
  auto web = watch_web(registry);
  auto api = registry.watch("api");
  cluster_.label("a", "kratos-service-app", "api");
  ASSERT_TRUE(next_that(web, [](const auto& s) { return s.empty(); }));
  ASSERT_TRUE(next_that(api, [](const auto& s) { return s.size() == 1; }));
}

TEST_F(KratosWatchTest, IrrelevantChangesAreNotAnnounced) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  const auto first = watcher.next_for(kLong);
  ASSERT_TRUE(first);
  for (int i = 0; i < 20; ++i) cluster_.annotate("a", "note", std::to_string(i));
  cluster_.annotate("a", "kratos-service-metadata", R"({"new":"yes"})");
  const auto second = watcher.next_for(kLong);
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)[0].metadata.at("new"), "yes");
  EXPECT_EQ(registry.stats().announced, 2u);
}

TEST_F(KratosWatchTest, UnreadSetsAreCoalescedToTheLatest) {
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  auto other = registry.watch("web");
  for (int i = 0; i < 30; ++i) {
    cluster_.create_pod(fmt::format("web-{:02}", i), kratos_pod("web", std::to_string(i)));
  }
  // Other watchers receive sets while this one does not read.
  ASSERT_TRUE(next_that(other, [](const auto& s) { return s.size() == 30; }));
  // (The last set may not have reached this watcher yet.)
  int sets = 0;
  ASSERT_TRUE(next_that(watcher, [&](const auto& s) { return ++sets > 0 && s.size() == 30; }));
  EXPECT_LE(sets, 2);
}

TEST_F(KratosWatchTest, AnUnchangedSetIsNotAnnouncedAgain) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  Registry registry(cluster_.client());
  auto slow = watch_web(registry);
  auto other = watch_web(registry);
  cluster_.set_status("a", "10.0.0.1", "Running", false);
  ASSERT_TRUE(next_that(other, [](const auto& s) { return s.empty(); }));
  cluster_.set_status("a", "10.0.0.1", "Running", true);
  ASSERT_TRUE(next_that(other, [](const auto& s) { return s.size() == 1; }));
  EXPECT_EQ(slow.next_for(1ms).outcome(), NextOutcome::kTimedOut) << "it went and came back";
}

TEST_F(KratosWatchTest, TheReasonsOfTheEndAreDistinct) {
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  EXPECT_TRUE(watcher.next_for(kLong));
  EXPECT_EQ(watcher.next({}, std::chrono::steady_clock::now()).outcome(), NextOutcome::kTimedOut);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(watcher.next(stop.get_token()).outcome(), NextOutcome::kCancelled);
  auto stopped = registry.watch("web");
  stopped.stop();
  EXPECT_EQ(stopped.next().outcome(), NextOutcome::kStopped);
  registry.close();
  EXPECT_EQ(watcher.next().outcome(), NextOutcome::kClosed);
  EXPECT_EQ(stopped.next().outcome(), NextOutcome::kStopped) << "it stays what it was";
  EXPECT_THROW(registry.watch("web"), InvalidArgument);
  EXPECT_THROW(registry.get_service("web"), InvalidArgument);
  EXPECT_FALSE(registry.freshness().live);
}

TEST_F(KratosWatchTest, EachEndWakesTheWaiter) {
  for (const auto end : {NextOutcome::kCancelled, NextOutcome::kStopped, NextOutcome::kClosed}) {
    Registry registry(cluster_.client());
    auto watcher = registry.watch("web");
    ASSERT_TRUE(watcher.next_for(kLong));
    std::stop_source stop;
    std::latch waiting(1);
    NextOutcome outcome = NextOutcome::kInstances;
    std::jthread waiter([&] {
      waiting.count_down();
      outcome = watcher.next(stop.get_token()).outcome();
    });
    lookout::test::wait_for(waiting);
    if (end == NextOutcome::kCancelled) stop.request_stop();
    if (end == NextOutcome::kStopped) watcher.stop();
    if (end == NextOutcome::kClosed) registry.close();
    waiter.join();
    EXPECT_EQ(outcome, end);
  }
}

TEST_F(KratosWatchTest, AWatcherMayOutliveTheRegistry) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  auto first = std::make_unique<Registry>(cluster_.client());
  auto watcher = first->watch("web");
  const auto set = next_that(watcher, [](const auto&) { return true; });
  ASSERT_TRUE(set);
  first.reset();
  EXPECT_EQ(watcher.next().outcome(), NextOutcome::kClosed);
  EXPECT_THAT(ids(*set), ElementsAre("a"));
  EXPECT_FALSE(set->freshness().live);
}

TEST_F(KratosWatchTest, WatchersHaveACoroutineForm) {
  Registry registry(cluster_.client());
  auto watcher = watch_web(registry);
  auto future = boost::asio::co_spawn(
      cluster_.client().loop().context(),
      [&]() -> Awaitable<std::vector<NextOutcome>> {
        std::vector<NextOutcome> out;
        out.push_back(
            (co_await watcher.async_next({}, std::chrono::steady_clock::now())).outcome());
        std::stop_source stop;
        stop.request_stop();
        out.push_back((co_await watcher.async_next(stop.get_token())).outcome());
        out.push_back((co_await watcher.async_next()).outcome());
        out.push_back((co_await watcher.async_next()).outcome());
        co_return out;
      },
      boost::asio::use_future);
  cluster_.create_pod("web-1", kratos_pod("web", "1"));
  ASSERT_TRUE(eventually([&] { return registry.stats().announced == 1; }));
  registry.close();
  const auto outcomes = lookout::test::get(future);
  EXPECT_EQ(outcomes[0], NextOutcome::kTimedOut);
  EXPECT_EQ(outcomes[1], NextOutcome::kCancelled);
  EXPECT_EQ(outcomes.back(), NextOutcome::kClosed);
}

TEST_F(KratosWatchTest, ANewSetWakesACoroutine) {
  Registry registry(cluster_.client());
  auto watcher = watch_web(registry);
  auto future = boost::asio::co_spawn(cluster_.client().loop().context(), watcher.async_next(),
                                      boost::asio::use_future);
  cluster_.create_pod("web-1", kratos_pod("web", "1"));
  const auto result = lookout::test::get(future);
  ASSERT_TRUE(result);
  EXPECT_THAT(ids(*result), ElementsAre("1"));
}

TEST_F(KratosWatchTest, CallbacksReceiveTheLatestSet) {
  cluster_.create_pod("web-0", kratos_pod("web", "0"));
  Registry registry(cluster_.client());
  Gate blocked;
  Gate hold;
  std::mutex mutex;
  std::vector<std::size_t> sizes;
  std::atomic<int> at_once{0};
  auto subscription = registry.subscribe("web", [&](const InstanceSetPtr& set) {
    EXPECT_EQ(++at_once, 1) << "one at a time";
    blocked.open();
    EXPECT_TRUE(hold.wait());
    {
      const std::lock_guard lock(mutex);
      sizes.push_back(set->size());
    }
    --at_once;
    throw std::runtime_error("a callback may throw");
  });
  ASSERT_TRUE(blocked.wait());
  // While the callback blocks, other watchers receive sets.
  auto watcher = registry.watch("web");
  for (int i = 1; i <= 10; ++i) {
    cluster_.create_pod(fmt::format("web-{}", i), kratos_pod("web", std::to_string(i)));
  }
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 11; }));
  hold.open();
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !sizes.empty() && sizes.back() == 11;
  }));
  subscription.cancel();
  // (The last set may have arrived after the callback continued.)
  EXPECT_EQ(sizes.front(), 1u);
  EXPECT_LE(sizes.size(), 3u);
  const std::size_t calls = sizes.size();
  cluster_.remove_pod("web-0");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 10; }));
  EXPECT_EQ(sizes.size(), calls);
}

TEST_F(KratosWatchTest, ACallbackMayEndItself) {
  cluster_.create_pod("web-0", kratos_pod("web", "0"));
  Registry registry(cluster_.client());
  Gate called;
  Gate ready;
  Subscription subscription;
  subscription = registry.subscribe("web", [&](const InstanceSetPtr&) {
    EXPECT_TRUE(ready.wait());
    subscription.cancel();
    registry.close();
    called.open();
  });
  ready.open();
  EXPECT_TRUE(called.wait());
}

TEST_F(KratosWatchTest, ASetSharesUnchangedInstances) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  cluster_.create_pod("b", kratos_pod("web", "b"));
  Registry registry(cluster_.client());
  auto watcher = registry.watch("web");
  const auto before = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(before);
  cluster_.annotate("a", "kratos-service-metadata", R"({"x":"y"})");
  cluster_.annotate("b", "note", "another version of the same instance");
  cluster_.create_pod("c", kratos_pod("web", "c"));
  const auto middle = next_that(watcher, [](const auto& s) { return s.size() == 3; });
  ASSERT_TRUE(middle);
  EXPECT_EQ(before->instances()[1], middle->instances()[1]) << "the same object";
  cluster_.remove_pod("b");
  const auto after = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(after);
  EXPECT_LT(before->version(), middle->version());
  EXPECT_LT(middle->version(), after->version());

  const InstanceDiff change = diff(before, *after);
  ASSERT_EQ(change.added.size(), 1u);
  EXPECT_EQ(change.added[0]->id, "c");
  ASSERT_EQ(change.removed.size(), 1u);
  EXPECT_EQ(change.removed[0]->id, "b");
  ASSERT_EQ(change.changed.size(), 1u);
  EXPECT_THAT(change.changed[0].before->metadata, IsEmpty());
  EXPECT_EQ(change.changed[0].after->metadata.at("x"), "y");
  EXPECT_TRUE(diff(after, *after).empty());
  EXPECT_EQ(diff(nullptr, *after).added.size(), 2u);
}

// -------------------------------------------------------------------------------------- failures

TEST_F(KratosWatchTest, WithoutTheServerTheLastSetIsServedAndMarkedStale) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  cluster_.create_pod("b", kratos_pod("web", "b"));
  Options options;
  options.backoff = {.initial = 1ms, .max = 20ms};
  Registry registry(cluster_.client(), options);
  auto watcher = registry.watch("web");
  const auto set = next_that(watcher, [](const auto& s) { return s.size() == 2; });
  ASSERT_TRUE(set);
  ASSERT_TRUE(eventually([&] { return set->freshness().live; }));
  const auto live_since = set->freshness().since;

  cluster_.stop_server();
  ASSERT_TRUE(eventually([&] { return !set->freshness().live; }));
  EXPECT_GE(set->freshness().since + 1s, live_since);
  EXPECT_EQ(registry.get_service("web")->size(), 2u);
  EXPECT_FALSE(registry.get_service("web")->freshness().live);
  EXPECT_EQ(watcher.next_for(1ms).outcome(), NextOutcome::kTimedOut) << "the set is the same";

  cluster_.start_server();
  ASSERT_TRUE(eventually([&] { return set->freshness().live; }));
  cluster_.create_pod("c", kratos_pod("web", "c"));
  cluster_.remove_pod("a");
  const auto after = next_that(watcher, [](const auto& s) {
    return ids(s) == std::vector<std::string>{"b", "c"};
  });
  EXPECT_TRUE(after);
}

}  // namespace
}  // namespace lookout::registry::kratos
