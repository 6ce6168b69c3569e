// lookout delete.
#include <string>
#include <vector>

#include "lookout/k8s/core/v1.h"
#include "tests/cmd/cmd_fixture.h"
#include "tests/support/eventually.h"

namespace lookout::cmd {
namespace {

using k8s::core::v1::ConfigMap;
using k8s::core::v1::Namespace;
using testing::HasSubstr;
using testing::StartsWith;

class Delete : public CmdTest {
 protected:
  /// The output of a deletion that succeeds.
  std::string deleted(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "delete");
    const auto result = lookout(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.output;
  }
};

TEST_F(Delete, DeletesAnObject) {
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  EXPECT_EQ(deleted({"cm", "settings"}), "configmap/settings deleted\n");
  EXPECT_FALSE(client_.resource<ConfigMap>("default").find("settings"));
}

TEST_F(Delete, UsesTheGivenNamespace) {
  create("namespaces", "", R"({"metadata":{"name":"shop"}})");
  create("configmaps", "shop", R"({"metadata":{"name":"settings"}})");
  const auto missing = lookout({"delete", "cm", "settings"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.errors, HasSubstr("configmaps \"settings\" not found"));
  EXPECT_EQ(lookout({"delete", "cm", "settings", "-n", "shop"}).status, 0);
}

TEST_F(Delete, ReportsWhyAnObjectStillExists) {
  create("configmaps", "default",
         R"({"metadata":{"name":"settings","finalizers":["example.com/keep"]}})");
  EXPECT_EQ(deleted({"cm", "settings", "--wait=false"}),
            "configmap/settings is being deleted: it waits for finalizers example.com/keep\n");
}

// Like kubectl.
TEST_F(Delete, WaitsUntilObjectsAreGone) {
  create("namespaces", "", R"({"metadata":{"name":"shop"}})");
  EXPECT_EQ(deleted({"ns", "shop"}),
            "namespace/shop is being deleted: it waits until its contents are deleted\n"
            "namespace/shop deleted\n");
  EXPECT_FALSE(client_.resource<Namespace>().find("shop"));
  create("namespaces", "", R"({"metadata":{"name":"shop"}})");
  EXPECT_EQ(deleted({"ns", "shop", "-o", "name"}), "namespace/shop\n");
  EXPECT_FALSE(client_.resource<Namespace>().find("shop"));
}

TEST_F(Delete, WaitsForFinalizersOfTheDeletedObjectOnly) {
  create("configmaps", "default",
         R"({"metadata":{"name":"settings","finalizers":["example.com/keep"]}})");
  const test::TempDir dir;
  test::Process process =
      environment_.start(test::lookout_program(),
                         {"--server", server_.url(), "delete", "cm", "settings"}, dir / "log");
  const auto maps = client_.resource<ConfigMap>("default");
  ASSERT_TRUE(test::eventually(
      [&] { return test::read_file(dir / "log").find("is being deleted") != std::string::npos; }));
  EXPECT_TRUE(maps.find("settings"));
  maps.patch("settings", rest::PatchType::kMerge, R"({"metadata":{"finalizers":[]}})");
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  ASSERT_TRUE(test::eventually([&] { return !process.running(); }));
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(test::read_file(dir / "log"),
            "configmap/settings is being deleted: it waits for finalizers example.com/keep\n"
            "configmap/settings deleted\n");
  EXPECT_TRUE(maps.find("settings")) << "the new one";
}

TEST_F(Delete, FailsIfAnObjectStillExistsAfterTheTimeout) {
  create("configmaps", "default", R"({"metadata":{"name":"a","finalizers":["example.com/keep"]}})");
  create("configmaps", "default", R"({"metadata":{"name":"b"}})");
  const auto result = lookout({"delete", "cm", "a", "b", "--timeout=100ms"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output,
            "configmap/a is being deleted: it waits for finalizers example.com/keep\n"
            "configmap/b deleted\n");
  EXPECT_EQ(result.errors,
            "lookout: configmap/a: timed out while it is being deleted: it waits for finalizers "
            "example.com/keep\n");
}

// kubectl's rules.
TEST_F(Delete, OnlyForceDeletesAPodWithoutGracePeriod) {
  for (const char* const name : {"a", "b", "c"}) {
    create("pods", "default",
           R"({"metadata":{"name":")" + std::string(name) +
               R"("},"spec":{"nodeName":"n","terminationGracePeriodSeconds":600,)"
               R"("containers":[{"name":"main","image":"i:1"}]}})");
  }
  EXPECT_EQ(deleted({"pods", "a", "--grace-period=0", "--wait=false"}),
            "pod/a is being deleted: it waits for its grace period of 1 s\n");
  EXPECT_EQ(deleted({"pods", "b", "--now", "--wait=false"}),
            "pod/b is being deleted: it waits for its grace period of 1 s\n");
  const auto forced = lookout({"delete", "pods", "a", "b", "c", "--force"});
  EXPECT_EQ(forced.status, 0) << forced.errors;
  EXPECT_EQ(forced.output, "pod/a force deleted\npod/b force deleted\npod/c force deleted\n");
  EXPECT_THAT(forced.errors,
              StartsWith("lookout: warning: an immediate deletion does not wait for confirmation"));
  EXPECT_FALSE(client_.resource(kPods, "default").find("c"));
}

TEST_F(Delete, ChangesNothingInADryRun) {
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  for (const char* const flag : {"--dry-run", "--dry-run=server"}) {
    EXPECT_EQ(deleted({"cm", flag, "settings"}), "configmap/settings deleted (server dry run)\n");
    EXPECT_TRUE(client_.resource<ConfigMap>("default").find("settings"));
  }
  EXPECT_EQ(deleted({"cm", "settings", "--dry-run=none"}), "configmap/settings deleted\n");
}

TEST_F(Delete, AcceptsTypeAndNameInOneWord) {
  create("configmaps", "default", R"({"metadata":{"name":"settings"}})");
  create("leases", "default", R"({"metadata":{"name":"web"}})");
  EXPECT_EQ(deleted({"cm/settings"}), "configmap/settings deleted\n");
  // The form that the program prints.
  EXPECT_EQ(deleted({"lease.coordination.k8s.io/web"}), "lease.coordination.k8s.io/web deleted\n");
}

TEST_F(Delete, DeletesSeveralObjects) {
  for (const char* const name : {"a", "b", "c"})
    create("configmaps", "default", R"({"metadata":{"name":")" + std::string(name) + R"("}})");
  create("secrets", "default", R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(deleted({"cm", "b", "a"}), "configmap/b deleted\nconfigmap/a deleted\n");
  EXPECT_EQ(deleted({"cm/c", "secret/a"}), "configmap/c deleted\nsecret/a deleted\n");
}

TEST_F(Delete, DeletesTheOthersIfOneIsNotFound) {
  create("configmaps", "default", R"({"metadata":{"name":"b"}})");
  const auto result = lookout({"delete", "cm", "a", "b"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "configmap/b deleted\n");
  EXPECT_EQ(result.errors, "lookout: configmaps \"a\" not found\n");
  EXPECT_EQ(deleted({"cm", "a", "b", "--ignore-not-found"}), "");
}

TEST_F(Delete, DeletesBySelector) {
  create("namespaces", "", R"({"metadata":{"name":"shop"}})");
  for (const char* const ns : {"default", "shop"}) {
    create("configmaps", ns, R"({"metadata":{"name":"a","labels":{"app":"web"}}})");
    create("configmaps", ns, R"({"metadata":{"name":"b","labels":{"app":"api"}}})");
    create("secrets", ns, R"({"metadata":{"name":"a","labels":{"app":"web"}}})");
  }
  EXPECT_EQ(deleted({"cm,secrets", "-l", "app=web"}), "configmap/a deleted\nsecret/a deleted\n");
  EXPECT_EQ(deleted({"cm", "--field-selector", "metadata.name=b"}), "configmap/b deleted\n");
  EXPECT_EQ(deleted({"secrets", "-A", "-l", "app"}), "secret/a deleted\n");
  EXPECT_EQ(deleted({"cm", "--all", "-n", "shop"}), "configmap/a deleted\nconfigmap/b deleted\n");
  EXPECT_EQ(deleted({"cm", "--all", "-n", "shop"}), "No resources found\n");
}

TEST_F(Delete, DeletesTheObjectsOfFiles) {
  create("namespaces", "", R"({"metadata":{"name":"shop"}})");
  create("configmaps", "shop", R"({"metadata":{"name":"a"}})");
  create("secrets", "default", R"({"metadata":{"name":"b"}})");
  const std::string file = (environment_.home() / "web.yaml").string();
  test::write_file(file,
                   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"
                   "---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n");
  const auto other = lookout({"delete", "-f", file, "-n", "default"});
  EXPECT_EQ(other.status, 1);
  EXPECT_EQ(other.output, "secret/b deleted\n");
  EXPECT_EQ(other.errors,
            "lookout: " + file + ":1: the namespace of configmap/a is shop, but -n says default\n");
  const auto missing = lookout({"delete", "-f", file});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.output, "configmap/a deleted\n");
  EXPECT_EQ(missing.errors, "lookout: " + file + ":5: secrets \"b\" not found\n");
  EXPECT_EQ(deleted({"-f", file, "--ignore-not-found"}), "");
}

TEST_F(Delete, ReadsStandardInput) {
  create("configmaps", "default", R"({"metadata":{"name":"a"}})");
  const auto result = environment_.run(
      "sh",
      {"-c", R"(echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}' | "$0" "$@")",
       test::lookout_program(), "--server", server_.url(), "delete", "-f", "-"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "configmap/a deleted\n");
}

TEST_F(Delete, OrphansDependentsIfRequested) {
  create("configmaps", "default", R"({"metadata":{"name":"owner"}})");
  const auto owner = client_.resource<ConfigMap>("default").get("owner");
  create("configmaps", "default",
         R"({"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",)"
         R"("name":"owner","uid":")" +
             std::string(owner.uid()) + R"("}]}})");
  deleted({"cm", "owner", "--cascade", "orphan"});
  // The server removes the reference before it deletes the owner.
  ASSERT_TRUE(
      test::eventually([&] { return !client_.resource<ConfigMap>("default").find("owner"); }));
  const auto owned = client_.resource<ConfigMap>("default").find("owned");
  ASSERT_TRUE(owned);
  EXPECT_TRUE(owned.metadata().owner_references().empty());
}

TEST_F(Delete, RejectsWrongUsage) {
  EXPECT_EQ(lookout({"delete", "cm"}).status, 2);
  EXPECT_EQ(lookout({"delete", "cm", "a", "--cascade", "maybe"}).status, 2);
  EXPECT_EQ(lookout({"delete", "cm", "a", "--grace-period=-1"}).status, 2);
  EXPECT_THAT(lookout({"delete", "cm", "a", "--force", "--grace-period=1"}).errors,
              HasSubstr("--force: leaves no grace period: leave out --grace-period, or make it 0"));
  EXPECT_THAT(lookout({"delete", "cm", "a", "--force", "--now"}).errors,
              HasSubstr("--force: leaves no grace period: leave out --now"));
  EXPECT_THAT(lookout({"delete", "cm", "a", "--now", "--grace-period=1"}).errors,
              HasSubstr("--now: is --grace-period=1: choose one of them"));
}

}  // namespace
}  // namespace lookout::cmd
