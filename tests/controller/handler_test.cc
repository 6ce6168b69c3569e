// From events to requests: map functions, owners and priorities.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "lookout/controller/builder.h"
#include "lookout/controller/owner_references.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"

namespace lookout::controller {
namespace {

using k8s::core::v1::ServiceAccount;

std::vector<std::string> keys(const MapFunction& map, const api::Object& object) {
  Enqueue enqueue;
  map(object, enqueue);
  std::vector<std::string> out;
  out.reserve(enqueue.requests().size());
  for (const Request& request : enqueue.requests()) out.push_back(request.key());
  return out;
}

api::Object pod(const std::string& owners) {
  return api::Object::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop","ownerReferences":[)" +
      owners + "]}}");
}
std::string owner(const std::string& api_version, const std::string& kind, const std::string& name,
                  bool controller = false) {
  return R"({"apiVersion":")" + api_version + R"(","kind":")" + kind + R"(","name":")" + name +
         R"(","uid":"1")" + (controller ? R"(,"controller":true})" : "}");
}

const api::Resource& replica_sets() {
  static const api::Resource kResource("apps", "v1", "ReplicaSet", "replicasets", true);
  return kResource;
}

TEST(EnqueueObjectTest, EnqueuesTheKeyOfTheObject) {
  EXPECT_THAT(keys(enqueue_object(), pod("")), ElementsAre("shop/p"));
  EXPECT_THAT(keys(enqueue_object(), api::Object()), IsEmpty());
}

TEST(EnqueueTest, DeduplicatesRequests) {
  constexpr int kMany = 100'000;
  Enqueue enqueue;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kMany; ++i) enqueue(Request("shop", std::to_string(i)));
  }
  ASSERT_EQ(enqueue.requests().size(), static_cast<std::size_t>(kMany));
  EXPECT_EQ(enqueue.requests()[17], Request("shop", "17"));
  EXPECT_EQ(enqueue.requests().back(), Request("shop", std::to_string(kMany - 1)));
}

TEST(EnqueueOwnerTest, EnqueuesOwnersOfTheKindInAnyVersion) {
  const auto map = enqueue_owner(replica_sets(), true);
  EXPECT_THAT(keys(map, pod(owner("apps/v1", "ReplicaSet", "a"))), ElementsAre("shop/a"));
  EXPECT_THAT(keys(map, pod(owner("apps/v2", "ReplicaSet", "a"))), ElementsAre("shop/a"));
  EXPECT_THAT(keys(map, pod(owner("extensions/v1", "ReplicaSet", "a"))), IsEmpty());
  EXPECT_THAT(keys(map, pod(owner("v1", "ReplicaSet", "a"))), IsEmpty());
  EXPECT_THAT(keys(map, pod(owner("apps/v1", "DaemonSet", "a"))), IsEmpty());
  EXPECT_THAT(keys(map, pod(owner("apps/v1/beta", "ReplicaSet", "a"))), IsEmpty());
  EXPECT_THAT(keys(map, pod("")), IsEmpty());
  EXPECT_THAT(keys(map, api::Object()), IsEmpty());
}

TEST(EnqueueOwnerTest, AClusterScopedOwnerHasNoNamespace) {
  const auto map = enqueue_owner(api::Resource("", "v1", "Node", "nodes", false), true);
  EXPECT_THAT(keys(map, pod(owner("v1", "Node", "n"))), ElementsAre("n"));
}

TEST(EnqueueOwnerTest, EnqueuesTheControllerOrEveryOwner) {
  const auto three =
      pod(owner("apps/v1", "ReplicaSet", "a") + "," + owner("apps/v1", "ReplicaSet", "b", true) +
          "," + owner("apps/v1", "ReplicaSet", "c"));
  EXPECT_THAT(keys(enqueue_owner(replica_sets()), three), ElementsAre("shop/b"));
  EXPECT_THAT(keys(enqueue_owner(replica_sets(), true), three),
              ElementsAre("shop/a", "shop/b", "shop/c"));
  EXPECT_THAT(keys(enqueue_owner(replica_sets()), pod(owner("apps/v1", "ReplicaSet", "a"))),
              IsEmpty());
  EXPECT_THAT(keys(enqueue_owner(replica_sets()), pod("")), IsEmpty());
}

