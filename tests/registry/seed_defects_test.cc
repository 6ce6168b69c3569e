// The known defects of the two libraries whose formats these registries use, kratos'
// contrib/registry/kubernetes and dubbo-go's remoting/kubernetes. For each defect there is a test
// that fails if a registry has it. Defect: test ("here": in this file).
//
// kratos:
//   - a malformed pod fails lookups, and panics in watches:
//     AMalformedPodIsReportedAndDoesNotAffectOthers
//   - an unread watcher blocks the informer: UnreadSetsAreCoalescedToTheLatest
//   - handlers of stopped watchers are never removed: WatchersReleaseEverything
//   - Next() never returns after Close(): EachEndWakesTheWaiter
//   - equal sets are announced again: AnUnchangedSetIsNotAnnouncedAgain
//   - the namespace is read with its line end: ReadsTheServiceAccountsNamespaceAndDownwardApi...
//   - a lookup scans all pods: bench/registry_memory.cc shows the index instead
//   - a missed deletion panics in the filter: here
//   - a running pod without an address is served: here
//   - a stopped watcher may still return a set: here
//   - the empty name finds deregistered pods: here
//
// dubbo-go:
//   - a null record panics, a malformed one loses all: AMalformedRecordDoesNotAffectOthers
//   - events overtake each other: EventsOfAPodAreInOrder
//   - an unread watcher blocks all others: AnUnreadWatcherDoesNotBlockOthers
//   - removed records are not reported: DeliversAdditionsUpdatesAndDeletions
//   - a key is deleted with the first of its pods: AKeyExistsWhileAnyPodHasIt
//   - a "prefix" matches anywhere in the key: ReadsRecordsThatGoWrites
//   - Create() of two clients loses one record: ConcurrentWritersOfAPodLoseNothing
//   - ValidateClient() replaces valid clients: ValidateReplacesOnlyLostClients
//   - existing records are not seen when a client starts: ReadsRecordsThatGoWrites
//   - a missed deletion is dropped: here
//   - lists and watches stay pinned to the first version: here
//   - the removal of an annotation keeps its records: here
//   - watchers are never removed: here
#include <gtest/gtest.h>

#include "lookout/apiserver/storage/memory.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/registry/dubbo/client.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/own_resources.h"
#include "tests/support/sanitizers.h"

namespace lookout::registry {
namespace {

using namespace registry::test;
using lookout::test::kSanitized;

/// A server with so short a history that disconnected clients must relist.
class SeedDefectsTest : public testing::Test {
 protected:
  SeedDefectsTest() : cluster_(forgetful()) {}

  static apiserver::ServerOptions forgetful() {
    apiserver::storage::MemoryOptions memory;
    memory.history = 8;
    apiserver::ServerOptions out;
    out.storage = std::make_shared<apiserver::storage::MemoryBackend>(memory);
    return out;
  }

  /// Makes changes while the registries have no server: at another address, on the same objects,
  /// and more of them than the history holds.
  template <class Change>
  void while_away(Change change) {
    cluster_.stop_server();
    {
      apiserver::ServerOptions options;
      options.storage = cluster_.storage();
      apiserver::Server server(options);
      const rest::Client client(server.client_config());
      const auto pods = client.resource(k8s::core::v1::Pod::kResource, "default");
      change(pods);
      pods.create(api::Object::parse(
          R"({"metadata":{"name":"noise"},"spec":{"containers":[{"name":"c","image":"i"}]}})"));
      for (int i = 0; i < 20; ++i) {
        pods.patch("noise", rest::PatchType::kMerge,
                   R"({"metadata":{"annotations":{"n":")" + std::to_string(i) + R"("}}})");
      }
    }
    cluster_.start_server();
  }
  static void remove(const rest::ResourceClient& pods, const std::string& name) {
    rest::DeleteOptions now;
    now.grace_period_seconds = 0;
    pods.remove(name, now);
  }

  Cluster cluster_;
};

constexpr BackoffOptions kQuick{.initial = 1ms, .max = 20ms};

class KratosSeedTest : public SeedDefectsTest {};

TEST_F(KratosSeedTest, AMissedDeletionIsAnnounced) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  cluster_.create_pod("b", kratos_pod("web", "b"));
  Options options;
  options.backoff = kQuick;
  kratos::Registry registry(cluster_.client(), options);
  auto watcher = registry.watch("web");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  while_away([](const auto& pods) { remove(pods, "a"); });
  const auto result = watcher.next_for(kLong);
  ASSERT_TRUE(result) << to_string(result.outcome());
  EXPECT_THAT(ids(*result), ElementsAre("b"));
}

TEST_F(KratosSeedTest, ARunningPodWithoutAnAddressIsNotServed) {
  PodTemplate pod = kratos_pod("web", "a");
  pod.ip = "";
  cluster_.create_pod("a", pod);
  cluster_.pods().patch(
      "a", rest::PatchType::kMerge,
      R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})", {},
      "status");
  cluster_.create_pod("b", kratos_pod("web", "b"));
  kratos::Registry registry(cluster_.client());
  EXPECT_THAT(ids(*registry.get_service("web")), ElementsAre("b"));
}

