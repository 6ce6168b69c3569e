#include "lookout/controller/owner_references.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "tests/support/held.h"

namespace lookout::controller {
namespace {

api::Object site(const std::string& name = "site", const std::string& uid = "1",
                 const std::string& api_version = "example.com/v1",
                 const std::string& ns = "shop") {
  api::ObjectDraft draft;
  draft["apiVersion"].set(api_version);
  draft["kind"].set("Website");
  draft["metadata"]["name"].set(name);
  if (!uid.empty()) draft["metadata"]["uid"].set(uid);
  if (!ns.empty()) draft["metadata"]["namespace"].set(ns);
  return draft.build();
}

std::string owners(const api::ObjectDraft& draft) {
  return lookout::test::held(draft.build())["metadata"]["ownerReferences"].to_json();
}

TEST(OwnerReferencesTest, TheControllerIsWritten) {
  const auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  set_controller_reference(site(), web);
  EXPECT_EQ(lookout::test::held(web.build())["metadata"]["ownerReferences"],
            lookout::test::held(
                api::Object::parse(R"({"r":[{"apiVersion":"example.com/v1","kind":"Website",
                "name":"site","uid":"1","controller":true,"blockOwnerDeletion":true}]})"))["r"]);
  const auto built = web.build();
  EXPECT_EQ(controller_of(built)->name(), "site");
  EXPECT_TRUE(has_owner_reference(site(), built));
  EXPECT_FALSE(has_owner_reference(site("other"), built));
  EXPECT_FALSE(controller_of(site()));
}

TEST(OwnerReferencesTest, AnEarlierObjectOfTheSameNameIsNotTheController) {
  const auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  set_controller_reference(site("site", "1"), web);
  const auto built = web.build();
  EXPECT_TRUE(is_controlled_by(built, site("site", "1")));
  EXPECT_FALSE(is_controlled_by(built, site("site", "2")));
  EXPECT_FALSE(is_controlled_by(site("orphan"), site("site", "")));
}

TEST(OwnerReferencesTest, TheSameOwnerIsRefreshed) {
  const auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  set_controller_reference(site("site", "1", "example.com/v1"), web);
  set_controller_reference(site("site", "2", "example.com/v2"), web);
  EXPECT_EQ(web.metadata().owner_references().size(), 1u);
  EXPECT_THAT(owners(web), testing::HasSubstr(R"("uid":"2")"));
  EXPECT_THAT(owners(web), testing::HasSubstr("example.com/v2"));
}

TEST(OwnerReferencesTest, ThereIsOneController) {
  const auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  set_controller_reference(site("a"), web);
  const std::string before = owners(web);
  EXPECT_THROW(set_controller_reference(site("b"), web), AlreadyOwnedError);
  EXPECT_EQ(owners(web), before);
  // Other owners are allowed.
  set_owner_reference(site("b"), web);
  EXPECT_EQ(web.metadata().owner_references().size(), 2u);
  EXPECT_EQ(controller_of(web.build())->name(), "a");
}

TEST(OwnerReferencesTest, AControllerSetAsAnOwnerStaysTheController) {
  const auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  set_controller_reference(site(), web);
  set_owner_reference(site("site", "3"), web);
  EXPECT_THAT(owners(web), testing::HasSubstr(R"("controller":true)"));
  EXPECT_THAT(owners(web), testing::HasSubstr(R"("uid":"3")"));
}

TEST(OwnerReferencesTest, AnOwnerBecomesTheController) {
  const auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  set_owner_reference(site(), web);
  EXPECT_FALSE(controller_of(web.build()));
  set_controller_reference(site(), web);
  EXPECT_EQ(web.metadata().owner_references().size(), 1u);
  EXPECT_TRUE(controller_of(web.build()));
}

TEST(OwnerReferencesTest, AnOwnerIsRemoved) {
  const auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  set_controller_reference(site("a"), web);
  set_owner_reference(site("b"), web);
  EXPECT_TRUE(remove_owner_reference(site("a"), web));
  EXPECT_FALSE(remove_owner_reference(site("a"), web));
  EXPECT_EQ(web.metadata().owner_references().size(), 1u);
}

TEST(OwnerReferencesTest, RejectsInvalidOwners) {
  const auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  EXPECT_THROW(set_controller_reference(site("site", ""), web), InvalidArgument);
  EXPECT_THROW(set_controller_reference(site("", "1"), web), InvalidArgument);
  EXPECT_THROW(set_controller_reference(site("site", "1", "v1", "elsewhere"), web),
               InvalidArgument);
  const api::ObjectDraft metadata(site("site", "1", "meta.k8s.io/v1"));
  metadata["kind"].set("PartialObjectMetadata");
  EXPECT_THROW(set_controller_reference(metadata.build(), web), InvalidArgument);
  EXPECT_THROW(set_owner_reference(metadata.build(), web), InvalidArgument);
  EXPECT_FALSE(lookout::test::held(web.build()).metadata().owner_references().size());
  const auto node = k8s::core::v1::Node::draft("n");
  EXPECT_THROW(set_owner_reference(site(), node), InvalidArgument);
  EXPECT_FALSE(lookout::test::held(node.build()).metadata().owner_references().size());
  // A cluster-scoped object can own anything.
  set_owner_reference(site("site", "1", "v1", ""), node);
  set_owner_reference(site("site", "1", "v1", ""), web);
}

}  // namespace
}  // namespace lookout::controller
