// Objects whose owners are deleted.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "lookout/api/detail/object_editor.h"
#include "lookout/api/symbols.h"
#include "lookout/base/async_event.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/apiserver/wrapped_backend.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

void create_owned(const rest::ResourceClient& maps, const std::string& name,
                  const std::string& owner, const std::string& uid) {
  maps.create(from_json(R"({"metadata":{"name":")" + name +
                        R"(","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":")" +
                        owner + R"(","uid":")" + uid + R"(","blockOwnerDeletion":true}]}})"));
}

class GarbageCollection : public ClientTest {
 protected:
  Object create_owned(const std::string& name, const Object& owner, bool blocks = true,
                      const std::string& more = "") {
    return in(kConfigMaps)
        .create(from_json(R"({"metadata":{"name":")" + name + R"(","ownerReferences":[)" + more +
                          reference(owner, blocks) + "]}}"));
  }
  static std::string reference(const Object& owner, bool blocks = true) {
    return R"({"apiVersion":")" + std::string(owner.api_version()) + R"(","kind":")" +
           std::string(owner.kind()) + R"(","name":")" + std::string(owner.name()) +
           R"(","uid":")" + std::string(owner.uid()) + R"(","blockOwnerDeletion":)" +
           (blocks ? "true" : "false") + "}";
  }
  bool exists(const api::Resource& resource, const std::string& name) const {
    try {
      in(resource).get(name);
      return true;
    } catch (const api::StatusError& e) {
      if (!api::is_not_found(e)) throw;
      return false;
    }
  }
  bool exists(const std::string& name) const { return exists(kConfigMaps, name); }
  /// Waits until the collector has processed the existing config maps.
  void wait_for_collector() const {
    lookout::apiserver::create_owned(in(kConfigMaps), "last", "nobody", "no-uid");
    EXPECT_TRUE(eventually([&] { return !exists("last"); }));
  }
  void remove(const Object& object, rest::PropagationPolicy policy) const {
    rest::DeleteOptions options;
    options.propagation_policy = policy;
    in(kConfigMaps).remove(std::string(object.name()), options);
  }
};

TEST_F(GarbageCollection, DeletesDependentsOfADeletedOwner) {
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  const Object child = create_owned("child", owner);
  create_owned("grandchild", child);
  in(kConfigMaps).create(config_map("other"));
  remove(owner, rest::PropagationPolicy::kBackground);
  EXPECT_FALSE(exists("owner"));
  EXPECT_TRUE(eventually([&] { return !exists("child") && !exists("grandchild"); }));
  EXPECT_TRUE(exists("other"));
}

TEST_F(GarbageCollection, OrphansThePodsOfAJobByDefault) {
  const api::Resource jobs{"batch", "v1", "Job", "jobs", true};
  const std::string path = "/apis/batch/v1/namespaces/default/jobs/j";
  const auto create = [&] {
    const Object job = in(jobs).create(
        from_json(R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never",)"
                  R"("containers":[{"name":"c","image":"i"}]}}}})"));
    create_owned("child", job);
  };
  create();
  const auto answer = http(server_.port(), "DELETE", path);
  EXPECT_EQ(answer.code, 200) << answer.body;
  EXPECT_EQ(answer.headers.at("warning"),
            R"(299 - "child pods are preserved by default when jobs are deleted; set )"
            R"(propagationPolicy=Background to remove them or set propagationPolicy=Orphan to )"
            R"(suppress this warning")");
  EXPECT_TRUE(eventually([&] { return !exists(jobs, "j"); }));
  const Object child = in(kConfigMaps).get("child");
  EXPECT_TRUE(child["metadata"]["ownerReferences"].empty());
  in(kConfigMaps).remove("child");
  create();
  const auto background = http(server_.port(), "DELETE", path + "?propagationPolicy=Background");
  EXPECT_FALSE(background.headers.contains("warning"));
  EXPECT_TRUE(eventually([&] { return !exists("child"); }));
}

TEST_F(GarbageCollection, DeletesObjectsWithAnAbsentOwner) {
  Object owner = in(kConfigMaps).create(config_map("owner"));
  in(kConfigMaps).remove("owner");
  create_owned("late", owner);
  EXPECT_TRUE(eventually([&] { return !exists("late"); }));
  // An object of the same name is not the same object.
  in(kConfigMaps).create(config_map("owner"));
  create_owned("mistaken", owner);
  EXPECT_TRUE(eventually([&] { return !exists("mistaken"); }));
  EXPECT_TRUE(exists("owner"));
}

