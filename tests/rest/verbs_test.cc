// The verbs of clients, typed and untyped, against the embedded server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"

namespace lookout::rest {
namespace {

using k8s::apps::v1::Deployment;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::Namespace;

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class VerbsTest : public testing::Test {
 protected:
  void SetUp() override { namespaces_.create(Namespace::draft("shop")); }

  static ConfigMap map(const std::string& name, const std::string& app = "web",
                       const std::string& ns = "default") {
    const auto draft = ConfigMap::draft(name, ns);
    draft.metadata().labels().set("app", app);
    draft.data().set("value", "1");
    return ConfigMap(draft.build());
  }
  static Deployment deployment(const std::string& name) {
    const auto draft = Deployment::draft(name, "default");
    draft.spec().set_replicas(1);
    draft.spec().selector().match_labels().set("app", name);
    draft.spec().pod_template().metadata().labels().set("app", name);
    draft.spec().pod_template().spec().containers().append("main").set_image("main:1");
    return Deployment(draft.build());
  }

  /// The HTTP status of the API server's rejection; 0 if there is none.
  static int refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const api::StatusError& e) {
      return e.code();
    }
    return 0;
  }
  template <class List>
  static std::vector<std::string> keys(const List& list) {
    std::vector<std::string> out;
    out.reserve(list.items.size());
    for (const auto& item : list.items) out.push_back(item.key());
    return out;
  }

  const apiserver::Server server_;
  const Client client_{server_.client_config()};
  const TypedClient<ConfigMap> maps_ = client_.resource<ConfigMap>("default");
  const TypedClient<ConfigMap> all_maps_ = client_.resource<ConfigMap>();
  const TypedClient<Deployment> deployments_ = client_.resource<Deployment>("default");
  const TypedClient<Namespace> namespaces_ = client_.resource<Namespace>();
  const ResourceClient untyped_ = client_.resource(api::Resource(ConfigMap::kResource), "default");
  /// A kind that the server does not serve.
  const ResourceClient unknown_ =
      client_.resource(api::Resource("example.com", "v1", "Website", "websites", true), "default");
};

TEST_F(VerbsTest, AnObjectIsCreatedReadUpdatedAndDeleted) {
  const ConfigMap made = maps_.create(map("m"));
  EXPECT_FALSE(made.uid().empty());
  EXPECT_EQ(maps_.get("m").uid(), made.uid());
  EXPECT_EQ(untyped_.get("m").uid(), made.uid());
  const auto change = made.edit();
  change.data().set("value", "2");
  const ConfigMap updated = maps_.update(change);
  EXPECT_EQ(updated.data()["value"], "2");
  EXPECT_EQ(updated.kind(), "ConfigMap");
  EXPECT_EQ(updated.api_version(), "v1");
  maps_.remove("m");
  EXPECT_FALSE(maps_.find("m"));
}

TEST_F(VerbsTest, NamesAreTakenFromObjectsAsTheyAre) {
  const ConfigMap a = maps_.create(map("a"));
  const auto maps = client_.resource<ConfigMap>(a.ns());
  EXPECT_EQ(maps.get(a.name()).uid(), a.uid());
  EXPECT_EQ(maps.find(std::string(a.name())).uid(), a.uid());
  EXPECT_EQ(maps.find("a").uid(), a.uid());
  EXPECT_THROW(maps.find({}), InvalidArgument);
  maps.patch(a.name(), PatchType::kMerge, R"({"data":{"value":"2"}})");
  const api::Object changed =
      client_.resource(api::Resource(ConfigMap::kResource), a.ns()).get(a.name());
  EXPECT_EQ(changed["data"]["value"].as_string(), "2");
  // A coroutine that begins later has its own copy.
  auto later = maps.async_get(std::string("a"));
  EXPECT_EQ(client_.loop().run(std::move(later)).uid(), a.uid());
  maps.remove(a.name());
  EXPECT_FALSE(maps.find(a.name()));
}

TEST_F(VerbsTest, UntypedVerbsBehaveLikeTypedOnes) {
  const api::Object made = untyped_.create(map("m"));
  EXPECT_EQ(made.kind(), "ConfigMap");
  const auto change = ConfigMap(made).edit();
  change.data().set("value", "2");
  const ConfigMap updated(untyped_.update(change));
  EXPECT_EQ(updated.data()["value"], "2");
  EXPECT_EQ(refusal([&] { untyped_.create(map("m")); }), 409);
  EXPECT_THAT(keys(untyped_.list()), ElementsAre("default/m"));
  untyped_.remove("m");
  EXPECT_FALSE(untyped_.find("m"));
}

