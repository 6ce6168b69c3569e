// Slow or blocking user functions do not affect a registry.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "lookout/registry/balancer.h"
#include "lookout/registry/dubbo/client.h"
#include "lookout/registry/kratos/registry.h"
#include "registry/call_queue.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/hold_up.h"
#include "tests/support/matchers.h"

namespace lookout::registry::kratos {
namespace {

using namespace registry::test;
using lookout::test::HoldUp;

class UserCodeTest : public testing::Test {
 protected:
  void create(const std::string& id) { cluster_.create_pod("web-" + id, kratos_pod("web", id)); }
  void create_malformed(const std::string& name) {
    PodTemplate pod = kratos_pod("web", name);
    pod.annotations = {{"kratos-service-metadata", "{oops"}};
    cluster_.create_pod(name, pod);
  }

  Cluster cluster_;
};

/// A callback that blocks in its first call, and records its arguments.
struct Blocked {
  std::mutex mutex;
  std::vector<std::size_t> sizes = {};
  Subscription subscription = {};

  std::vector<std::size_t> told() {
    const std::lock_guard lock(mutex);
    return sizes;
  }
};

TEST_F(UserCodeTest, ACallbackMayUseARegistryThatIsBeingDestroyed) {
  create("0");
  cluster_.create_pod("own", {});
  Options options;
  options.pod = {.ns = "default", .name = "own"};
  auto owner = std::make_unique<Registry>(cluster_.client(), options);
  Registry& registry = *owner;
  Gate called;
  const auto is_closed = [&] {
    try {
      static_cast<void>(registry.latest("web"));
      return false;
    } catch (const InvalidArgument&) {
      return true;
    }
  };
  const auto subscription = registry.subscribe("web", [&](const InstanceSetPtr&) {
    called.open();
    EXPECT_TRUE(lookout::test::eventually(is_closed));
    registry.register_instance({.name = "web", .endpoints = {"http://0.0.0.0:80"}});
  });
  ASSERT_TRUE(called.wait());
  owner.reset();
  const auto pod = cluster_.pods().get("own");
  EXPECT_EQ(pod.labels()["kratos-service-app"].as_string(), "web");
}

TEST_F(UserCodeTest, AHundredBlockedCallbacksDoNotDelayOthers) {
  create("0");
  Registry registry(cluster_.client());
  Gate hold;
  std::atomic<int> blocked{0};
  std::vector<std::unique_ptr<Blocked>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(std::make_unique<Blocked>());
    all.back()->subscription =
        registry.subscribe("web", [&, mine = all.back().get()](const InstanceSetPtr& set) {
          {
            const std::lock_guard lock(mine->mutex);
            mine->sizes.push_back(set->size());
          }
          ++blocked;
          EXPECT_TRUE(hold.wait(kLong));
        });
  }
  ASSERT_TRUE(eventually([&] { return blocked == 100; })) << blocked;

  auto watcher = registry.watch("web");
  const Feed feed(registry, "web");
  const Balancer balancer(registry, "web");
  std::atomic<std::size_t> told{0};
  const auto other =
      registry.subscribe("web", [&](const InstanceSetPtr& set) { told = set->size(); });
  for (int i = 1; i <= 5; ++i) create(std::to_string(i));
  EXPECT_TRUE(next_that(watcher, [](const auto& set) { return set.size() == 6; }));
  EXPECT_TRUE(eventually([&] { return feed.load()->size() == 6; }));
  EXPECT_TRUE(eventually([&] { return balancer.load()->size() == 6; }));
  EXPECT_TRUE(eventually([&] { return told == 6; })) << "another callback, too";
  EXPECT_EQ(blocked, 100) << "none has been called a second time";

