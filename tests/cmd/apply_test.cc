// lookout apply.
#include <filesystem>

#include "lookout/k8s/core/v1.h"
#include "tests/cmd/cmd_fixture.h"

namespace lookout::cmd {
namespace {

using k8s::core::v1::ConfigMap;
using testing::AllOf;
using testing::HasSubstr;

class Apply : public CmdTest {
 protected:
  test::ProgramResult apply(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "apply");
    return lookout(arguments);
  }
  std::string colour(const std::string& name, const std::string& ns = "default") const {
    const auto map = client_.resource<ConfigMap>(ns).find(name);
    return map ? std::string(map.data()["colour"]) : "none";
  }
  static std::string map(const std::string& name, const std::string& colour,
                         const std::string& metadata = "") {
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + metadata +
           "}\ndata: {colour: " + colour + "}\n";
  }

  test::TempDir folder_;
};

TEST_F(Apply, CreatesAndChanges) {
  const std::string settings = folder_.file("settings.yaml", map("settings", "blue"));
  const auto created = apply({"-f", settings});
  EXPECT_EQ(created.status, 0) << created.errors;
  EXPECT_EQ(created.output, "configmap/settings serverside-applied\n");
  EXPECT_EQ(colour("settings"), "blue");
  folder_.file("settings.yaml", map("settings", "green"));
  EXPECT_EQ(apply({"-f", settings}).status, 0);
  EXPECT_EQ(colour("settings"), "green");
  const auto stored = client_.resource<ConfigMap>("default").get("settings");
  ASSERT_EQ(stored.metadata().managed_fields().size(), 1u);
  for (const auto entry : stored.metadata().managed_fields()) {
    EXPECT_EQ(entry.manager(), "lookout");
    EXPECT_EQ(entry.operation(), "Apply");
  }
}

TEST_F(Apply, RemovesOmittedFields) {
  apply({"-f", folder_.file("a.yaml", map("settings", "blue") + "binaryData: {more: aGVsbG8=}\n")});
  const auto result = apply({"-f", folder_.file("a.yaml", map("settings", "blue"))});
  EXPECT_EQ(result.status, 0) << result.errors;
  const auto stored = client_.resource<ConfigMap>("default").get("settings");
  EXPECT_TRUE(stored.binary_data().empty());
}

TEST_F(Apply, AcceptsSeveralDocumentsListsAndFiles) {
  const std::string several =
      folder_.file("several.yaml", "# two of them\n---\n" + map("one", "red") + "---\n" +
                                       map("two", "blue") + "---\n");
  const std::string list = folder_.file(
      "list.json",
      R"({"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap",)"
      R"("metadata":{"name":"three"},"data":{"colour":"yes"}}]})");
  const auto result = apply({"-f", several, "-f", list});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(
      test::lines(result.output),
      testing::ElementsAre("configmap/one serverside-applied", "configmap/two serverside-applied",
                           "configmap/three serverside-applied"));
  EXPECT_EQ(colour("three"), "yes");
}

TEST_F(Apply, AcceptsAStreamOfJsonObjects) {
  const auto json = [](const std::string& name) {
    return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name +
           R"("},"data":{"colour":"\ud83d\ude80"}})";
  };
  const auto result =
      apply({"-f", folder_.file("stream.json", json("one") + "\n" + json("two") + "\n"), "-f",
             folder_.file("close.json", json("three") + json("four"))});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(test::lines(result.output),
              testing::ElementsAre(
                  "configmap/one serverside-applied", "configmap/two serverside-applied",
                  "configmap/three serverside-applied", "configmap/four serverside-applied"));
  EXPECT_EQ(colour("four"), "\U0001F680");
}

TEST_F(Apply, AppliesTheFilesOfAFolderByName) {
  folder_.file("20-b.yml", map("b", "red"));
  folder_.file("10-a.yaml", map("a", "red"));
  folder_.file("README.md", "not a manifest");
  const auto result = apply({"-f", folder_.path().string()});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "configmap/a serverside-applied\nconfigmap/b serverside-applied\n");
}

TEST_F(Apply, AppliesTheFilesOfFoldersWithinAFolder) {
  std::filesystem::create_directories(folder_ / "b/c");
  folder_.file("b/c/3.yaml", map("three", "red"));
  folder_.file("b/2.yaml", map("two", "red"));
  folder_.file("b.yaml", map("four", "red"));
  folder_.file("a.json", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}})");
  EXPECT_EQ(apply({"-f", folder_.path().string(), "-o", "name"}).output,
            "configmap/one\nconfigmap/four\n");
  const auto result = apply({"-R", "-f", folder_.path().string(), "-o", "name"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "configmap/one\nconfigmap/two\nconfigmap/three\nconfigmap/four\n");
  EXPECT_EQ(lookout({"delete", "-Rf", folder_.path().string(), "-o", "name"}).output,
            result.output);
  std::filesystem::create_directories(folder_ / "d/e");
  EXPECT_THAT(apply({"-f", (folder_ / "d").string()}).errors,
              HasSubstr(".yml or .json (-R also reads the folders within it)\n"));
  EXPECT_THAT(apply({"-R", "-f", (folder_ / "d").string()}).errors, HasSubstr(".yml or .json\n"));
}

