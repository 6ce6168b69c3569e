// The caches contain a request's writes before the request runs again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "lookout/api/time.h"
#include "lookout/controller/builder.h"
#include "lookout/k8s/coordination/v1.h"
#include "lookout/testing/fake_clock.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"
#include "tests/support/held.h"

namespace lookout::controller {
namespace {

using k8s::coordination::v1::Lease;
using k8s::core::v1::Namespace;

class ReadYourWritesTest : public ManagerFixture {
 protected:
  /// Index functions run before a change becomes visible: with them a test delays a cache or stops
  /// it. They block a thread of the loop, so this loop has enough threads.
  template <class T>
  static void delay(Manager& manager, std::function<void()> wait) {
    manager.cache().add_index<T>("late", [wait = std::move(wait)](const T&) {
      wait();
      return std::string("x");
    });
  }

  /// Blocks callers while it is shut.
  struct Door {
    std::atomic<bool> shut{false};
    test::Gate gate;

    void pass() {
      if (shut) {
        EXPECT_TRUE(gate.wait());
      }
    }
  };

  /// Increments a counter in the object; returns how often it read an older value than it had
  /// written.
  int stale_reads(bool enabled) const {
    put("m", "0");
    std::atomic<int> written{0};
    std::atomic<int> stale{0};
    Manager manager{many_};
    delay<ConfigMap>(manager, [] { std::this_thread::sleep_for(3ms); });
    Builder<ConfigMap>(manager)
        .options([enabled](ControllerOptions& options) { options.read_your_writes = enabled; })
        .reconcile([&](Request request, Context& context) -> Result {
          const auto map = context.find<ConfigMap>(request);
          if (!map || written == 10) return {};
          if (std::stoi(std::string(map->data()["value"])) < written) ++stale;
          const auto change = map->edit();
          change.data().set("value", std::to_string(written + 1));
          context.patch(change);
          ++written;
          return requeue_after(1us);
        });
    const Running running(manager);
    EXPECT_TRUE(eventually([&] { return written == 10; }));
    if (enabled) {
      EXPECT_TRUE(
          eventually([&] { return metric(manager, "controller_write_wait_seconds") >= 10; }));
      EXPECT_EQ(metric(manager, "controller_write_wait_timeouts_total"), 0);
    }
    return stale;
  }
  /// Another process leads, and has created a Secret.
  void have_a_leader() const {
    secrets_.create(Secret::draft("deleted", "default"));
    client_.resource<Lease>("default").dynamic().create(api::Object::parse(fmt::format(
        R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
            "metadata":{{"name":"website","namespace":"default"}},
            "spec":{{"holderIdentity":"former","leaseDurationSeconds":60,"renewTime":"{}"}}}})",
        api::format_micro_time(
            std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now())))));
  }
  /// That process makes its last write, which the manager's cache of Secrets does not receive, and
  /// releases the lease.
  void hand_over_behind(Door& door, const Manager& manager,
                        const std::function<void()>& last_write) const {
    ASSERT_TRUE(eventually([&] { return manager.cache().unsynced().empty(); }));
    door.shut = true;
    last_write();
    hand_over();
  }
  void create_secret() const { secrets_.create(Secret::draft("created", "default")); }
  void delete_secret() const { secrets_.remove("deleted"); }

  /// The first reconcile of a new leader sees the previous leader's last write.
  void expect_visible(const std::function<void()>& last_write,
                      const std::function<bool(Context&)>& visible) const {
    have_a_leader();
    put("m", "1");
    Door door;
    std::atomic<int> runs{0};
    // The caches' clock stands still, so a leader that looks at them again waits.
    const auto clock = std::make_shared<test::FakeClock>();
    const auto waits = [&clock] {
      const auto all = clock->slept();
      return std::find(all.begin(), all.end(), Clock::Duration(50ms)) != all.end();
    };
    ManagerOptions options = elected("new");
    options.cache.clock = clock;
    Manager manager{many_, options};
    delay<Secret>(manager, [&] { door.pass(); });
    Builder<ConfigMap>(manager).reconcile([&](Request, Context& context) -> Result {
      EXPECT_TRUE(visible(context));
      ++runs;
      return {};
    });
    const Running running(manager);
    hand_over_behind(door, manager, last_write);
    EXPECT_TRUE(eventually(waits));
    EXPECT_TRUE(manager.is_leader());
    EXPECT_EQ(runs, 0);
    door.gate.open();
    EXPECT_TRUE(eventually([&] {
      clock->advance(50ms);
      return runs > 0;
    }));
  }
  void hand_over() const {
    client_.resource<Lease>("default").patch("website", rest::PatchType::kMerge,
                                             R"({"spec":{"holderIdentity":""}})");
  }

  /// A ConfigMap with the label app=web.
  void put_web(const std::string& name) const {
    const auto map = ConfigMap::draft(name, "default");
    map.metadata().labels().set("app", "web");
    maps_.create(map);
  }

  const rest::Client many_{server_.client_config(), std::make_shared<EventLoop>(6u)};
  const rest::TypedClient<Secret> secrets_ = client_.resource<Secret>("default");
};

