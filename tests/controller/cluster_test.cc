// Clusters besides the manager's own.
#include "lookout/controller/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/controller/builder.h"
#include "tests/controller/calls.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/thrown.h"

namespace lookout::controller {
namespace {

using test::refusal;

class ClusterTest : public ManagerFixture {
 protected:
  std::shared_ptr<Cluster> west(CacheOptions options = {}) const {
    return std::make_shared<Cluster>("west", west_, std::move(options));
  }
  void put_west(const std::string& name, const std::string& value) const {
    const auto draft = Secret::draft(name, "default");
    draft.metadata().labels().set("value", value);
    west_.resource<Secret>("default").create(draft);
  }
  /// The requests for an object's own key.
  static void same_key(const Secret& secret, Enqueue& enqueue) {
    enqueue(Request(secret.ns(), secret.name()));
  }
  /// The values of a metric with the label "cluster", and the number of those without.
  static std::pair<std::vector<double>, int> values(const Manager& manager, std::string_view name) {
    std::vector<metrics::Sample> samples;
    manager.collect(samples);
    std::pair<std::vector<double>, int> out;
    for (const auto& sample : samples) {
      if (sample.name != name) continue;
      const bool west = std::any_of(sample.labels.begin(), sample.labels.end(), [](const auto& l) {
        return l.first == "cluster" && l.second == "west";
      });
      if (west) {
        out.first.push_back(sample.value);
      } else {
        ++out.second;
      }
    }
    return out;
  }

  apiserver::Server west_server_;
  const rest::Client west_{west_server_.client_config(), client_.shared_loop()};
};

TEST_F(ClusterTest, AControllerFollowsAnotherCluster) {
  put("m", "1");
  put_west("m", "a");
  Manager manager{client_, listening()};
  const auto cluster = west();
  manager.add(cluster);
  Calls calls;
  Builder<ConfigMap>(manager)
      .watches<Secret>(same_key, {.cluster = cluster})
      .reconcile([&calls, cluster](Request request, Context& context) -> Result {
        calls.note(request);
        const auto secret = context.view(*cluster).find<Secret>(request);
        EXPECT_EQ(&context.view(*cluster), &context.view(*cluster));
        if (!secret) return {};
        const auto maps = context.uncached(*cluster).resource<ConfigMap>("default");
        const auto name = request.name + "-" + std::string(secret->labels()["value"].as_string());
        if (!maps.find(name)) maps.create(ConfigMap::draft(name, "default"));
        return {};
      });
  Running running(manager);
  const auto copied = [&](const std::string& name) {
    return eventually(
        [&] { return static_cast<bool>(west_.resource<ConfigMap>("default").find(name)); });
  };
  EXPECT_TRUE(copied("m-a"));
  put_west("later", "b");
  EXPECT_TRUE(copied("later-b"));
  EXPECT_GE(calls.of("default/later"), 1);
  // The own cluster has none of these objects, and its cache does not have the kind.
  EXPECT_FALSE(maps_.find("m-a"));
  EXPECT_THAT(refusal<NotCachedError>([&] { manager.cache().view().list<Secret>(); }),
              HasSubstr("secrets are not cached"));
  EXPECT_THAT(refusal<NotCachedError>([&] { cluster->cache().view().list<ConfigMap>(); }),
              HasSubstr("configmaps of cluster west are not cached"));
  EXPECT_EQ(get(manager.health_port(), "/readyz/caches/west"), "ok");
  EXPECT_THAT(values(manager, "informer_live"), testing::Pair(ElementsAre(1), 1));
  running.stop();
  EXPECT_THAT(values(manager, "informer_live"), testing::Pair(ElementsAre(0), 1));
}

TEST_F(ClusterTest, StartsBeforeTheOthers) {
  put_west("m", "a");
  Manager manager{client_};
  const auto cluster = west();
  cluster->cache().declare<Secret>();
  manager.add(cluster);
  std::atomic<int> found{-1};
  manager.add(
      "look",
      [&](std::stop_token) {
        found = static_cast<int>(cluster->cache().view().list<Secret>("default").size());
      },
      RunnableGroup::kOthers);
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return found == 1; }));
}

TEST_F(ClusterTest, MayBeAddedWhileTheManagerRuns) {
  put_west("m", "a");
  Manager manager{client_};
  Calls calls;
  const Controller controller =
      Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
        calls.note(request);
        return {};
      });
  const auto cluster = west();
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  EXPECT_THAT(refusal<InvalidArgument>(
                  [&] { controller.watch<Secret>(same_key, {.cluster = cluster}).release(); }),
              HasSubstr("add the cluster west to the manager first"));
  manager.add(cluster);
  auto watch = controller.watch<Secret>(same_key, {.cluster = cluster});
  EXPECT_TRUE(eventually([&] { return calls.of("default/m") == 1; }));
  // With its last watch, the kind leaves that cluster's cache.
  watch.remove();
  EXPECT_THROW(cluster->cache().view().list<Secret>(), NotCachedError);
}