  hold.open();
  for (const auto& mine : all) {
    EXPECT_TRUE(eventually([&] { return mine->told().size() >= 2; }));
    EXPECT_THAT(mine->told(), ElementsAre(1, 6)) << "the newest, and none in between";
  }
}

TEST_F(UserCodeTest, SixtyFourOfTenThousandCallbacksMayNeverReturn) {
  constexpr std::size_t kAll = 10'000;
  const auto blocks = [](std::size_t i) { return i % 157 == 0; };
  create("0");
  Registry registry(cluster_.client());
  Gate hold;
  std::atomic<int> blocked{0};
  std::vector<std::atomic<std::size_t>> sizes(kAll);
  std::vector<Subscription> subscriptions;
  for (std::size_t i = 0; i < kAll; ++i) {
    subscriptions.push_back(registry.subscribe("web", [&, i](const InstanceSetPtr& set) {
      sizes[i] = set->size();
      if (!blocks(i)) return;
      ++blocked;
      EXPECT_TRUE(hold.wait(kLong));
    }));
  }
  ASSERT_TRUE(eventually([&] { return blocked == 64; })) << blocked;
  create("1");
  for (std::size_t i = 0; i < kAll; ++i) {
    if (!blocks(i)) {
      ASSERT_TRUE(eventually([&] { return sizes[i] == 2; })) << i;
    }
  }
  EXPECT_EQ(blocked, 64);
  hold.open();
}

TEST_F(UserCodeTest, WithAllThreadsBlockedOnlyCallbacksWait) {
  create("0");
  Registry registry(cluster_.client(), {.handlers = {.threads = 1, .max_threads = 2}});
  Gate hold;
  std::atomic<int> blocked{0};
  std::vector<Subscription> subscriptions;
  for (int i = 0; i < 4; ++i) {
    subscriptions.push_back(registry.subscribe("web", [&](const InstanceSetPtr&) {
      ++blocked;
      EXPECT_TRUE(hold.wait(kLong));
    }));
  }
  ASSERT_TRUE(eventually([&] { return blocked == 2; }));
  auto watcher = registry.watch("web");
  const Balancer balancer(registry, "web");
  create("1");
  EXPECT_TRUE(next_that(watcher, [](const auto& set) { return set.size() == 2; }));
  EXPECT_TRUE(eventually([&] { return balancer.load()->size() == 2; }));
  EXPECT_EQ(blocked, 2);
  hold.open();
  EXPECT_TRUE(eventually([&] { return blocked >= 4; }));
}

TEST_F(UserCodeTest, ABlockedReportOfMalformedObjectsDoesNotDelayOthers) {
  HoldUp hold;
  std::mutex mutex;
  std::map<std::string, int> reports;
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    int all = 0;
    for (const auto& [name, times] : reports) all += times;
    return all;
  };
  Options options;
  options.on_malformed = [&](const Malformed& malformed) {
    hold.pass();
    const std::lock_guard lock(mutex);
    ++reports[malformed.name];
  };
  Registry registry(cluster_.client(), options);
  auto watcher = registry.watch("web");
  create_malformed("bad");
  ASSERT_TRUE(hold.reached());
  // The same informer continues, and further reports are kept.
  create_malformed("worse");
  cluster_.annotate("worse", "kratos-service-metadata", R"({"a":5})");
  cluster_.annotate("worse", "kratos-service-metadata", R"({"b":5})");
  create("0");
  EXPECT_TRUE(next_that(watcher, [](const auto& set) { return set.size() == 1; }));
  EXPECT_TRUE(eventually([&] { return registry.stats().malformed == 4; }));
  EXPECT_EQ(count(), 0);
  hold.release();
  EXPECT_TRUE(eventually([&] { return count() >= 2; }));
  EXPECT_THAT(reports, ElementsAre(testing::Pair("bad", 1), testing::Pair("worse", 1)))
      << "of one object the newest";
}

TEST_F(UserCodeTest, ABlockedReportOfARecordDoesNotDelayOtherRecords) {
  namespace dubbo = registry::dubbo;
  cluster_.create_pod("self", {});
  HoldUp hold;
  dubbo::ClientOptions options;
  options.pod = {"default", "self"};
  options.on_malformed = [&](const Malformed&) { hold.pass(); };
  dubbo::Client client(cluster_.client(), options);
  auto watcher = client.watch("key");
  cluster_.create_pod("bad", {.labels = {{"dubbo.io/label", "dubbo.io.provider"}},
                              .annotations = {{"dubbo.io/annotation", "%%%"}}});
  ASSERT_TRUE(hold.reached());
  cluster_.create_pod(
      "good", {.labels = {{"dubbo.io/label", "dubbo.io.provider"}},
               .annotations = {{"dubbo.io/annotation", dubbo::encode_records({{"key", "1"}})}}});
  const auto event = watcher.next_for(kLong);
  ASSERT_TRUE(event) << to_string(event.outcome());
  EXPECT_EQ(event->value, "1");
  EXPECT_EQ(client.get("key"), "1");
  hold.release();
  client.close();
}

// ------------------------------------------------------------------------------------ the end

TEST_F(UserCodeTest, CloseWaitsForRunningCalls) {
  create("0");
  Registry registry(cluster_.client());
  HoldUp hold;
  std::atomic<int> running{0};
  const auto subscription = registry.subscribe("web", [&](const InstanceSetPtr&) {
    ++running;
    hold.pass();
    --running;
  });
  ASSERT_TRUE(hold.reached());
  auto watcher = registry.watch("web");
  ASSERT_TRUE(watcher.next_for(kLong));
  std::atomic<int> closed{0};
  std::vector<std::jthread> closers;
  for (int i = 0; i < 2; ++i) {
    closers.emplace_back([&] {
      registry.close();
      EXPECT_EQ(running, 0) << "user code outlasts close()";
      ++closed;
    });
  }
  // A reader returns at once.
  EXPECT_EQ(watcher.next_for(kLong).outcome(), NextOutcome::kClosed);
  EXPECT_EQ(closed, 0);
  hold.release();
  closers.clear();
  EXPECT_EQ(closed, 2);
}