/// Counts the runs of each request.
class HandlerTest : public ManagerFixture {
 protected:
  Result note(const Request& request) {
    const std::lock_guard lock(mutex_);
    ++runs_[request.key()];
    return {};
  }
  int runs(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = runs_.find(key);
    return at == runs_.end() ? 0 : at->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> runs_;
};

TEST_F(HandlerTest, AnObjectThatChangesItsOwnerEnqueuesBoth) {
  const auto old_site = put("old", "1");
  const auto new_site = put("new", "1");
  const auto secret = Secret::draft("s", "default");
  set_controller_reference(old_site, secret);
  const auto secrets = client_.resource<Secret>("default");
  const auto made = secrets.create(secret);
  Manager manager{client_};
  Builder<ConfigMap>(manager).owns<Secret>().reconcile(
      [&](Request request, Context&) -> Result { return note(request); });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return runs("default/old") > 0 && runs("default/new") > 0; }));
  ASSERT_TRUE(eventually([&] {
    return metric(manager, "controller_runtime_active_workers") == 0 &&
           metric(manager, "workqueue_depth", "-100") <= 0;
  }));
  const int old_runs = runs("default/old");
  const int new_runs = runs("default/new");
  const auto change = made.edit();
  ASSERT_TRUE(remove_owner_reference(old_site, change));
  set_controller_reference(new_site, change);
  secrets.update(change);
  EXPECT_TRUE(eventually(
      [&] { return runs("default/old") == old_runs + 1 && runs("default/new") == new_runs + 1; }));
  secrets.remove("s");
  EXPECT_TRUE(eventually([&] { return runs("default/new") == new_runs + 2; }));
  EXPECT_EQ(runs("default/old"), old_runs + 1);
}

TEST_F(HandlerTest, CallsMapFunctionForEveryEventType) {
  Manager manager{client_};
  Builder<Secret>(manager)
      .watches<ConfigMap>([](const auto& map, auto& enqueue) {
        enqueue({"shop", map.data()["value"]});
        enqueue({"shop", "all"});
      })
      .reconcile([&](Request request, Context&) -> Result { return note(request); });
  const Running running(manager);
  put("m", "1");
  ASSERT_TRUE(eventually([&] { return runs("shop/1") == 1 && runs("shop/all") == 1; }));
  change("m", "2");
  ASSERT_TRUE(eventually(
      [&] { return runs("shop/1") == 2 && runs("shop/2") == 1 && runs("shop/all") == 2; }));
  maps_.remove("m");
  EXPECT_TRUE(eventually([&] { return runs("shop/2") == 2 && runs("shop/all") == 3; }));
  EXPECT_EQ(runs("shop/1"), 2);
}

TEST(WatchOfTest, AMapFunctionMayReturnItsRequests) {
  const auto web = [](const ConfigMap& map) {
    return std::vector<Request>{{map.ns(), "web"}, {map.ns(), map.name()}, {map.ns(), "web"}};
  };
  const auto map = ConfigMap::draft("m", "shop").build();
  EXPECT_THAT(keys(watch_of<ConfigMap>(web).map, map), ElementsAre("shop/web", "shop/m"));
}

TEST_F(HandlerTest, AMapFunctionThatThrowsLosesOnlyItsRequests) {
  put("m", "none");
  Manager manager{client_};
  Builder<Secret>(manager)
      .watches<ConfigMap>([](const auto& map, auto& enqueue) {
        const std::string value(map.data()["value"]);
        if (value == "none") throw std::runtime_error("no value");
        enqueue({"shop", value});
        if (value == "half") throw 1;
      })
      .reconcile([&](Request request, Context&) -> Result { return note(request); });
  const Running running(manager);
  const auto exceptions = [&] {
    return metric(manager, "informer_handler_exceptions_total", "controller secret, configmaps");
  };
  ASSERT_TRUE(eventually([&] { return exceptions() == 1; }));
  // It throws for the old version.
  change("m", "new");
  EXPECT_TRUE(eventually([&] { return runs("shop/new") == 1; }));
  // The requests that it enqueued before it threw are kept.
  change("m", "half");
  EXPECT_TRUE(eventually([&] { return runs("shop/new") == 2 && runs("shop/half") == 1; }));
  EXPECT_TRUE(eventually([&] { return exceptions() == 3; }));
}