TEST_F(GarbageCollection, KeepsObjectsWithAnotherOwner) {
  const Object first = in(kConfigMaps).create(config_map("first"));
  const Object second = in(kConfigMaps).create(config_map("second"));
  create_owned("child", first, true, reference(second) + ",");
  remove(first, rest::PropagationPolicy::kBackground);
  EXPECT_TRUE(eventually([&] {
    const Object child = in(kConfigMaps).get("child");
    return child["metadata"]["ownerReferences"].size() == 1;
  }));
  EXPECT_EQ(
      lookout::test::held(in(kConfigMaps).get("child"))["metadata"]["ownerReferences"][0]["name"]
          .as_string(),
      "second");
}

TEST_F(GarbageCollection, KeepsObjectsWithAnOwnerOfAnUnknownKind) {
  const Object stranger =
      in(kConfigMaps)
          .create(from_json(
              R"({"metadata":{"name":"c","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing",)"
              R"("name":"t","uid":"1"}]}})"));
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  create_owned("child", owner);
  remove(owner, rest::PropagationPolicy::kBackground);
  // The collector processes them in order.
  EXPECT_TRUE(eventually([&] { return !exists("child"); }));
  EXPECT_TRUE(exists("c"));
}

TEST_F(GarbageCollection, InTheForegroundDeletesTheOwnerLast) {
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  in(kConfigMaps)
      .create(from_json(R"({"metadata":{"name":"child","finalizers":["example.com/wait"],)"
                        R"("ownerReferences":[)" +
                        reference(owner) + "]}}"));
  create_owned("loose", owner, false);
  remove(owner, rest::PropagationPolicy::kForeground);
  const Object waiting = in(kConfigMaps).get("owner");
  EXPECT_TRUE(waiting["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(waiting["metadata"]["finalizers"].to_json(), R"(["foregroundDeletion"])");
  EXPECT_TRUE(eventually([&] {
    return lookout::test::held(in(kConfigMaps).get("child"))["metadata"].contains(
        "deletionTimestamp");
  }));
  // A dependent without blockOwnerDeletion is not deleted in the foreground.
  EXPECT_TRUE(eventually([&] { return !exists("loose"); }));
  EXPECT_TRUE(exists("owner"));
  in(kConfigMaps).patch("child", rest::PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
  EXPECT_TRUE(eventually([&] { return !exists("owner") && !exists("child") && !exists("loose"); }));
}

TEST_F(GarbageCollection, InTheForegroundWithoutDependentsIsADeletion) {
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  remove(owner, rest::PropagationPolicy::kForeground);
  EXPECT_TRUE(eventually([&] { return !exists("owner"); }));
}

TEST_F(GarbageCollection, InTheForegroundDeletesACycleOfOwners) {
  const Object first = in(kConfigMaps).create(config_map("first"));
  const Object second = create_owned("second", first);
  const Object third = create_owned("third", second);
  in(kConfigMaps)
      .patch("first", rest::PatchType::kMerge,
             R"({"metadata":{"ownerReferences":[)" + reference(third) + "]}}");
  wait_for_collector();
  remove(first, rest::PropagationPolicy::kForeground);
  EXPECT_TRUE(
      eventually([&] { return !exists("first") && !exists("second") && !exists("third"); }));
}

TEST_F(GarbageCollection, AnObjectThatOwnsItselfDoesNotBlockOthers) {
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  in(kConfigMaps)
      .patch("owner", rest::PatchType::kMerge,
             R"({"metadata":{"ownerReferences":[)" + reference(owner) + "]}}");
  remove(owner, rest::PropagationPolicy::kForeground);
  wait_for_collector();
  EXPECT_TRUE(
      lookout::test::held(in(kConfigMaps).get("owner"))["metadata"].contains("deletionTimestamp"));
  in(kConfigMaps)
      .patch("owner", rest::PatchType::kMerge, R"({"metadata":{"ownerReferences":null}})");
  EXPECT_TRUE(eventually([&] { return !exists("owner"); }));
}

TEST_F(GarbageCollection, OrphansDependents) {
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  create_owned("child", owner);
  remove(owner, rest::PropagationPolicy::kOrphan);
  EXPECT_TRUE(eventually([&] { return !exists("owner"); }));
  EXPECT_FALSE(
      lookout::test::held(in(kConfigMaps).get("child"))["metadata"].contains("ownerReferences"));
}

TEST_F(GarbageCollection, FollowsTheFinalizersOfTheOwner) {
  const Object owner =
      in(kConfigMaps).create(from_json(R"({"metadata":{"name":"owner","finalizers":["orphan"]}})"));
  create_owned("child", owner);
  in(kConfigMaps).remove("owner");
  EXPECT_TRUE(eventually([&] { return !exists("owner"); }));
  EXPECT_TRUE(exists("child"));
  // Unless the request overrides it.
  const Object again =
      in(kConfigMaps).create(from_json(R"({"metadata":{"name":"again","finalizers":["orphan"]}})"));
  create_owned("gone", again);
  remove(again, rest::PropagationPolicy::kBackground);
  EXPECT_TRUE(eventually([&] { return !exists("again") && !exists("gone"); }));
}

TEST_F(GarbageCollection, SupportsOrphanDependents) {
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  create_owned("child", owner);
  const auto answer = http(server_.port(), "DELETE", "/api/v1/namespaces/default/configmaps/owner",
                           R"({"kind":"DeleteOptions","apiVersion":"v1","orphanDependents":true})");
  EXPECT_EQ(answer.code, 200);
  EXPECT_TRUE(eventually([&] { return !exists("owner"); }));
  EXPECT_TRUE(exists("child"));
}

TEST_F(GarbageCollection, CollectsCustomResources) {
  all(kDefinitions).create(from_json(std::string(kThingDefinition) + R"(
        "schema":{"openAPIV3Schema":{"type":"object"}}}]}})"));
  const api::Resource things("example.com", "v1", "Thing", "things", true);
  const Object owner = in(things).create(
      from_json(R"({"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"t"}})"));
  in(kConfigMaps)
      .create(from_json(R"({"metadata":{"name":"child","ownerReferences":[{"apiVersion":)"
                        R"("example.com/v1","kind":"Thing","name":"t","uid":")" +
                        std::string(owner.uid()) + R"("}]}})"));
  in(things).remove("t");
  EXPECT_TRUE(eventually([&] { return !exists("child"); }));
}

