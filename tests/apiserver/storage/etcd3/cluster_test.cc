// Three etcds, some of which are killed, frozen and partitioned: acknowledged writes reach all watchers
// once and in order.
#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <thread>

#include "apiserver/storage/cacher/cacher.h"
#include "apiserver/storage/revision.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/etcd3/etcd_store_fixture.h"
#include "tests/apiserver/storage/etcd3/tested_etcd.h"
#include "tests/apiserver/storage/etcd3/writing_and_following.h"
#include "tests/apiserver/storage/storage_client.h"
#include "tests/support/eventually.h"
#include "tests/support/http_server.h"

namespace lookout::apiserver::storage {
namespace {

using test::eventually;

EtcdOptions options_for(EtcdOptions options, bool cache) {
  options.watch_cache = cache;
  options.request_timeout = std::chrono::milliseconds(3000);
  options.compaction_interval = std::chrono::milliseconds(0);
  return options;
}
EtcdOptions options_for(std::vector<std::string> endpoints, bool cache) {
  EtcdOptions options;
  options.endpoints = std::move(endpoints);
  return options_for(std::move(options), cache);
}

/// Writers through one server; followers of another one, with and without a cache.
class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
  }

  void begin(EtcdOptions reach) {
    std::vector<std::string>& endpoints = reach.endpoints;
    writing_ = std::make_unique<EtcdBackend>(options_for(reach, true));
    // Each starts with a different member.
    std::rotate(endpoints.begin(), endpoints.begin() + 1, endpoints.end());
    cached_ = std::make_unique<EtcdBackend>(options_for(reach, true));
    std::rotate(endpoints.begin(), endpoints.begin() + 1, endpoints.end());
    direct_ = std::make_unique<EtcdBackend>(options_for(reach, false));
    follow(*cached_);
    follow(*cached_);
    follow(*direct_);
    follow(*writing_);
    for (int i = 0; i < 2; ++i)
      writers_.push_back(std::make_unique<Writer>(writing_->resource("pods"), i));
    ASSERT_TRUE(progress());
  }
  void follow(EtcdBackend& backend) {
    followers_.push_back(std::make_unique<Follower>(backend.resource("pods")));
  }

  /// Waits for further writes that all watchers have received.
  bool progress() {
    std::size_t before = 0;
    for (const auto& writer : writers_) before += writer->count();
    const bool written = eventually([&] {
      std::size_t now = 0;
      for (const auto& writer : writers_) now += writer->count();
      return now >= before + 20;
    });
    if (!written) return false;
    Revision last = 0;
    for (const auto& writer : writers_) {
      const auto all = writer->acknowledged();
      if (!all.empty()) last = std::max(last, all.rbegin()->first);
    }
    return eventually([&] {
      return std::all_of(followers_.begin(), followers_.end(),
                         [&](const auto& follower) { return follower->seen() >= last; });
    });
  }

  void end_and_compare() {
    for (auto& writer : writers_) writer->stop();
    StorageClient client(writing_->resource("pods"));
    const auto list = client.list("");
    std::map<std::string, Revision> present;
    for (const auto& object : list.objects) present[object.key()] = revision_of(object);
    std::map<Revision, std::string> acknowledged;
    for (const auto& writer : writers_) acknowledged.merge(writer->acknowledged());
    for (auto& follower : followers_) {
      EXPECT_TRUE(eventually([&] { return follower->state() == present; }));
      follower->stop();
      EXPECT_EQ(follower->wrong(), "");
      EXPECT_EQ(missed(*follower, acknowledged), 0u) << "of " << acknowledged.size();
      watches_ += follower->spans().size();
    }
    EXPECT_GT(acknowledged.size(), 40u);
  }

  std::unique_ptr<test::EtcdCluster> cluster_;
  std::unique_ptr<EtcdBackend> writing_;
  std::unique_ptr<EtcdBackend> cached_;
  std::unique_ptr<EtcdBackend> direct_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<std::unique_ptr<Follower>> followers_;
  std::size_t watches_ = 0;
};

