// Own writes are in the caches before the same request runs again.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/controller/builder.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"

namespace lookout::controller {
namespace {

class ReadYourWritesTest : public ManagerFixture {
 protected:
  /// Index functions run before a change becomes visible: with these a cache is late, or stands
  /// still. They block a thread of the loop, so this one has enough of them.
  template <class T>
  static void delay(Manager& manager, std::function<void()> wait) {
    manager.cache().add_index<T>("late", [wait = std::move(wait)](const T&) {
      wait();
      return std::string("x");
    });
  }

  const rest::Client many_{server_.client_config(), std::make_shared<EventLoop>(6u)};
  const rest::TypedClient<Secret> secrets_ = client_.resource<Secret>("default");
};

double waits(const Manager& manager) {
  std::vector<metrics::Sample> samples;
  manager.collect(samples);
  for (const auto& sample : samples) {
    if (sample.name == "controller_write_wait_seconds") return static_cast<double>(sample.count);
  }
  return -1;
}

/// Counts up in the object itself; how often it read an older value than it had written.
int stale_reads(Manager& manager, bool enabled, std::atomic<int>& runs) {
  const auto written = std::make_shared<std::atomic<int>>(0);
  const auto stale = std::make_shared<std::atomic<int>>(0);
  Builder<ConfigMap>(manager)
      .options([enabled](ControllerOptions& options) { options.read_your_writes = enabled; })
      .reconcile([&runs, written, stale](Request request, Context& context) -> Result {
        const auto map = context.find<ConfigMap>(request);
        if (!map || *written == 10) return {};
        if (std::stoi(std::string(map->data()["value"])) < *written) ++*stale;
        const auto change = map->edit();
        change.data().set("value", std::to_string(*written + 1));
        context.patch(change);
        ++*written;
        ++runs;
        return requeue_after(1us);
      });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 10; }));
  if (enabled) {
    EXPECT_TRUE(eventually([&] { return waits(manager) >= 10; }));
  }
  return *stale;
}

TEST_F(ReadYourWritesTest, ARunSeesWhatTheLastOneWrote) {
  put("m", "0");
  std::atomic<int> runs{0};
  Manager manager{many_};
  delay<ConfigMap>(manager, [] { std::this_thread::sleep_for(3ms); });
  EXPECT_EQ(stale_reads(manager, true, runs), 0);
  EXPECT_EQ(metric(manager, "controller_write_wait_timeouts_total"), 0);
}

TEST_F(ReadYourWritesTest, WithoutItRunsSeeOldStates) {
  put("m", "0");
  std::atomic<int> runs{0};
  Manager manager{many_};
  delay<ConfigMap>(manager, [] { std::this_thread::sleep_for(3ms); });
  EXPECT_GT(stale_reads(manager, false, runs), 0);
}

TEST_F(ReadYourWritesTest, OtherRequestsGoOn) {
  put("writes", "1");
  put("reads", "1");
  std::atomic<bool> shut{false};
  test::Gate gate;
  std::atomic<int> writes{0};
  std::atomic<int> reads{0};
  Manager manager{many_};
  delay<Secret>(manager, [&] {
    if (shut) {
      EXPECT_TRUE(gate.wait());
    }
  });
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    if (request.name == "reads") {
      ++reads;
      return {};
    }
    if (++writes > 1) {
      EXPECT_TRUE(context.find<Secret>("default", "made"));
      return {};
    }
    context.create(Secret::draft("made", "default"));
    return {};
  });
  shut = true;
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return metric(manager, "controller_held_requests") == 1; }));
  change("writes", "2");
  for (int i = 2; i < 6; ++i) {
    const int before = reads;
    change("reads", std::to_string(i));
    EXPECT_TRUE(eventually([&] { return reads > before; }));
  }
  EXPECT_EQ(writes, 1);
  EXPECT_EQ(metric(manager, "controller_held_requests"), 1);
  gate.open();
  EXPECT_TRUE(eventually([&] { return writes == 2; }));
}

TEST_F(ReadYourWritesTest, DeletionsAreSeenToo) {
  put("m", "1");
  secrets_.create(Secret::draft("old", "default"));
  std::atomic<bool> shut{false};
  std::atomic<int> runs{0};
  test::Gate gate;
  Manager manager{many_};
  delay<Secret>(manager, [&] {
    if (shut) {
      EXPECT_TRUE(gate.wait());
    }
  });
  Builder<ConfigMap>(manager).reconcile([&](Request, Context& context) -> Result {
    const auto old = context.find<Secret>("default", "old");
    if (++runs > 1) {
      EXPECT_FALSE(old);
      return {};
    }
    shut = true;
    EXPECT_TRUE(context.remove(*old));
    return requeue_after(1us);
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return metric(manager, "controller_held_requests") == 1; }));
  EXPECT_FALSE(secrets_.find("old"));
  EXPECT_EQ(runs, 1);
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
}

TEST_F(ReadYourWritesTest, WhatNoCacheCanSeeHoldsNothingUp) {
  client_.resource<k8s::core::v1::Namespace>().create(k8s::core::v1::Namespace::draft("elsewhere"));
  const auto mine = ConfigMap::draft("mine", "default");
  mine.metadata().labels().set("app", "web");
  maps_.create(mine);
  std::atomic<int> runs{0};
  Manager manager{many_};
  KindOptions options;
  options.namespaces = {{"default"}};
  options.label_selector = "app=web";
  manager.cache().declare<ConfigMap>(options);
  Builder<ConfigMap>(manager)
      .options([](ControllerOptions& change) { change.write_timeout = 1h; })
      .reconcile([&](Request, Context& context) -> Result {
        if (++runs > 1) return {};
        context.create(Secret::draft("not-cached", "default"));
        context.create(ConfigMap::draft("not-selected", "default"));
        context.create(ConfigMap::draft("not-watched", "elsewhere"));
        return requeue_after(1us);
      });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
}

TEST_F(ReadYourWritesTest, AnObjectThatLeavesTheSelectionIsSeenToGo) {
  const auto mine = ConfigMap::draft("mine", "default");
  mine.metadata().labels().set("app", "web");
  maps_.create(mine);
  std::atomic<int> runs{0};
  Manager manager{many_};
  KindOptions options;
  options.label_selector = "app=web";
  manager.cache().declare<ConfigMap>(options);
  delay<ConfigMap>(manager, [] { std::this_thread::sleep_for(3ms); });
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    if (++runs > 1) {
      EXPECT_FALSE(map);
      return {};
    }
    const auto change = map->edit();
    change.metadata().labels().set("app", "other");
    context.patch(change);
    return requeue_after(1us);
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs > 1; }));
  EXPECT_EQ(metric(manager, "controller_write_wait_timeouts_total"), 0);
}

TEST_F(ReadYourWritesTest, TheWaitIsBounded) {
  put("m", "1");
  std::atomic<bool> shut{false};
  std::atomic<int> runs{0};
  test::Gate gate;
  Manager manager{many_};
  delay<Secret>(manager, [&] {
    if (shut) {
      EXPECT_TRUE(gate.wait());
    }
  });
  Builder<ConfigMap>(manager)
      .options([](ControllerOptions& options) { options.write_timeout = 50ms; })
      .reconcile([&](Request, Context& context) -> Result {
        if (++runs > 1) return {};
        context.create(Secret::draft("made", "default"));
        return requeue_after(1us);
      });
  shut = true;
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
  EXPECT_EQ(metric(manager, "controller_write_wait_timeouts_total"), 1);
  EXPECT_EQ(metric(manager, "controller_held_requests"), 0);
  gate.open();
}

}  // namespace
}  // namespace lookout::controller