TEST_F(KratosSeedTest, AStoppedWatcherReturnsNothing) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  kratos::Registry registry(cluster_.client());
  registry.get_service("web");
  for (int i = 0; i < 20; ++i) {
    auto watcher = registry.watch("web");  // a set is available
    watcher.stop();
    EXPECT_EQ(watcher.next().outcome(), NextOutcome::kStopped);
  }
}

TEST_F(KratosSeedTest, TheEmptyNameFindsNothing) {
  cluster_.create_pod("a", kratos_pod("web", "a"));
  cluster_.label("a", "kratos-service-app", "");
  kratos::Registry registry(cluster_.client());
  EXPECT_THAT(ids(*registry.get_service("")), IsEmpty());
  EXPECT_THAT(registry.services(), IsEmpty());
}

class DubboSeedTest : public SeedDefectsTest {
 protected:
  DubboSeedTest() { cluster_.create_pod("self", {}); }

  dubbo::ClientOptions options() const {
    dubbo::ClientOptions out;
    out.pod = {"default", "self"};
    out.pod_sources.environment = [](const std::string&) { return std::nullopt; };
    out.backoff = kQuick;
    return out;
  }
  void provider(const std::string& name, const std::vector<dubbo::Record>& records) {
    cluster_.create_pod(name,
                        {.labels = {{"dubbo.io/label", "dubbo.io.provider"}},
                         .annotations = {{"dubbo.io/annotation", dubbo::encode_records(records)}}});
  }
};

TEST_F(DubboSeedTest, ChangesDuringADisconnectAreDelivered) {
  provider("p", {{"a", "1"}});
  provider("q", {{"b", "1"}});
  dubbo::Client client(cluster_.client(), options());
  auto watcher = client.watch_with_prefix("", dubbo::Begin::kWithWhatIsThere);
  ASSERT_TRUE(watcher.next_for(kLong));
  ASSERT_TRUE(watcher.next_for(kLong));
  while_away([](const auto& pods) {
    remove(pods, "p");
    pods.patch("q", rest::PatchType::kMerge,
               R"({"metadata":{"annotations":{"dubbo.io/annotation":")" +
                   dubbo::encode_records({{"b", "2"}}) + R"("}}})");
  });
  std::vector<std::string> told;
  for (int i = 0; i < 2; ++i) {
    const auto event = watcher.next_for(kLong);
    ASSERT_TRUE(event);
    told.push_back(to_string(event->type) + (" " + event->key + "=" + event->value));
  }
  EXPECT_THAT(told, testing::UnorderedElementsAre("DELETE a=1", "UPDATE b=2"));
}

TEST_F(DubboSeedTest, RecordsOfARemovedAnnotationAreDeleted) {
  provider("p", {{"a", "1"}});
  dubbo::Client client(cluster_.client(), options());
  auto watcher = client.watch("a", dubbo::Begin::kWithWhatIsThere);
  ASSERT_TRUE(watcher.next_for(kLong));
  cluster_.patch_pod("p", R"({"metadata":{"annotations":{"dubbo.io/annotation":null}}})");
  const auto event = watcher.next_for(kLong);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, dubbo::EventType::kDelete);
  EXPECT_EQ(client.get("a"), std::nullopt);
}

TEST_F(DubboSeedTest, StoppedWatchersAreRemoved) {
  provider("p", {{"a", "1"}});
  dubbo::Client client(cluster_.client(), options());
  ASSERT_EQ(client.get("a"), "1");
  const auto watch_and_stop = [&](int times) {
    for (int i = 0; i < times; ++i) {
      auto watcher = client.watch_with_prefix("", dubbo::Begin::kWithWhatIsThere);
      if (i % 2 == 0) {
        EXPECT_TRUE(watcher.next_for(kLong));
      }
    }
  };
  watch_and_stop(1000);
  const std::size_t before = lookout::test::resident_bytes();
  const std::size_t threads = lookout::test::thread_count();
  watch_and_stop(kSanitized ? 10'000 : 100'000);
  EXPECT_LT(lookout::test::thread_count(), threads + 10) << "a pool may still grow a little";
  // (A sanitizer quarantines freed memory, and finds leaks itself.)
  if (!kSanitized) {
    EXPECT_LT(lookout::test::resident_bytes(), before + (8u << 20));
  }
  // None of them receives events, and the client still works.
  cluster_.annotate("p", "dubbo.io/annotation", dubbo::encode_records({{"a", "2"}}));
  EXPECT_TRUE(eventually([&] { return client.get("a") == "2"; }));
}

}  // namespace
}  // namespace lookout::registry
