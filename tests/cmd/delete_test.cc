// lookout delete.
#include "lookout/k8s/core/v1.h"
#include "tests/cmd/cmd_fixture.h"
#include "tests/support/eventually.h"

namespace lookout::cmd {
namespace {

using k8s::core::v1::ConfigMap;
using testing::HasSubstr;

class Delete : public CmdTest {};

TEST_F(Delete, DeletesAnObject) {
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  const auto result = lookout({"delete", "cm", "settings"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "configmap/settings deleted\n");
  EXPECT_FALSE(client_.resource<ConfigMap>("default").find("settings"));
}

TEST_F(Delete, LooksInTheNamespaceThatItIsTold) {
  create("namespaces", "", R"({"metadata":{"name":"shop"}})");
  create("configmaps", "shop", R"({"metadata":{"name":"settings"}})");
  const auto missing = lookout({"delete", "cm", "settings"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.errors, HasSubstr("configmaps \"settings\" not found"));
  EXPECT_EQ(lookout({"delete", "cm", "settings", "-n", "shop"}).status, 0);
}

TEST_F(Delete, SaysWhyAnObjectIsStillThere) {
  create("configmaps", "default",
         R"({"metadata":{"name":"settings","finalizers":["example.com/keep"]}})");
  const auto result = lookout({"delete", "cm", "settings"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output,
            "configmap/settings is being deleted: it waits for finalizers example.com/keep\n");
}

TEST_F(Delete, ANamespaceWaitsForItsContents) {
  create("namespaces", "", R"({"metadata":{"name":"shop"}})");
  const auto result = lookout({"delete", "ns", "shop"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output,
            "namespace/shop is being deleted: it waits until its contents are deleted\n");
}

TEST_F(Delete, ChangesNothingInADryRun) {
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  const auto result = lookout({"delete", "cm", "settings", "--dry-run"});
  EXPECT_EQ(result.output, "configmap/settings deleted (server dry run)\n");
  EXPECT_TRUE(client_.resource<ConfigMap>("default").find("settings"));
}

TEST_F(Delete, KeepsWhatTheObjectOwnsIfItIsTold) {
  create("configmaps", "default", R"({"metadata":{"name":"owner"}})");
  const auto owner = client_.resource<ConfigMap>("default").get("owner");
  create("configmaps", "default",
         R"({"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",)"
         R"("name":"owner","uid":")" +
             std::string(owner.uid()) + R"("}]}})");
  const auto result = lookout({"delete", "cm", "owner", "--cascade", "orphan"});
  EXPECT_EQ(result.status, 0) << result.errors;
  // The server removes the reference before it deletes the owner.
  ASSERT_TRUE(
      test::eventually([&] { return !client_.resource<ConfigMap>("default").find("owner"); }));
  const auto owned = client_.resource<ConfigMap>("default").find("owned");
  ASSERT_TRUE(owned);
  EXPECT_TRUE(owned.metadata().owner_references().empty());
}

TEST_F(Delete, RefusesWrongUsage) {
  EXPECT_EQ(lookout({"delete", "cm"}).status, 2);
  EXPECT_EQ(lookout({"delete", "cm", "a", "--cascade", "maybe"}).status, 2);
  EXPECT_EQ(lookout({"delete", "cm", "a", "--grace-period=-1"}).status, 2);
}

}  // namespace
}  // namespace lookout::cmd
