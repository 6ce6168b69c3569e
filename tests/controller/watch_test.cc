// Watches that are added and removed while a controller runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lookout/controller/builder.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"

namespace lookout::controller {
namespace {

class WatchTest : public ManagerFixture {
 protected:
  Secret put_secret(const std::string& name) const {
    return client_.resource<Secret>("default").create(Secret::draft(name, "default"));
  }
  /// A controller without a kind, which counts the requests of its watches by name.
  Controller count(Manager& manager) {
    return Builder(manager)
        .named("counter")
        .source(std::make_shared<Channel>())
        .reconcile([this](Request request, Context&) -> Result {
          const std::lock_guard lock(mutex_);
          ++runs_[request.name];
          return {};
        });
  }
  int runs(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto at = runs_.find(name);
    return at == runs_.end() ? 0 : at->second;
  }
  static void by_name(const Secret& secret, Enqueue& enqueue) {
    enqueue(Request(secret.ns(), secret.name()));
  }
  static bool reads_secrets(const Manager& manager) {
    try {
      manager.cache().view().list<Secret>();
      return true;
    } catch (const NotCachedError&) {
      return false;
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> runs_;
};

TEST_F(WatchTest, IsAddedToARunningControllerAndRemoved) {
  put_secret("before");
  Manager manager{client_};
  const Controller counter = count(manager);
  EXPECT_EQ(counter.name(), "counter");
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  WatchHandle handle = counter.watch<Secret>(by_name);
  // First every existing object, then every change.
  EXPECT_TRUE(eventually([&] { return runs("before") == 1; }));
  EXPECT_TRUE(eventually([&] { return handle.has_synced(); }));
  put_secret("after");
  EXPECT_TRUE(eventually([&] { return runs("after") == 1; }));
  EXPECT_TRUE(reads_secrets(manager));

  handle.remove();
  EXPECT_FALSE(handle);
  EXPECT_FALSE(handle.has_synced());
  // The informer had no other user.
  EXPECT_FALSE(reads_secrets(manager));
  EXPECT_EQ(metric(manager, "informer_synced", "secrets"), -1);
  put_secret("late");

  // The same kind again: all objects are initial.
  handle = counter.watch<Secret>(by_name);
  EXPECT_TRUE(eventually([&] { return runs("late") == 1 && runs("before") == 2; }));
  EXPECT_EQ(runs("after"), 2);
}

TEST_F(WatchTest, CallsNothingAfterItsRemoval) {
  put_secret("s");
  Manager manager{client_};
  const Controller counter = count(manager);
  const Running running(manager);
  auto inside = std::make_unique<std::atomic<bool>>(false);
  test::Gate entered;
  test::Gate go_on;
  std::atomic<int> calls{0};
  const WatchHandle other = counter.watch<Secret>(by_name);
  WatchHandle handle = counter.watch<Secret>([&](const Secret&, Enqueue&) {
    ++calls;
    *inside = true;
    entered.open();
    EXPECT_TRUE(go_on.wait());
    *inside = false;
  });
  ASSERT_TRUE(entered.wait());
  std::atomic<bool> removed{false};
  std::jthread remover([&] {
    handle.remove();
    removed = true;
    // A later call would use freed memory.
    inside.reset();
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(removed);
  go_on.open();
  remover.join();
  EXPECT_TRUE(removed);
  put_secret("another");
  EXPECT_TRUE(eventually([&] { return runs("another") == 1; }));
  EXPECT_EQ(calls, 1);
}

TEST_F(WatchTest, MayBeRemovedByItsOwnMapFunction) {
  put_secret("one");
  put_secret("two");
  Manager manager{client_};
  const Controller counter = count(manager);
  std::atomic<int> calls{0};
  WatchHandle handle;
  handle = counter.watch<Secret>([&](const Secret& secret, Enqueue& enqueue) {
    ++calls;
    by_name(secret, enqueue);
    handle.remove();
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return calls > 0; }));
  EXPECT_TRUE(eventually([&] { return !reads_secrets(manager); }));
  EXPECT_EQ(calls, 1);
}

TEST_F(WatchTest, ItsQueuedRequestsStayAfterItsRemoval) {
  put_secret("s");
  Manager manager{client_};
  test::Gate busy;
  test::Gate go_on;
  std::atomic<int> secrets{0};
  const auto channel = std::make_shared<Channel>();
  const Controller one =
      Builder(manager).named("one").source(channel).reconcile([&](Request request, Context&) {
        if (request.name == "busy") {
          busy.open();
          EXPECT_TRUE(go_on.wait());
        } else {
          ++secrets;
        }
        return Result();
      });
  const Running running(manager);
  channel->send({"default", "busy"});
  ASSERT_TRUE(busy.wait());
  WatchHandle handle = one.watch<Secret>(by_name);
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_depth", "one") == 1; }));
  handle.remove();
  go_on.open();
  EXPECT_TRUE(eventually([&] { return secrets == 1; }));
}

TEST_F(WatchTest, AKindStaysWhileItIsUsed) {
  Manager manager{client_};
  const Controller counter = count(manager);
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  WatchHandle first = counter.watch<Secret>(by_name);
  WatchHandle second = counter.watch<Secret>(by_name);
  manager.cache().declare<Secret>();
  first.remove();
  EXPECT_TRUE(reads_secrets(manager));
  second.remove();
  EXPECT_TRUE(reads_secrets(manager));
  EXPECT_TRUE(manager.cache().undeclare<Secret>());
  EXPECT_FALSE(reads_secrets(manager));
  EXPECT_FALSE(manager.cache().undeclare<Secret>());
  // A new declaration may differ.
  KindOptions options;
  options.namespaces = {"shop"};
  manager.cache().declare<Secret>(options);
  EXPECT_TRUE(manager.cache().view().list<Secret>("shop").empty());
  EXPECT_THROW(manager.cache().view().list<Secret>("default"), NotCachedError);
}

TEST_F(WatchTest, MetadataAndWholeObjectsAreDeclaredSeparately) {
  Manager manager{client_};
  const Controller counter = count(manager);
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  manager.cache().declare<Secret>();
  manager.cache().declare_metadata<Secret>();
  EXPECT_TRUE(manager.cache().undeclare_metadata<Secret>());
  EXPECT_FALSE(manager.cache().undeclare_metadata<Secret>());
  EXPECT_TRUE(reads_secrets(manager));
  EXPECT_THROW(manager.cache().view().list_metadata<Secret>("default"), NotCachedError);
}

TEST_F(WatchTest, WatchesOfTheBuilderStay) {
  Manager manager{client_};
  const Controller both =
      Builder<Secret>(manager).reconcile([](Request, Context&) -> Result { return {}; });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  WatchHandle handle = both.watch<Secret>(by_name);
  handle.remove();
  EXPECT_TRUE(reads_secrets(manager));
  EXPECT_FALSE(manager.cache().undeclare<Secret>());
}

TEST_F(WatchTest, LeavingTheScopeRemovesItUnlessReleased) {
  Manager manager{client_};
  const Controller counter = count(manager);
  const Running running(manager);
  { const WatchHandle scoped = counter.watch<Secret>(by_name); }
  EXPECT_FALSE(reads_secrets(manager));
  counter.watch<Secret>(by_name).release();
  put_secret("s");
  EXPECT_TRUE(eventually([&] { return runs("s") == 1; }));
}

TEST_F(WatchTest, ACoroutineAddsAndRemovesKinds) {
  // A common pattern: a controller that watches the kind that an object names, as long as the
  // object exists.
  Manager manager{client_};
  Controller sync;
  WatchHandle handle;  // used by one request at a time only
  sync = Builder<ConfigMap>(manager).reconcile(
      [&](Request request, Context& context) -> Awaitable<Result> {
        if (request.name != "wanted") co_return Result();
        const bool wanted = context.find<ConfigMap>(request).has_value();
        if (wanted && !handle) {
          handle = sync.watch<Secret>(by_name);
        } else if (!wanted && handle) {
          EXPECT_THROW(handle.remove(), InvalidArgument);
          co_await handle.async_remove();
        }
        co_return Result();
      });
  const Running running(manager);
  for (int i = 0; i < 3; ++i) {
    put("wanted", "secrets");
    EXPECT_TRUE(eventually([&] { return reads_secrets(manager); }));
    maps_.remove("wanted");
    EXPECT_TRUE(eventually([&] { return !reads_secrets(manager); }));
  }
}

TEST_F(WatchTest, MayBeAddedBeforeTheStartAndOutliveTheManager) {
  put_secret("s");
  WatchHandle handle;
  WatchHandle never;
  Controller counter;
  std::atomic<int> calls{0};
  {
    Manager manager{client_};
    counter = count(manager);
    handle = counter.watch<Secret>([&](const Secret&, Enqueue&) { ++calls; });
    EXPECT_FALSE(handle.has_synced());
    Running running(manager);
    EXPECT_TRUE(eventually([&] { return calls == 1; }));
    running.stop();
    EXPECT_THROW(counter.watch<Secret>(by_name).release(), InvalidArgument);
    EXPECT_FALSE(handle.has_synced());
  }
  put_secret("another");
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(counter.watch<Secret>(by_name).release(), InvalidArgument);
  EXPECT_THROW(Controller().watch<Secret>(by_name).release(), InvalidArgument);
  handle.remove();
  handle.remove();

  Manager unused{client_};
  never = count(unused).watch<Secret>(by_name);
}

TEST_F(WatchTest, AnUnservedKindFailsReadinessOnly) {
  Manager manager{client_};
  const Controller counter = count(manager);
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  Watch websites;
  websites.resource = api::Resource("example.com", "v1", "Website", "websites", true);
  websites.map = enqueue_object();
  WatchHandle handle = counter.watch(websites);
  EXPECT_FALSE(handle.has_synced());
  EXPECT_THAT(manager.cache().unsynced(), ElementsAre("websites.example.com"));
  EXPECT_THAT(manager.cache().check().value_or(""), HasSubstr("websites.example.com"));
  handle.remove();
  EXPECT_THAT(manager.cache().unsynced(), IsEmpty());
  EXPECT_EQ(manager.cache().check(), std::nullopt);
  EXPECT_FALSE(running.ended());
}

TEST_F(WatchTest, RawSourcesCanBeRemoved) {
  Manager manager{client_};
  const Controller counter = count(manager);
  const Running running(manager);
  std::atomic<int> ticks{0};
  test::Gate assigned;
  test::Gate removed;
  WatchHandle ticking;
  ticking = counter.watch(timer(1ms, [&](Enqueue& enqueue) {
    EXPECT_TRUE(assigned.wait());
    enqueue({"default", "tick"});
    // The second call removes it.
    if (++ticks < 2) return;
    ticking.remove();
    removed.open();
  }));
  assigned.open();
  EXPECT_TRUE(removed.wait());
  EXPECT_TRUE(eventually([&] { return runs("tick") > 0; }));
  const auto channel = std::make_shared<Channel>();
  WatchHandle sent = counter.watch(channel);
  channel->send({"default", "sent"});
  EXPECT_TRUE(eventually([&] { return runs("sent") == 1; }));
  sent.remove();
  channel->send({"default", "ignored"});
  EXPECT_EQ(runs("ignored"), 0);
  EXPECT_EQ(ticks, 2);
}

TEST_F(WatchTest, IsAddedAndRemovedFromManyThreads) {
  put_secret("s");
  Manager manager{client_};
  const Controller counter = count(manager);
  Running running(manager);
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 10; ++n) {
          const WatchHandle handle = counter.watch<Secret>(by_name);
          manager.cache().unsynced();
        }
      });
    }
  }
  EXPECT_FALSE(reads_secrets(manager));
  const WatchHandle last = counter.watch<Secret>(by_name);
  const int before = runs("s");
  EXPECT_TRUE(eventually([&] { return last.has_synced() && runs("s") > 0; }));
  EXPECT_GE(runs("s"), before);
}

TEST_F(WatchTest, RejectsAMissingMapFunctionOrSource) {
  Manager manager{client_};
  const Controller counter = count(manager);
  Watch no_map;
  no_map.resource = api::Resource(Secret::kResource);
  EXPECT_THROW(counter.watch(no_map).release(), InvalidArgument);
  EXPECT_THROW(counter.watch(std::shared_ptr<Source>()).release(), InvalidArgument);
  EXPECT_FALSE(reads_secrets(manager));
}

}  // namespace
}  // namespace lookout::controller