TEST_F(VerbsTest, SupportsClusterScopedObjects) {
  const ResourceClient untyped = client_.resource(api::Resource(Namespace::kResource));
  const Namespace made = namespaces_.create(Namespace::draft("lab"));
  EXPECT_EQ(made.ns(), "");
  EXPECT_EQ(untyped.get("lab").uid(), made.uid());
  const auto change = made.edit();
  change.metadata().labels().set("team", "a");
  EXPECT_EQ(ConfigMap(namespaces_.update(change)).name(), "lab");
  const Namespace read = namespaces_.get("lab");
  EXPECT_EQ(read.labels()["team"].as_string(), "a");
  // The client's namespace does not apply to them.
  EXPECT_EQ(client_.resource<Namespace>("shop").get("lab").uid(), made.uid());
}

TEST_F(VerbsTest, ARejectionIsAnErrorWithItsReason) {
  maps_.create(map("m"));
  EXPECT_EQ(refusal([&] { maps_.create(map("m")); }), 409);
  EXPECT_EQ(refusal([&] { maps_.create(map("No_Name")); }), 422);
  const auto wrong = deployment("d").edit();
  wrong.spec().selector().match_labels().set("app", "other");
  EXPECT_EQ(refusal([&] { deployments_.create(wrong); }), 422);
  EXPECT_EQ(refusal([&] { maps_.get("none"); }), 404);
  EXPECT_EQ(refusal([&] { maps_.update(map("none")); }), 404);
  EXPECT_EQ(refusal([&] { maps_.patch("none", PatchType::kMerge, "{}"); }), 404);
  EXPECT_EQ(refusal([&] { maps_.remove("none"); }), 404);
  EXPECT_EQ(refusal([&] { deployments_.update_status(deployment("none")); }), 404);
}

TEST_F(VerbsTest, AnUnservedKindIsNotFound) {
  const auto site = api::Object::parse(
      R"({"apiVersion":"example.com/v1","kind":"Website","metadata":{"name":"s","namespace":"default"}})");
  EXPECT_EQ(refusal([&] { unknown_.create(site); }), 404);
  EXPECT_EQ(refusal([&] { unknown_.get("s"); }), 404);
  EXPECT_EQ(refusal([&] { unknown_.list(); }), 404);
  EXPECT_EQ(refusal([&] { unknown_.update(site); }), 404);
  EXPECT_EQ(refusal([&] { unknown_.update_status(site); }), 404);
  EXPECT_EQ(refusal([&] { unknown_.patch("s", PatchType::kMerge, "{}"); }), 404);
  EXPECT_EQ(refusal([&] { unknown_.remove("s"); }), 404);
  EXPECT_EQ(refusal([&] { unknown_.remove_collection(); }), 404);
}

TEST_F(VerbsTest, AKindWithoutAStatusHasNoSuchSubresource) {
  const ConfigMap made = maps_.create(map("m"));
  EXPECT_EQ(refusal([&] { maps_.update_status(made); }), 404);
  EXPECT_EQ(
      refusal([&] { maps_.patch("m", PatchType::kMerge, R"({"data":{"a":"b"}})", {}, "status"); }),
      404);
}

TEST_F(VerbsTest, ADryRunChangesNothing) {
  CreateOptions dry;
  dry.dry_run = true;
  PatchOptions dry_patch;
  dry_patch.dry_run = true;
  DeleteOptions dry_delete;
  dry_delete.dry_run = true;

  EXPECT_EQ(deployments_.create(deployment("new"), dry).name(), "new");
  EXPECT_FALSE(deployments_.find("new"));
  const Deployment made = deployments_.create(deployment("d"));
  const auto change = made.edit();
  change.spec().set_replicas(5);
  change.status().set_replicas(3);
  const Deployment answered = deployments_.update(change, dry);
  EXPECT_EQ(answered.spec().replicas(), 5);
  deployments_.patch(change, dry_patch);
  deployments_.patch("d", PatchType::kStrategicMerge, R"({"spec":{"replicas":5}})", dry_patch);
  deployments_.update_status(change, dry);
  deployments_.patch_status(change, dry_patch);
  deployments_.patch("d", PatchType::kMerge, R"({"status":{"replicas":3}})", dry_patch, "status");
  deployments_.remove("d", dry_delete);
  deployments_.remove_collection(dry_delete);
  EXPECT_EQ(deployments_.get("d").to_json(), made.to_json());
  // The server validates it nevertheless.
  EXPECT_EQ(refusal([&] { maps_.create(map("No_Name"), dry); }), 422);
  change.spec().selector().match_labels().set("app", "other");
  EXPECT_EQ(refusal([&] { deployments_.update(change, dry); }), 422);
}