TEST_F(GarbageCollection, RetriesWhenTheKindOfAnOwnerIsDefined) {
  in(kConfigMaps)
      .create(from_json(R"({"metadata":{"name":"early","ownerReferences":[{"apiVersion":)"
                        R"("example.com/v1","kind":"Thing","name":"t","uid":"1"}]}})"));
  wait_for_collector();
  EXPECT_TRUE(exists("early"));
  all(kDefinitions).create(from_json(std::string(kThingDefinition) + R"(
        "schema":{"openAPIV3Schema":{"type":"object"}}}]}})"));
  EXPECT_TRUE(eventually([&] { return !exists("early"); }));
}

TEST_F(GarbageCollection, OrphansTheDependentsOfANamespace) {
  const Object owner = all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  create_owned("child", owner);
  wait_for_collector();
  rest::DeleteOptions orphan;
  orphan.propagation_policy = rest::PropagationPolicy::kOrphan;
  const Object marked = all(kNamespaces).remove("shop", orphan);
  EXPECT_EQ(marked["metadata"]["finalizers"].to_json(), R"(["orphan"])");
  EXPECT_TRUE(eventually([&] { return !exists(kNamespaces, "shop"); }));
  EXPECT_FALSE(
      lookout::test::held(in(kConfigMaps).get("child"))["metadata"].contains("ownerReferences"));
}

TEST_F(GarbageCollection, DeletesPodsOfDeletedOwners) {
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  pods().create(from_json(R"({"metadata":{"name":"p","ownerReferences":[)" + reference(owner) +
                          R"(]},"spec":{"containers":[{"name":"main","image":"nginx"}]}})"));
  remove(owner, rest::PropagationPolicy::kForeground);
  EXPECT_TRUE(eventually([&] { return !exists("owner") && !exists(kPods, "p"); }));
}