TEST_F(ReadYourWritesTest, ARunSeesTheWritesOfThePreviousOne) { EXPECT_EQ(stale_reads(true), 0); }

TEST_F(ReadYourWritesTest, WithoutItRunsReadStaleStates) { EXPECT_GT(stale_reads(false), 0); }

TEST_F(ReadYourWritesTest, OtherRequestsAreNotBlocked) {
  put("writes", "1");
  put("reads", "1");
  Door door;
  std::atomic<int> writes{0};
  std::atomic<int> reads{0};
  Manager manager{many_};
  delay<Secret>(manager, [&] { door.pass(); });
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
  door.shut = true;
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
  door.gate.open();
  EXPECT_TRUE(eventually([&] { return writes == 2; }));
}

TEST_F(ReadYourWritesTest, DeletionsAreAwaited) {
  put("m", "1");
  secrets_.create(Secret::draft("old", "default"));
  std::atomic<int> runs{0};
  Door door;
  Manager manager{many_};
  delay<Secret>(manager, [&] { door.pass(); });
  Builder<ConfigMap>(manager).reconcile([&](Request, Context& context) -> Result {
    const auto old = context.find<Secret>("default", "old");
    if (++runs > 1) {
      EXPECT_FALSE(old);
      return {};
    }
    door.shut = true;
    EXPECT_TRUE(context.remove(*old));
    return requeue_after(1us);
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return metric(manager, "controller_held_requests") == 1; }));
  EXPECT_FALSE(secrets_.find("old"));
  EXPECT_EQ(runs, 1);
  door.gate.open();
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
}

TEST_F(ReadYourWritesTest, TheEndOfATerminatingNamespaceIsNotAwaited) {
  put("m", "1");
  const auto namespaces = client_.resource<Namespace>();
  namespaces.create(Namespace::draft("doomed"));
  // It keeps the namespace.
  const auto kept = ConfigMap::draft("kept", "doomed");
  kept.metadata().finalizers().append("example.com/keep");
  client_.resource<ConfigMap>("doomed").create(kept);
  std::atomic<int> runs{0};
  Manager manager{many_};
  manager.cache().declare<Namespace>();
  Builder<ConfigMap>(manager)
      .options([](ControllerOptions& options) { options.write_timeout = 1h; })
      .reconcile([&](Request request, Context& context) -> Result {
        if (request.name != "m") return {};
        const auto doomed = context.get<Namespace>(Request("", "doomed"));
        if (++runs == 1) {
          EXPECT_TRUE(context.remove(doomed));
        } else if (runs == 2) {
          EXPECT_TRUE(doomed.metadata().deletion_timestamp());
          const auto change = doomed.edit();
          change.metadata().labels().set("seen", "yes");
          context.patch(change);
        }
        return runs < 3 ? requeue_after(1us) : done();
      });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 3; }));
  EXPECT_TRUE(namespaces.find("doomed"));
}

