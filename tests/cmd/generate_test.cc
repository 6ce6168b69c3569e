// lookout generate.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include "tests/cmd/cmd_fixture.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/files.h"

namespace lookout::cmd {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kDefinition =
    "apiVersion: apiextensions.k8s.io/v1\n"
    "kind: CustomResourceDefinition\n"
    "metadata: {name: widgets.example.com}\n"
    "spec:\n"
    "  group: example.com\n"
    "  scope: Namespaced\n"
    "  names: {kind: Widget, plural: widgets}\n"
    "  versions:\n"
    "  - name: v1\n"
    "    served: true\n"
    "    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: "
    "{size: {type: integer}}}}}}\n";

class Generate : public CommandTest {
 protected:
  Generate() : CommandTest("generate") {}

  test::TempDir folder_;
};

TEST_F(Generate, PrintsTheHeader) {
  const auto result = run({folder_.file("widget.yaml", kDefinition)});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("from widget.yaml. Do not edit."),
                                   HasSubstr("namespace example::v1 {"),
                                   HasSubstr("class Widget : public api::TypedObject {")));
}

TEST_F(Generate, WritesAFile) {
  const std::string header = (folder_ / "widget.h").string();
  const auto result =
      run({folder_.file("widget.yaml", kDefinition), "-o", header, "--namespace", "acme::apis"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "");
  std::ifstream in(header);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_THAT(text, HasSubstr("namespace acme::apis::v1 {"));
}

TEST_F(Generate, WritesToAPipeWithoutReplacingIt) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  auto header = std::async(std::launch::async, [&] { return test::read_file(pipe); });
  const auto result = run({folder_.file("widget.yaml", kDefinition), "-o", pipe.string()});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(test::get(header), HasSubstr("namespace example::v1 {"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(Generate, TheDefaultNamespaceIsUnusedByLookoutAndTheCLibrary) {
  for (const std::string group : {"time", "std", "rest"}) {
    std::string text = kDefinition;
    for (std::size_t at = 0; (at = text.find("example.com", at)) != std::string::npos;
         at += group.size() + 12)
      text.insert(at, group + ".");
    const auto result = run({folder_.file("widget.yaml", text)});
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("namespace " + group + "_::v1 {"));
  }
}

TEST_F(Generate, ReportsErrorsAndWritesNothing) {
  std::string text = kDefinition;
  text.replace(text.find("integer"), 7, "whole");
  const std::string header = (folder_ / "widget.h").string();
  const auto result = run({folder_.file("widget.yaml", text), "-o", header});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors,
              HasSubstr("widget.yaml:11: widgets.example.com v1: .spec.size: the unknown type"));
  EXPECT_FALSE(std::filesystem::exists(header));
  const auto none = run({(folder_ / "none.yaml").string()});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.errors, HasSubstr("none.yaml cannot be read: No such file or directory\n"));
  EXPECT_THAT(run({folder_.path().string()}).errors,
              HasSubstr(" cannot be read: Is a directory\n"));
  const std::string widget = folder_.file("widget.yaml", kDefinition);
  EXPECT_THAT(run({widget, "-o", (folder_ / "none/widget.h").string()}).errors,
              HasSubstr("none/widget.h cannot be written: No such file or directory\n"));
  EXPECT_EQ(run({}).status, 2);
}

TEST_F(Generate, KeepsItsInputAndWritesNoPartialFiles) {
  const std::string widget = folder_.file("widget.yaml", kDefinition);
  std::filesystem::create_symlink(widget, folder_ / "link.yaml");
  for (const std::string& output : {widget, (folder_ / "link.yaml").string()}) {
    const auto result = run({widget, "-o", output});
    EXPECT_EQ(result.status, 1) << output;
    EXPECT_THAT(result.errors, HasSubstr(" is read: it cannot be written, too\n"));
    EXPECT_EQ(test::read_file(widget), kDefinition);
  }
  std::filesystem::create_directory(folder_ / "folder");
  EXPECT_THAT(run({widget, "-o", (folder_ / "folder").string()}).errors,
              HasSubstr("folder cannot be written: Is a directory\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "folder.partial"));
}

// Like `get` and --help.
TEST_F(Generate, PrintsNoErrorAfterItsReaderHasClosed) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // The reader has closed the pipe when the program writes.
  const auto result = environment_.run(
      "sh", {"-c", R"(exec 3<>"$2" 4>"$2" 3<&-; "$0" generate "$1" >&4; echo "status $?")",
             test::lookout_program(), folder_.file("widget.yaml", kDefinition), pipe});
  EXPECT_EQ(result.errors, "");
  EXPECT_EQ(result.output, "status 0\n");
}

}  // namespace
}  // namespace lookout::cmd