TEST_F(UserCodeTest, AfterTheDestructorThereAreNoReports) {
  create_malformed("bad");
  create_malformed("worse");
  HoldUp hold;
  std::atomic<int> reports{0};
  Options options;
  options.on_malformed = [&](const Malformed&) {
    hold.pass();
    ++reports;
  };
  auto registry = std::make_unique<Registry>(cluster_.client(), options);
  auto watcher = registry->watch("web");
  ASSERT_TRUE(hold.reached());
  std::atomic<bool> gone{false};
  std::jthread closer([&] {
    registry.reset();
    EXPECT_EQ(reports, 1) << "the one that ran, and no other";
    gone = true;
  });
  for (auto result = watcher.next_for(kLong); result; result = watcher.next_for(kLong)) {
  }
  EXPECT_FALSE(gone);
  hold.release();
  closer.join();
  EXPECT_EQ(reports, 1);
}

TEST_F(UserCodeTest, ACallbackMayCloseWhileAnotherIsBlocked) {
  create("0");
  Registry registry(cluster_.client());
  HoldUp hold;
  Gate closed;
  const auto blocked = registry.subscribe("web", [&](const InstanceSetPtr&) { hold.pass(); });
  ASSERT_TRUE(hold.reached());
  const auto closing = registry.subscribe("web", [&](const InstanceSetPtr&) {
    registry.close();
    closed.open();
  });
  EXPECT_TRUE(closed.wait()) << "calls must not wait for each other";
  hold.release();
}

TEST_F(UserCodeTest, CancelWaitsForTheRunningCall) {
  create("0");
  Registry registry(cluster_.client());
  HoldUp hold;
  std::atomic<bool> running{false};
  auto subscription = registry.subscribe("web", [&](const InstanceSetPtr&) {
    running = true;
    hold.pass();
    running = false;
  });
  ASSERT_TRUE(hold.reached());
  auto ran_after = lookout::test::start([&] {
    subscription.cancel();
    return running.load();
  });
  EXPECT_EQ(ran_after.wait_for(20ms), std::future_status::timeout);
  hold.release();
  EXPECT_FALSE(ran_after.get());
}

TEST_F(UserCodeTest, ACancelledCallbackIsDestroyed) {
  create("0");
  Registry registry(cluster_.client(), {.handlers = {.threads = 1, .max_threads = 1}});
  HoldUp hold;
  const auto blocked = registry.subscribe("web", [&](const InstanceSetPtr&) { hold.pass(); });
  ASSERT_TRUE(hold.reached());
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> left = captured;
  auto other = registry.subscribe("web", [captured](const InstanceSetPtr&) { ++*captured; });
  captured.reset();
  EXPECT_FALSE(left.expired());
  other.cancel();
  EXPECT_TRUE(left.expired()) << "its task still waits for a thread";
  hold.release();
}

// ---------------------------------------------------------------------------------- the queue

TEST(CallQueueTest, KeepsTheNewestOfEachKeyUpToALimit) {
  const Cluster cluster;
  const auto pool = std::make_shared<informer::HandlerPool>(cluster.client().shared_loop());
  const auto calls = std::make_shared<registry::detail::UserCalls>();
  const auto queue = std::make_shared<registry::detail::CallQueue>("test", pool, calls);
  HoldUp hold;
  std::mutex mutex;
  std::vector<int> called;
  const auto note = [&](int number) {
    return [&, number] {
      const std::lock_guard lock(mutex);
      called.push_back(number);
    };
  };
  queue->post("first", [&] { hold.pass(); });
  ASSERT_TRUE(hold.reached());
  constexpr int kMax = static_cast<int>(registry::detail::CallQueue::kMaxPending);
  for (int i = 0; i <= kMax; ++i) queue->post(std::to_string(i), note(i));
  queue->post("1", note(-1));
  queue->post("throws", [] { throw std::runtime_error("a report may throw"); });
  hold.release();
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !called.empty() && called.back() == kMax;
  }));
  const std::lock_guard lock(mutex);
  // The two oldest are evicted for the two newest.
  EXPECT_EQ(called.front(), 2);
  EXPECT_EQ(called.size(), static_cast<std::size_t>(kMax) - 1);
}

}  // namespace
}  // namespace lookout::registry::kratos