TEST_F(ReadYourWritesTest, WritesOutsideTheCachesAreNotAwaited) {
  client_.resource<k8s::core::v1::Namespace>().create(k8s::core::v1::Namespace::draft("elsewhere"));
  put_web("mine");
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

TEST_F(ReadYourWritesTest, ADryRunIsNotAwaited) {
  put("m", "1");
  secrets_.create(Secret::draft("old", "default"));
  std::atomic<int> runs{0};
  Manager manager{many_};
  Builder<ConfigMap>(manager)
      .owns<Secret>()
      .options([](ControllerOptions& change) { change.write_timeout = 1h; })
      .reconcile([&](Request request, Context& context) -> Result {
        if (request.name != "m" || ++runs > 1) return {};
        rest::DeleteOptions remove;
        remove.dry_run = true;
        rest::CreateOptions write;
        write.dry_run = true;
        rest::PatchOptions patch;
        patch.dry_run = true;
        const auto old = context.get<Secret>(Request("default", "old"));
        EXPECT_TRUE(context.remove(old, remove));
        context.create(Secret::draft("new", "default"), write);
        const auto change = old.edit();
        change.metadata().labels().set("a", "b");
        context.patch(change, patch);
        context.update(change, write);
        return requeue_after(1us);
      });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
  EXPECT_FALSE(secrets_.find("new"));
  const auto old = secrets_.find("old");
  ASSERT_TRUE(old);
  EXPECT_EQ(old.labels().size(), 0u);
}

TEST_F(ReadYourWritesTest, AnObjectThatLeavesTheSelectionIsAwaited) {
  put_web("mine");
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
  std::atomic<int> runs{0};
  Door door;
  Manager manager{many_};
  delay<Secret>(manager, [&] { door.pass(); });
  Builder<ConfigMap>(manager)
      .options([](ControllerOptions& options) { options.write_timeout = 50ms; })
      .reconcile([&](Request, Context& context) -> Result {
        if (++runs > 1) return {};
        context.create(Secret::draft("made", "default"));
        return requeue_after(1us);
      });
  door.shut = true;
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
  EXPECT_EQ(metric(manager, "controller_write_wait_timeouts_total"), 1);
  EXPECT_EQ(metric(manager, "controller_held_requests"), 0);
  door.gate.open();
}

TEST_F(ReadYourWritesTest, ANewLeaderSeesThePreviousLeadersWrites) {
  expect_visible(
      [&] { create_secret(); },
      [](Context& context) { return context.find<Secret>("default", "created").has_value(); });
}

TEST_F(ReadYourWritesTest, ANewLeaderSeesThePreviousLeadersDeletions) {
  expect_visible(
      [&] { delete_secret(); },
      [](Context& context) { return !context.find<Secret>("default", "deleted").has_value(); });
}

TEST_F(ReadYourWritesTest, ANewLeaderWaitsOnlyForSelectedObjects) {
  have_a_leader();
  put_web("mine");
  put("other", "1");
  std::atomic<int> runs{0};
  Manager manager{many_, elected("new")};
  KindOptions options;
  options.namespaces = {{"default", "kube-system"}};
  options.label_selector = "app=web";
  manager.cache().declare<ConfigMap>(options);
  Builder<ConfigMap>(manager).reconcile(counting(runs));
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.cache().unsynced().empty(); }));
  hand_over();
  EXPECT_TRUE(eventually([&] { return runs == 1; }));
}

TEST_F(ReadYourWritesTest, NewLeaderWaitsNoLongerThanCatchUpTimeout) {
  have_a_leader();
  put("m", "1");
  Door door;
  std::atomic<int> runs{0};
  ManagerOptions options = elected("new");
  options.catch_up_timeout = 50ms;
  Manager manager{many_, options};
  delay<Secret>(manager, [&] { door.pass(); });
  Builder<ConfigMap>(manager).reconcile(counting(runs));
  const Running running(manager);
  hand_over_behind(door, manager, [&] { create_secret(); });
  EXPECT_TRUE(eventually([&] { return runs == 1; }));
  door.gate.open();
}

TEST_F(ReadYourWritesTest, AStatusIsUpdatedAsAWhole) {
  using k8s::core::v1::Node;
  const auto nodes = client_.resource<Node>();
  nodes.create(Node::draft("n"));
  std::atomic<int> stale{0};
  std::atomic<int> conflicts{0};
  std::atomic<int> runs{0};
  Manager manager{client_};
  delay<Node>(manager, [] { std::this_thread::sleep_for(3ms); });
  Builder<Node>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto node = context.get<Node>(request);
    if (runs == 5) return {};
    if (node.status().phase() != (runs == 0 ? "" : std::to_string(runs))) ++stale;
    const auto change = node.edit();
    change.status().set_phase(std::to_string(++runs));
    change.spec().set_unschedulable(true);  // not part of the status
    EXPECT_EQ(lookout::test::held(context.update_status(change)).status().phase(),
              std::to_string(runs));
    change.status().set_phase("late");
    try {
      context.update_status(change);
    } catch (const api::StatusError& e) {
      if (api::is_conflict(e)) ++conflicts;
    }
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 5; }));
  EXPECT_EQ(stale, 0);
  EXPECT_TRUE(eventually([&] { return conflicts == 5; }));
  EXPECT_FALSE(lookout::test::held(nodes.get("n")).spec().unschedulable().value_or(false));
}

}  // namespace
}  // namespace lookout::controller