TEST_F(HandlerTest, EachWatchHasMetricsOfItsOwn) {
  Manager manager{client_};
  const auto map = [](const auto&, auto&) {};
  const auto controller = Builder<ConfigMap>(manager)
                              .owns<ConfigMap>()
                              .watches<Secret>(map)
                              .watches<Secret>(map)
                              .reconcile([&](Request, Context&) -> Result { return {}; });
  const Running running(manager);
  const auto series = [&] {
    std::vector<metrics::Sample> samples;
    manager.collect(samples);
    std::multiset<std::string> out;
    for (const auto& sample : samples) {
      if (sample.name != "informer_handler_duration_seconds") continue;
      std::string one;
      for (const auto& [label, value] : sample.labels) one += label + "=" + value + " ";
      out.insert(one);
    }
    return out;
  };
  const auto distinct = [](const std::multiset<std::string>& all) {
    return std::set<std::string>(all.begin(), all.end()).size();
  };
  // The four watches and, for each kind, the one that waits for own writes.
  constexpr std::size_t kAtFirst = 6;
  ASSERT_TRUE(eventually([&] { return series().size() == kAtFirst; }));
  EXPECT_EQ(distinct(series()), kAtFirst);
  Watch late;
  late.resource = api::Resource(Secret::kResource);
  late.map = enqueue_object();
  {
    const auto watch = controller.watch(late);
    ASSERT_TRUE(eventually([&] { return series().size() == kAtFirst + 1; }));
    EXPECT_EQ(distinct(series()), kAtFirst + 1);
  }
  // Repeated watches add no series.
  const auto again = controller.watch(late);
  ASSERT_TRUE(eventually([&] { return series().size() == kAtFirst + 1; }));
  EXPECT_EQ(distinct(series()), kAtFirst + 1);
}

TEST_F(HandlerTest, ResyncsHaveALowPriority) {
  for (const char* name : {"a", "b"}) put(name, "1");
  ManagerOptions options;
  options.cache.resync_period = 200ms;
  std::atomic<bool> block{false};
  test::Gate go_on;
  Manager manager{client_, options};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    if (block) {
      EXPECT_TRUE(go_on.wait());
    }
    return note(request);
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return runs("default/a") > 0 && runs("default/b") > 0; }));
  block = true;
  // One of them occupies the worker, the other one waits.
  EXPECT_TRUE(eventually([&] { return metric(manager, "workqueue_depth", "-100") >= 1; }));
  EXPECT_LE(metric(manager, "workqueue_depth", "0"), 0);
  go_on.open();
}

/// Notes events: "created m", "updated m 1 2", and so on.
class EventsTest : public HandlerTest {
 protected:
  Predicate noting() {
    return Predicate([this](const Event& event) {
      const auto value = [](const api::Object& object) {
        const ConfigMap map(object);
        return std::string(map.data()["value"]);
      };
      std::string what;
      switch (event.type) {
        case Event::Type::kCreate:
          what = std::string(event.initial ? "found " : "created ") + value(event.object);
          break;
        case Event::Type::kUpdate:
          what = "updated " + value(event.before) + " to " + value(event.object);
          break;
        case Event::Type::kDelete:
          what =
              std::string(event.final_state_unknown ? "missed " : "deleted ") + value(event.object);
          break;
      }
      const std::lock_guard lock(mutex_);
      events_.push_back(what);
      return true;
    });
  }
  std::vector<std::string> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  static Result nothing(const Request&, Context&) { return {}; }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
};