/// The same with the model of an etcd.
class AnyClusterTest : public ClusterTest, public testing::WithParamInterface<test::TestedEtcd> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  void begin(int members) {
    etcd_ = std::make_unique<test::OwnEtcd>(GetParam(), members);
    ClusterTest::begin(etcd_->reach());
  }
  void TearDown() override {
    writers_.clear();
    followers_.clear();
  }

  std::unique_ptr<test::OwnEtcd> etcd_;
};

INSTANTIATE_TEST_SUITE_P(Etcds, AnyClusterTest,
                         testing::Values(test::kRealEtcd, test::kModel34, test::kModel35),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(AnyClusterTest, SurvivesTheRestartOfAMemberAndOfTheLeader) {
  begin(3);
  const std::size_t leader = etcd_->leader();
  const std::size_t other = (leader + 1) % 3;
  etcd_->kill(other);
  EXPECT_TRUE(progress()) << "without a member";
  etcd_->restart(other);
  EXPECT_TRUE(progress());
  etcd_->kill(leader);
  EXPECT_TRUE(progress()) << "without the leader";
  etcd_->restart(leader);
  EXPECT_TRUE(progress());
  end_and_compare();
}

TEST_P(AnyClusterTest, SurvivesTheRestartOfEachMember) {
  begin(3);
  for (std::size_t member = 0; member < 3; ++member) {
    etcd_->kill(member);
    EXPECT_TRUE(progress()) << member;
    etcd_->restart(member);
    EXPECT_TRUE(progress()) << member;
  }
  end_and_compare();
}

TEST_P(AnyClusterTest, ARestartOfAllMembersKeepsAcknowledgedWrites) {
  begin(3);
  for (std::size_t member = 0; member < 3; ++member) etcd_->kill(member);
  for (std::size_t member = 0; member < 3; ++member) etcd_->restart(member);
  etcd_->wait_until_ready();
  EXPECT_TRUE(progress());
  end_and_compare();
}

TEST_P(AnyClusterTest, SurvivesTheRestartOfASingleEtcd) {
  begin(1);
  for (int i = 0; i < 3; ++i) {
    etcd_->kill(0);
    etcd_->restart(0);
    etcd_->wait_until_ready();
    EXPECT_TRUE(progress());
  }
  end_and_compare();
}

TEST_P(AnyClusterTest, CompactionAndDefragmentationDoNotAffectWatchers) {
  begin(3);
  for (int i = 0; i < 5; ++i) {
    TestThread thread;
    const Revision now = thread.run(writing_->current_revision());
    thread.run(writing_->compact(now));
    etcd_->defragment();
    EXPECT_TRUE(progress());
  }
  end_and_compare();
}

TEST_F(ClusterTest, AWatcherThatMissedACompactionRelists) {
  cluster_ = std::make_unique<test::EtcdCluster>();
  writing_ = std::make_unique<EtcdBackend>(options_for(cluster_->endpoints(), true));
  // The others reach etcd through a proxy that can be cut off.
  std::atomic<bool> open{true};
  test::HttpServer gate([&, port = cluster_->port()](test::HttpConnection& c) {
    if (open) c.tunnel_to(port);
    c.reset();
  });
  cached_ = std::make_unique<EtcdBackend>(options_for({gate.url()}, true));
  direct_ = std::make_unique<EtcdBackend>(options_for({gate.url()}, false));
  follow(*cached_);
  follow(*direct_);
  writers_.push_back(std::make_unique<Writer>(writing_->resource("pods"), 0));
  ASSERT_TRUE(progress());
  // They are disconnected, and the changes in the meantime are compacted.
  open = false;
  gate.reset_all();
  const std::size_t before = writers_[0]->count();
  ASSERT_TRUE(eventually([&] { return writers_[0]->count() > before + 50; }));
  TestThread thread;
  const Revision now = thread.run(writing_->current_revision());
  thread.run(writing_->compact(now));
  open = true;
  EXPECT_TRUE(progress());
  end_and_compare();
  EXPECT_GT(watches_, followers_.size()) << "each got its 410";
}

TEST_F(ClusterTest, OneEndpointIsEnoughToFindTheOtherMembers) {
  test::EtcdCluster cluster({.members = 3});
  etcd3::EtcdClient client(etcd3::options_for({cluster.endpoint(0)}));
  EXPECT_THAT(client.run(client->member_urls()),
              testing::UnorderedElementsAreArray(cluster.endpoints()));
  client.run(client->sync_members());
  cluster.kill(0);
  EXPECT_TRUE(eventually([&] {
    try {
      return client.put("/a", "x") != 0;
    } catch (const Error&) {
      return false;  // no leader yet
    }
  }));
}

TEST_F(ClusterTest, ConnectionsMayBreakAtAnyTime) {
  cluster_ = std::make_unique<test::EtcdCluster>();
  writing_ = std::make_unique<EtcdBackend>(options_for(cluster_->endpoints(), true));
  test::HttpServer line([port = cluster_->port()](test::HttpConnection& c) { c.tunnel_to(port); });
  cached_ = std::make_unique<EtcdBackend>(options_for({line.url()}, true));
  direct_ = std::make_unique<EtcdBackend>(options_for({line.url()}, false));
  follow(*cached_);
  follow(*direct_);
  for (int i = 0; i < 2; ++i)
    writers_.push_back(std::make_unique<Writer>(writing_->resource("pods"), i));
  ASSERT_TRUE(progress());
  for (int i = 0; i < 10; ++i) {
    line.reset_all();
    EXPECT_TRUE(progress());
  }
  end_and_compare();
  EXPECT_EQ(watches_, followers_.size()) << "no watch had to begin again";
}

/// A watch that has delivered the pod n/a.
auto watch_of_a(StorageClient& client) {
  auto watch = client.watch("", {});
  EXPECT_EQ(watch->take(1).at(0), "ADDED n/a");
  return watch;
}

TEST_F(ClusterTest, AWatchOfAHangingMemberIsReplaced) {
  cluster_ = std::make_unique<test::EtcdCluster>(test::EtcdCluster::Options{.members = 3});
  const std::size_t hung = (cluster_->leader() + 1) % 3;
  std::vector<std::string> endpoints = cluster_->endpoints();
  std::swap(endpoints[0], endpoints[hung]);
  EtcdOptions options = options_for(endpoints, false);
  options.request_timeout = std::chrono::milliseconds(2000);
  etcd3::EtcdClient client(options);
  const auto store = etcd3::store_for(client, "/registry/pods");
  cacher::Cacher cache(
      client.get(), store,
      {.future_wait = std::chrono::milliseconds(500), .silence = std::chrono::milliseconds(300)});
  StorageClient here(cache);
  here.create("n/a", pod("a", 1));
  auto watch = watch_of_a(here);
  cluster_->freeze(hung);
  std::rotate(endpoints.begin(), endpoints.begin() + 1, endpoints.end());
  writing_ = std::make_unique<EtcdBackend>(options_for(endpoints, false));
  StorageClient there(writing_->resource("pods"));
  there.create("n/b", pod("b", 1));
  there.remove("n/a");
  EXPECT_EQ(watch->take(2), (std::vector<std::string>{"ADDED n/b", "DELETED n/a"}));
  cluster_->thaw(hung);
  watch.reset();
}

TEST_F(ClusterTest, AMemberThatLosesItsLeaderEndsItsWatches) {
  cluster_ = std::make_unique<test::EtcdCluster>(test::EtcdCluster::Options{.members = 3});
  direct_ = std::make_unique<EtcdBackend>(options_for({cluster_->endpoint(0)}, false));
  cached_ = std::make_unique<EtcdBackend>(options_for(cluster_->endpoints(), true));
  StorageClient direct(direct_->resource("pods"));
  StorageClient cached(cached_->resource("pods"));
  direct.create("n/a", pod("a", 1));
  const auto watch = watch_of_a(direct);
  const auto cached_watch = watch_of_a(cached);
  cluster_->kill(1);
  cluster_->kill(2);
  // Otherwise it would be silent forever.
  const auto events = watch->take_until_the_end();
  ASSERT_EQ(describe(events), std::vector<std::string>{"ERROR"});
  EXPECT_EQ(api::Status::from(events[0].object)->message,
            "Internal error occurred: etcdserver: no leader");
  cluster_->restart(1);
  cluster_->restart(2);
  cluster_->wait_until_ready();
  // A cache's watches are not affected.
  EXPECT_TRUE(eventually([&] {
    try {
      cached.create("n/b", pod("b", 1));
      return true;
    } catch (const StorageError& e) {
      return e.code() == StorageError::Code::kKeyExists;
    }
  }));
  EXPECT_EQ(cached_watch->take(1).at(0), "ADDED n/b");
}

/// Every watch gets 410, and reads return the current state.
void expect_a_new_history(WatchReader& watch) {
  const auto events = watch.take_until_the_end();
  ASSERT_FALSE(events.empty());
  ASSERT_EQ(events.back().type, api::EventType::kError);
  const auto status = api::Status::from(events.back().object);
  EXPECT_EQ(status->code, 410);
  EXPECT_EQ(status->reason, "Expired");
}

TEST_F(ClusterTest, AReplacedEtcdIsNoticed) {
  // The second one is ahead of the first, so no revision decreases.
  test::EtcdCluster first;
  test::EtcdCluster second;
  {
    EtcdBackend there(options_for(second.endpoints(), false));
    StorageClient pods(there.resource("pods"));
    for (int i = 0; i < 20; ++i) pods.create("n/z" + std::to_string(i), pod("z", i));
  }
  std::atomic<int> port{first.port()};
  test::HttpServer gate([&](test::HttpConnection& c) { c.tunnel_to(port); });
  cached_ = std::make_unique<EtcdBackend>(options_for({gate.url()}, true));
  direct_ = std::make_unique<EtcdBackend>(options_for({gate.url()}, false));
  StorageClient cached(cached_->resource("pods"));
  StorageClient direct(direct_->resource("pods"));
  cached.create("n/a", pod("a", 1));
  const auto cached_watch = watch_of_a(cached);
  const auto direct_watch = watch_of_a(direct);
  port = second.port();
  gate.reset_all();
  expect_a_new_history(*cached_watch);
  expect_a_new_history(*direct_watch);
  for (StorageClient* client : {&cached, &direct}) {
    EXPECT_EQ(client->list("").objects.size(), 20u);
    EXPECT_FALSE(client->get("n/a"));
    auto watch = client->watch("", {});
    EXPECT_EQ(watch->take(1).at(0), "ADDED n/z");
  }
  cached.create("n/b", pod("b", 1));
  EXPECT_EQ(cached.list("").objects.size(), 21u);
}

TEST_F(ClusterTest, ARestoredEtcdIsNoticed) {
  cluster_ = std::make_unique<test::EtcdCluster>();
  cached_ = std::make_unique<EtcdBackend>(options_for(cluster_->endpoints(), true));
  direct_ = std::make_unique<EtcdBackend>(options_for(cluster_->endpoints(), false));
  StorageClient cached(cached_->resource("pods"));
  StorageClient direct(direct_->resource("pods"));
  const api::Object old = cached.create("n/a", pod("a", 1));
  const std::string snapshot = cluster_->save_snapshot(0);
  Revision last = 0;
  for (int i = 0; i < 30; ++i) {
    last = revision_of(cached.update("n/a", [&](const api::Object&) { return pod("a", 2 + i); }));
  }
  cached.create("n/b", pod("b", 1));
  auto cached_watch = cached.watch("", {});
  auto direct_watch = direct.watch("", {});
  EXPECT_EQ(cached_watch->take(2).at(1), "ADDED n/b");
  EXPECT_EQ(direct_watch->take(2).at(1), "ADDED n/b");
  // The same cluster by its name and number.
  cluster_->restore(snapshot);
  expect_a_new_history(*cached_watch);
  expect_a_new_history(*direct_watch);
  for (StorageClient* client : {&cached, &direct}) {
    const auto list = client->list("");
    EXPECT_LT(list.revision, last);
    ASSERT_EQ(list.objects.size(), 1u);
    EXPECT_EQ(list.objects[0], old);
    EXPECT_EQ(client->get("n/a"), old);
  }
  // A client that was disconnected resumes from its last revision.
  auto late = cached.watch("", from_revision(last));
  expect_a_new_history(*late);
  // Writes continue.
  auto watch = cached.watch("", {});
  EXPECT_EQ(watch->take(1).at(0), "ADDED n/a");
  cached.update("n/a", [&](const api::Object&) { return pod("a", 99); });
  EXPECT_EQ(watch->take(1).at(0), "MODIFIED n/a");
}

TEST_F(ClusterTest, ARequestToAnotherEtcdEndsWatchesOfTheFirst) {
  test::EtcdCluster first;
  test::EtcdCluster second;
  EtcdOptions options = options_for({first.endpoint(), second.endpoint()}, false);
  options.request_timeout = std::chrono::milliseconds(2000);
  etcd3::EtcdClient client(options);
  const auto store = etcd3::store_for(client, "/registry/pods");
  StorageClient pods(*store);
  auto watch = pods.watch("", {});
  pods.create("n/a", pod("a", 1));
  EXPECT_EQ(watch->take(1).at(0), "ADDED n/a");
  const auto before = client->lineage();
  // The watch hangs with the first member; a request switches to the second one.
  first.freeze(0);
  EXPECT_TRUE(eventually([&] {
    try {
      client.range("/registry/pods/", true);
    } catch (const Error&) {
    }
    return !client->is_now(before);
  }));
  expect_a_new_history(*watch);
  first.thaw(0);
  store->close();
}

TEST_P(AnyClusterTest, AServerSeesItsOwnWritesAtOnceAndOthersSoon) {
  etcd_ = std::make_unique<test::OwnEtcd>(GetParam());
  writing_ = std::make_unique<EtcdBackend>(options_for(etcd_->reach(), true));
  cached_ = std::make_unique<EtcdBackend>(options_for(etcd_->reach(), true));
  StorageClient here(writing_->resource("pods"));
  StorageClient there(cached_->resource("pods"));
  ListOptions any;
  any.match = VersionMatch::kNotOlderThan;
  for (int i = 0; i < 50; ++i) {
    const std::string name = "p" + std::to_string(i);
    const api::Object created = here.create("n/" + name, pod(name, i));
    EXPECT_EQ(here.list("", any).objects.size(), static_cast<std::size_t>(i) + 1) << "its own";
    EXPECT_EQ(there.list("").objects.size(), static_cast<std::size_t>(i) + 1) << "the newest";
    EXPECT_EQ(there.get("n/" + name, revision_of(created)), created);
    EXPECT_EQ(there.get("n/" + name), created);
  }
  // Only other resources change; the newest state is found nevertheless.
  StorageClient others(writing_->resource("services/specs"));
  const api::Object other = others.create("n/x", pod("x", 0));
  EXPECT_GE(there.list("").revision, revision_of(other));
  ListOptions recent;
  recent.match = VersionMatch::kNotOlderThan;
  recent.revision = revision_of(other);
  EXPECT_EQ(there.list("", recent).objects.size(), 50u);
  WatchOptions state;
  state.revision = revision_of(other);
  EXPECT_EQ(there.watch("", state)->take(50).size(), 50u);
}

}  // namespace
}  // namespace lookout::apiserver::storage