TEST_F(ClusterTest, AClusterThatDoesNotAnswerIsNamed) {
  const apiserver::Server refusing({.before_request = [](const apiserver::ServedRequest&) {
    throw api::StatusError::forbidden("", "secrets", "", "no rights there");
  }});
  CacheOptions options;
  options.sync_timeout = 200ms;
  const auto cluster = std::make_shared<Cluster>(
      "west", rest::Client(refusing.client_config(), client_.shared_loop()), options);
  cluster->cache().declare<Secret>();
  EXPECT_THAT(refusal<NotCachedError>([&] { cluster->cache().view().list<Secret>(); }),
              HasSubstr("secrets of cluster west has no complete list yet: it is read before"));
  Manager manager{client_};
  manager.add(cluster);
  Running running(manager);
  EXPECT_THAT(error_of(running), HasSubstr("secrets of cluster west: "));
}

TEST_F(ClusterTest, ANewLeaderComparesTheCachesOfEachCluster) {
  std::atomic<int> lists{0};
  std::atomic<bool> leads{false};
  const apiserver::Server counting({.before_request = [&](const apiserver::ServedRequest& request) {
    if (request.verb != "list" || request.resource != "secrets") return;
    EXPECT_FALSE(leads);
    ++lists;
  }});
  const rest::Client client(counting.client_config(), client_.shared_loop());
  const auto lists_until_it_leads = [&](bool elects) {
    lists = 0;
    leads = false;
    const auto cluster = std::make_shared<Cluster>("west", client);
    cluster->cache().declare<Secret>();
    Manager manager{client_, elects ? elected("us") : ManagerOptions()};
    manager.add(cluster);
    manager.add("work", [&](std::stop_token) { leads = true; });
    const Running running(manager);
    EXPECT_TRUE(eventually([&] { return leads.load(); }));
    return lists.load();
  };
  EXPECT_EQ(lists_until_it_leads(true), lists_until_it_leads(false) + 1);
}

TEST_F(ClusterTest, TheRequestsOfASharedClientAreCountedOnce) {
  const auto cluster = std::make_shared<Cluster>("west", client_);
  Manager manager{client_};
  manager.add(cluster);
  client_.get_raw("/version");
  const auto counted = values(manager, "rest_client_requests_total");
  EXPECT_TRUE(counted.first.empty());
  EXPECT_GT(counted.second, 0);
}

TEST_F(ClusterTest, InvalidUsesAreErrors) {
  EXPECT_THROW(Cluster("", west_), InvalidArgument);
  EXPECT_THROW(Cluster("a/b", west_), InvalidArgument);
  Manager manager{client_};
  EXPECT_THROW(manager.add(std::shared_ptr<Cluster>()), InvalidArgument);
  const auto cluster = west();
  const auto watching = [](Manager& by, const std::shared_ptr<Cluster>& other) {
    std::atomic<int> runs{0};
    Builder<ConfigMap>(by).watches<Secret>(same_key, {.cluster = other}).reconcile(counting(runs));
  };
  EXPECT_THAT(refusal<InvalidArgument>([&] { watching(manager, cluster); }),
              HasSubstr("add the cluster west"));
  manager.add(cluster);
  EXPECT_THAT(refusal<InvalidArgument>([&] { manager.add(cluster); }),
              HasSubstr("a cluster named west already exists"));
  Manager second{client_};
  EXPECT_THAT(refusal<InvalidArgument>([&] { second.add(cluster); }), HasSubstr("has a manager"));
  EXPECT_THAT(refusal<InvalidArgument>([&] { watching(second, cluster); }),
              HasSubstr("add the cluster west to the manager first"));
  const auto elsewhere =
      std::make_shared<Cluster>("far", rest::Client(west_server_.client_config()));
  EXPECT_THAT(refusal<InvalidArgument>([&] { manager.add(elsewhere); }), HasSubstr("event loop"));
  EXPECT_THROW(Builder<ConfigMap>(manager, {.cluster = cluster}), InvalidArgument);
  EXPECT_THROW(Builder<ConfigMap>(manager).owns<Secret>({.cluster = cluster}), InvalidArgument);
}

}  // namespace
}  // namespace lookout::controller