// The collector uses watches, which may be disconnected during a deletion.
TEST(GarbageCollectionAfterACut, AnOwnerDoesNotWaitForUnseenDeletions) {
  const auto backend = std::make_shared<WrappedBackend>("configmaps");
  const RunningServer running(backend);
  const auto maps = running.client.resource(kConfigMaps, "default");
  const Object owner = maps.create(config_map("owner"));
  create_owned(maps, "child", "owner", std::string(owner.uid()));
  // When this one is deleted, the collector has processed the child.
  create_owned(maps, "orphan", "nobody", "no-uid");
  ASSERT_TRUE(eventually([&] { return !maps.find("orphan"); }));
  backend->cut_watches();
  maps.remove("child");
  rest::DeleteOptions foreground;
  foreground.propagation_policy = rest::PropagationPolicy::kForeground;
  maps.remove("owner", foreground);
  EXPECT_TRUE(maps.find("owner"));
  backend->reconnect();
  EXPECT_TRUE(eventually([&] { return !maps.find("owner"); }));
}

TEST(GarbageCollectionAfterADefinition, DeletesDependentsOfItsInstances) {
  const auto backend = std::make_shared<WrappedBackend>("configmaps");
  std::atomic<bool> slow{false};
  backend->on_get = [&](std::string) -> Awaitable<void> {
    AsyncEvent bell(co_await boost::asio::this_coro::executor);
    while (slow)
      co_await bell.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  };
  const RunningServer running(backend);
  const auto maps = running.client.resource(kConfigMaps, "default");
  const auto definitions = running.client.resource(kDefinitions);
  const auto things = running.client.resource(kThings, "default");
  definitions.create(from_json(std::string(kThingDefinition) + R"(
        "schema":{"openAPIV3Schema":{"type":"object"}}}]}})"));
  const Object owner = things.create(
      from_json(R"({"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"t"}})"));
  const std::string reference =
      R"({"apiVersion":"example.com/v1","kind":"Thing","name":"t","uid":")" +
      std::string(owner.uid()) + "\"}";
  maps.create(from_json(R"({"metadata":{"name":"child","ownerReferences":[)" + reference + "]}}"));
  // When these are deleted, the collector has processed the child and watches Things.
  create_owned(maps, "orphan", "nobody", "no-uid");
  things.create(from_json(R"({"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"o",)"
                          R"("ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",)"
                          R"("name":"nobody","uid":"no-uid"}]}})"));
  ASSERT_TRUE(eventually([&] { return !maps.find("orphan") && !things.find("o"); }));
  // The collector processes the child when Thing is not served.
  slow = true;
  definitions.remove("things.example.com");
  const bool unknown = eventually([&] {
    try {
      things.list();
      return false;
    } catch (const api::StatusError& e) {
      return api::is_not_found(e);
    }
  });
  slow = false;
  EXPECT_TRUE(unknown);
  EXPECT_TRUE(eventually([&] { return !maps.find("child"); }));
}

// Another server's collector works on the same storage, and this one is slow.
TEST(GarbageCollectionBesideAnother, KeepsConcurrentlyOrphanedObjects) {
  const auto backend = std::make_shared<WrappedBackend>("configmaps");
  storage::Interface& stored = backend->memory().resource("configmaps");
  std::atomic<bool> orphaned{false};
  // The other collector orphans the child after this one has read it, and before this one sees that
  // the owner is gone.
  backend->on_get = [&](std::string key) -> Awaitable<void> {
    if (key != "default/owner" || orphaned) co_return;
    const Object owner = co_await stored.get("default/owner");
    const Object child = co_await stored.get("default/child");
    if (owner || !child) co_return;
    storage::Interface::Update orphan = [](const Object& present) {
      return api::with_metadata(present, {{api::sym::kOwnerReferences, {}}});
    };
    storage::Preconditions none;
    co_await stored.guaranteed_update("default/child", false, std::move(none), std::move(orphan));
    orphaned = true;
  };
  const RunningServer running(backend);
  const auto maps = running.client.resource(kConfigMaps, "default");
  const auto make_family = [&](const std::string& owner, const std::string& child) {
    create_owned(maps, child, owner, std::string(maps.create(config_map(owner)).uid()));
  };
  make_family("owner", "child");
  maps.remove("owner");
  ASSERT_TRUE(eventually([&] { return orphaned.load(); }));
  // The collector has finished with the child when it has finished with these.
  make_family("other-owner", "other-child");
  maps.remove("other-owner");
  EXPECT_TRUE(eventually([&] { return !maps.find("other-child"); }));
  EXPECT_TRUE(maps.find("child"));
}

}  // namespace
}  // namespace lookout::apiserver