TEST_F(Apply, ShowsTheAppliedObjects) {
  const std::string one = folder_.file("one.yaml", map("one", "red"));
  const auto json = apply({"--server-side", "-f", one, "-o", "json"});
  EXPECT_EQ(json.status, 0) << json.errors;
  const auto object = api::Object::parse(json.output);
  EXPECT_EQ(object.name(), "one");
  EXPECT_NE(object.uid(), "");
  EXPECT_FALSE(object["metadata"]["managedFields"].exists());
  const std::string two = folder_.file("two.yaml", map("two", "red"));
  const auto list = api::Object::parse(apply({"-f", one, "-f", two, "-o=json"}).output);
  EXPECT_EQ(list.kind(), "List");
  EXPECT_EQ(list["items"].size(), 2u);
  EXPECT_THAT(apply({"-f", one, "-o", "yaml", "--dry-run"}).output,
              testing::StartsWith("apiVersion: v1\ndata:\n  colour: red\nkind: ConfigMap\n"));
}

TEST_F(Apply, AppliesObjectsWithoutANamespaceToTheGivenOne) {
  create("namespaces", "", R"({"metadata":{"name":"shop"}})");
  EXPECT_EQ(apply({"-n", "shop", "-f", folder_.file("a.yaml", map("a", "red"))}).status, 0);
  EXPECT_EQ(colour("a", "shop"), "red");
  EXPECT_EQ(apply({"-f", folder_.file("b.yaml", map("b", "red", ", namespace: shop"))}).status, 0);
  EXPECT_EQ(colour("b", "shop"), "red");
  const auto other =
      apply({"-n", "default", "-f", folder_.file("c.yaml", map("c", "red", ", namespace: shop"))});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.errors,
              HasSubstr("c.yaml:1: the namespace of configmap/c is shop, but -n says default\n"));
}

TEST_F(Apply, ReportsConflictsAndForcesThem) {
  client_.resource<ConfigMap>("default").apply(
      api::Object::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},)"
                         R"("data":{"colour":"red"}})"),
      {.field_manager = "somebody"});
  const std::string settings = folder_.file("settings.yaml", map("settings", "blue"));
  const auto refused = apply({"-f", settings});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.errors,
              AllOf(HasSubstr("settings.yaml:1: "), HasSubstr("conflict with \"somebody\""),
                    HasSubstr("--force-conflicts")));
  EXPECT_EQ(colour("settings"), "red");
  EXPECT_EQ(apply({"-f", settings, "--force-conflicts"}).status, 0);
  EXPECT_EQ(colour("settings"), "blue");
}

TEST_F(Apply, ChangesNothingInADryRun) {
  for (const char* const flag : {"--dry-run", "--dry-run=server"}) {
    const auto result = apply({flag, "-f", folder_.file("a.yaml", map("a", "red"))});
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(result.output, "configmap/a serverside-applied (server dry run)\n");
    EXPECT_EQ(colour("a"), "none");
  }
}

TEST_F(Apply, ContinuesAfterAnError) {
  const auto result = apply(
      {"-f", folder_.file("all.yaml", map("Bad_Name", "red") + "---\n" + map("good", "blue"))});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("all.yaml:1: "));
  EXPECT_EQ(colour("good"), "blue");
}

TEST_F(Apply, AppliesADefinitionAndItsObjectsTogether) {
  const auto result = apply(
      {"-f",
       folder_.file(
           "all.yaml",
           "apiVersion: apiextensions.k8s.io/v1\n"
           "kind: CustomResourceDefinition\n"
           "metadata: {name: widgets.example.com}\n"
           "spec:\n"
           "  group: example.com\n"
           "  scope: Cluster\n"
           "  names: {kind: Widget, plural: widgets}\n"
           "  versions:\n"
           "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, "
           "x-kubernetes-preserve-unknown-fields: true}}}\n"
           "---\n"
           "apiVersion: example.com/v1\n"
           "kind: Widget\n"
           "metadata: {name: small}\n")});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("widget.example.com/small serverside-applied\n"));
}

TEST_F(Apply, ReportsAMissingKind) {
  const auto result = apply(
      {"-f", folder_.file("a.yaml",
                          "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: small}\n")});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("no kind Widget in example.com/v1: is its "
                                       "CustomResourceDefinition installed?"));
}