TEST_F(EventsTest, DescribeTheChange) {
  put("old", "0");
  Manager manager{client_};
  Builder<ConfigMap>(manager).when(noting()).reconcile(nothing);
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return events().size() == 1; }));
  put("m", "1");
  change("m", "2");
  ASSERT_TRUE(eventually([&] { return events().size() == 3; }));
  maps_.remove("m");
  ASSERT_TRUE(eventually([&] { return events().size() == 4; }));
  EXPECT_THAT(events(), ElementsAre("found 0", "created 1", "updated 1 to 2", "deleted 2"));
}

TEST_F(EventsTest, AMissedDeletionEnqueuesARequest) {
  // A server that keeps nothing across restarts.
  auto server = std::make_unique<apiserver::Server>();
  apiserver::ServerOptions same_port;
  same_port.port = server->port();
  const rest::Client client(server->client_config());
  const auto map = ConfigMap::draft("m", "default");
  map.data().set("value", "1");
  client.resource<ConfigMap>("default").create(map);
  Manager manager{client};
  Builder<ConfigMap>(manager).when(noting()).reconcile(
      [&](Request request, Context&) -> Result { return note(request); });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return runs("default/m") == 1; }));
  server.reset();
  server = std::make_unique<apiserver::Server>(same_port);
  ASSERT_TRUE(eventually([&] { return runs("default/m") == 2; }));
  EXPECT_THAT(events(), ElementsAre("found 1", "missed 1"));
}

TEST_F(HandlerTest, PredicatesApplyToTheirOwnWatch) {
  std::mutex mutex;
  std::vector<std::string> judged;
  const auto judging = [&](const std::string& name, bool verdict) {
    return Predicate([&mutex, &judged, name, verdict](const Event& event) {
      const std::lock_guard lock(mutex);
      judged.push_back(name + " judges " + std::string(event.object.name()));
      return verdict;
    });
  };
  WatchOptions primary;
  primary.predicate = judging("primary", false);
  WatchOptions owned;
  owned.predicate = judging("owned", true);
  Manager manager{client_};
  Builder<ConfigMap>(manager, primary)
      .owns<Secret>(owned)
      .reconcile([&](Request request, Context&) -> Result { return note(request); });
  const Running running(manager);
  const auto site = put("site", "1");
  const auto secret = Secret::draft("s", "default");
  set_controller_reference(site, secret);
  client_.resource<Secret>("default").create(secret);
  EXPECT_TRUE(eventually([&] { return runs("default/site") == 1; }));
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return judged.size() == 2;
  }));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(judged, testing::UnorderedElementsAre("primary judges site", "owned judges s"));
}

TEST_F(HandlerTest, EveryWatchMayBeOfMetadataOnly) {
  WatchOptions metadata;
  metadata.only_metadata = true;
  Manager manager{client_};
  for (const char* name : {"one", "two"}) {
    Builder<ConfigMap>(manager, metadata)
        .named(name)
        .owns<Secret>(metadata)
        .watches<ServiceAccount>(
            [](const auto& account, auto& enqueue) {
              enqueue({account.ns(), account.name()});
            },
            metadata)
        .reconcile([&, name](Request request, Context& context) -> Result {
          const auto map = context.view().find_metadata<ConfigMap>(request);
          if (map && map->data().empty()) note({name, std::string_view(map->name())});
          if (request.name == "account") note({name, "account"});
          return {};
        });
  }
  const Running running(manager);
  const auto site = put("site", "1");
  for (const char* name : {"one", "two"})
    EXPECT_TRUE(eventually([&] { return runs(std::string(name) + "/site") == 1; }));
  const auto secret = Secret::draft("s", "default");
  set_controller_reference(site, secret);
  client_.resource<Secret>("default").create(secret);
  client_.resource<ServiceAccount>("default").create(ServiceAccount::draft("account", "default"));
  for (const char* name : {"one", "two"}) {
    EXPECT_TRUE(eventually([&] { return runs(std::string(name) + "/site") == 2; }));
    EXPECT_TRUE(eventually([&] { return runs(std::string(name) + "/account") == 1; }));
  }
}

}  // namespace
}  // namespace lookout::controller