TEST_F(VerbsTest, ListsAreFiltered) {
  for (const char* name : {"a", "b"}) maps_.create(map(name, name));
  all_maps_.create(map("a", "a", "shop"));
  const auto labelled = [](const std::string& selector) {
    ListOptions out;
    out.label_selector = selector;
    return out;
  };
  const auto with_field = [](const std::string& selector) {
    ListOptions out;
    out.field_selector = selector;
    return out;
  };
  EXPECT_THAT(keys(all_maps_.list()), UnorderedElementsAre("default/a", "default/b", "shop/a"));
  EXPECT_THAT(keys(maps_.list()), UnorderedElementsAre("default/a", "default/b"));
  EXPECT_THAT(keys(maps_.list(labelled("app=a"))), ElementsAre("default/a"));
  EXPECT_THAT(keys(all_maps_.list(labelled("app=a"))), UnorderedElementsAre("default/a", "shop/a"));
  EXPECT_THAT(keys(all_maps_.list(with_field("metadata.name=b"))), ElementsAre("default/b"));
  EXPECT_THAT(keys(all_maps_.list(with_field("metadata.namespace=shop"))), ElementsAre("shop/a"));
  EXPECT_THAT(keys(maps_.list(labelled("app=none"))), IsEmpty());
  EXPECT_THAT(keys(untyped_.list(labelled("app=a"))), ElementsAre("default/a"));
  EXPECT_THAT(keys(untyped_.list(with_field("metadata.name=b"))), ElementsAre("default/b"));
  EXPECT_THAT(keys(untyped_.list(labelled("app=none"))), IsEmpty());
}

TEST_F(VerbsTest, ListsArePaged) {
  for (const char* name : {"a", "b", "c", "d"}) maps_.create(map(name));
  ListOptions page;
  page.limit = 3;
  const auto first = maps_.list(page);
  EXPECT_THAT(keys(first), ElementsAre("default/a", "default/b", "default/c"));
  ASSERT_FALSE(first.continue_token.empty());
  page.continue_token = first.continue_token;
  const auto second = maps_.list(page);
  EXPECT_THAT(keys(second), ElementsAre("default/d"));
  EXPECT_TRUE(second.continue_token.empty());
}

TEST_F(VerbsTest, CollectionsAreDeleted) {
  for (const char* name : {"a", "b"}) maps_.create(map(name, name));
  all_maps_.create(map("a", "a", "shop"));
  ListOptions selected;
  selected.label_selector = "app=a";
  maps_.remove_collection({}, selected);
  EXPECT_THAT(keys(all_maps_.list()), UnorderedElementsAre("default/b", "shop/a"));
  untyped_.remove_collection();
  EXPECT_THAT(keys(all_maps_.list()), ElementsAre("shop/a"));
}

TEST_F(VerbsTest, AWatchReportsACreation) {
  auto typed = maps_.watch();
  auto untyped = untyped_.watch();
  DecodeOptions only_metadata;
  only_metadata.metadata_only = true;
  auto metadata = untyped_.watch({}, only_metadata);
  maps_.create(map("m"));
  const auto first = typed.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->type, api::EventType::kAdded);
  EXPECT_EQ(first->object.data()["value"], "1");
  const auto second = untyped.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->object.key(), "default/m");
  const auto third = metadata.next();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->object.key(), "default/m");
  const ConfigMap bare(third->object);
  EXPECT_TRUE(bare.data().empty());
}

TEST_F(VerbsTest, AClientOfANamespaceWritesOnlyThere) {
  const auto shop = client_.resource<ConfigMap>("shop");
  // An object without a namespace is written to the client's namespace.
  const auto nowhere = api::Object::parse(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"value":"1"}})");
  const ConfigMap made = shop.create(nowhere);
  EXPECT_EQ(made.ns(), "shop");
  const ConfigMap other = maps_.create(map("m"));
  const auto change = other.edit();
  change.data().set("value", "wrong");
  EXPECT_THROW(shop.create(map("n")), InvalidArgument);
  EXPECT_THROW(shop.update(change), InvalidArgument);
  EXPECT_THROW(shop.update_status(change), InvalidArgument);
  EXPECT_THROW(shop.patch(change), InvalidArgument);
  EXPECT_THROW(shop.apply(map("m"), ApplyOptions{"me"}), InvalidArgument);
  EXPECT_EQ(shop.get("m").to_json(), made.to_json());
  EXPECT_EQ(maps_.get("m").to_json(), other.to_json());
  EXPECT_FALSE(shop.find("n"));
  EXPECT_FALSE(maps_.find("n"));

  const Deployment web = deployments_.create(deployment("web"));
  const auto status = web.edit();
  status.status().set_replicas(3);
  EXPECT_THROW(client_.resource<Deployment>("shop").patch_status(status), InvalidArgument);
  EXPECT_EQ(deployments_.get("web").to_json(), web.to_json());
}

TEST_F(VerbsTest, ADeletionChecksItsPreconditions) {
  const ConfigMap made = maps_.create(map("m"));
  DeleteOptions options;
  options.precondition_resource_version = "1";
  EXPECT_EQ(refusal([&] { maps_.remove("m", options); }), 409);
  options.precondition_resource_version = std::string(made.resource_version());
  options.precondition_uid = "another";
  EXPECT_EQ(refusal([&] { maps_.remove("m", options); }), 409);
  options.precondition_uid = std::string(made.uid());
  maps_.remove("m", options);
  EXPECT_FALSE(maps_.find("m"));
}

}  // namespace
}  // namespace lookout::rest