struct BadManifest {
  const char* name;
  std::string text;
  std::string error;
};
void PrintTo(const BadManifest& bad, std::ostream* out) { *out << bad.name; }
class BadManifests : public Apply, public testing::WithParamInterface<BadManifest> {};

TEST_P(BadManifests, AreReportedAndTheOthersAreApplied) {
  const std::string good = folder_.file("a-good.yaml", map("good", "blue"));
  const auto result = apply({"-f", good, "-f", folder_.file("bad.yaml", GetParam().text)});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr(GetParam().error));
  EXPECT_THAT(result.errors, testing::Not(HasSubstr("secret")));
  EXPECT_EQ(colour("good"), "blue");
}

INSTANTIATE_TEST_SUITE_P(
    Cmd, BadManifests,
    testing::Values(BadManifest{"NoYaml", "a: 1\nb: [secret\n", "bad.yaml:"},
                    BadManifest{"NoObject", "---\n- secret\n", "bad.yaml:2: this is not an object"},
                    BadManifest{"NoKind", "\napiVersion: v1\nsecret: 1\n",
                                "bad.yaml:2: the object needs apiVersion and kind"},
                    BadManifest{"NoName",
                                "apiVersion: v1\nkind: Secret\ndata: {secret: c2VjcmV0}\n",
                                "bad.yaml:1: the object needs metadata.name"},
                    BadManifest{"NoText", "apiVersion: v1\nkind: Secret\nmetadata: {name: 123}\n",
                                "bad.yaml:1: metadata.name must be a string, but is of type "
                                "number: quote it"},
                    BadManifest{"NoTextInKind", "apiVersion: v1\nkind: yes\nmetadata: {name: a}\n",
                                "bad.yaml:1: kind must be a string, but is of type bool"}),
    [](const auto& test) { return test.param.name; });

// The same objects and messages as those of kubectl for the same folder.
TEST_F(Apply, ReportsEachBadFileOfAFolderAndAppliesTheOthers) {
  folder_.file("a.yaml", map("a", "red"));
  folder_.file("b.yaml", map("b", "red") + "---\nc: [\n---\n" + map("c", "red"));
  folder_.file("d.yaml", "kind: ConfigMap\n---\n" + map("d", "red"));
  std::filesystem::create_symlink("nowhere", folder_ / "e.yaml");
  folder_.file("f.yaml", map("f", "red"));
  const auto result = apply({"-f", folder_.path().string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output,
            "configmap/a serverside-applied\nconfigmap/b serverside-applied\n"
            "configmap/d serverside-applied\nconfigmap/f serverside-applied\n");
  EXPECT_THAT(test::lines(result.errors),
              testing::ElementsAre(HasSubstr("b.yaml:7: "),
                                   HasSubstr("d.yaml:1: the object needs apiVersion"),
                                   HasSubstr("e.yaml cannot be read: No such file or directory")));
}

TEST_F(Apply, AcceptsListsOfItemsWithoutKind) {
  const auto result =
      apply({"-f", folder_.file("list.yaml",
                                "apiVersion: v1\nkind: ConfigMapList\nitems:\n"
                                "- metadata: {name: one}\n  data: {colour: red}\n"
                                "- {apiVersion: v1, kind: ConfigMap, metadata: {name: two}}\n")});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(colour("one"), "red");
  EXPECT_TRUE(client_.resource<ConfigMap>("default").find("two"));
  const auto half = apply({"-f", folder_.file("half.yaml",
                                              "apiVersion: v1\nkind: ConfigMapList\nitems:\n"
                                              "- {kind: ConfigMap, metadata: {name: three}}\n")});
  EXPECT_EQ(half.status, 1);
  EXPECT_THAT(half.errors, HasSubstr("half.yaml:4: the object needs apiVersion and kind"));
}

TEST_F(Apply, NeedsFiles) {
  EXPECT_EQ(apply({}).status, 2);
  const auto missing = apply({"-f", (folder_ / "missing.yaml").string()});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.errors, HasSubstr("missing.yaml cannot be read: No such file"));
  EXPECT_THAT(apply({"-f", "https://shop.test/a.yaml"}).errors,
              HasSubstr("https://shop.test/a.yaml is not a file: pass its content, as in "
                        "curl -fsSL https://shop.test/a.yaml | lookout apply -f -\n"));
  const auto empty = apply({"-f", folder_.file("empty.yaml", "# nothing\n")});
  EXPECT_EQ(empty.status, 1);
  EXPECT_THAT(empty.errors, HasSubstr("no object"));
}

}  // namespace
}  // namespace lookout::cmd
