// lookout wait.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/cmd/cmd_fixture.h"
#include "tests/support/eventually.h"

namespace lookout::cmd {
namespace {

using testing::HasSubstr;

class WaitCommand : public CmdTest {
 protected:
  WaitCommand() {
    create("pods", "default", pod("web", R"("app":"web")"));
    create("pods", "default", pod("api", R"("app":"api")"));
  }
  test::ProgramResult wait(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "wait");
    return lookout(arguments);
  }
  /// Starts `lookout wait`.
  void start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", server_.url(), "wait"});
    std::filesystem::remove(dir_ / "log");
    process_.emplace(environment_.start(test::lookout_program(), arguments, dir_ / "log"));
  }
  /// Its output, when it has ended with this status.
  std::string ended(int status) {
    EXPECT_TRUE(test::eventually([&] { return !process_->running(); }));
    EXPECT_EQ(process_->wait(), status);
    return test::read_file(dir_ / "log");
  }
  void set_status(const std::string& name, const std::string& status) const {
    client_.resource(kPods, "default")
        .patch(name, rest::PatchType::kMerge, R"({"status":)" + status + "}", {}, "status");
  }
  void set_ready(const std::string& name, const std::string& status) const {
    set_status(name, R"({"conditions":[{"type":"Ready","status":")" + status + R"("}]})");
  }

  test::TempDir dir_;
  std::optional<test::Process> process_;
};

TEST_F(WaitCommand, WaitsForConditions) {
  set_ready("web", "True");
  EXPECT_EQ(wait({"pod/web", "--for=condition=Ready"}).output, "pod/web condition met\n");
  EXPECT_EQ(wait({"pod/web", "--for", "condition=ready=TRUE"}).output, "pod/web condition met\n");
  start({"pods", "--all", "--for=condition=Ready", "--timeout=1m"});
  set_ready("api", "True");
  EXPECT_EQ(ended(0), "pod/api condition met\npod/web condition met\n");
  EXPECT_EQ(wait({"pods", "-l", "app=web", "--for=condition=Ready=False", "--timeout=0"}).errors,
            "lookout: pod/web: timed out: Ready is True\n");
}

TEST_F(WaitCommand, FailsAtTheTimeout) {
  set_ready("web", "False");
  const auto result = wait({"pods", "api", "web", "--for=condition=Ready", "--timeout=100ms"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(result.errors,
            "lookout: pod/api: timed out: Ready is absent\n"
            "lookout: pod/web: timed out: Ready is False\n");
  EXPECT_EQ(wait({"pod/web", "--for=delete", "--timeout=0"}).errors,
            "lookout: pod/web: timed out: it still exists\n");
  EXPECT_EQ(wait({"pod/new", "--for=create", "--timeout=0"}).errors,
            "lookout: pod/new: timed out: it does not exist\n");
}

TEST_F(WaitCommand, ConditionsOfAnOlderGenerationDoNotCount) {
  create("deployments", "default",
         R"({"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},)"
         R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c",)"
         R"("image":"i"}]}}}})");
  const auto deployments =
      client_.resource(api::Resource(api::find_builtin_by_name("deployments")->type()), "default");
  const auto observe = [&](int generation) {
    deployments.patch("web", rest::PatchType::kMerge,
                      R"({"status":{"observedGeneration":)" + std::to_string(generation) +
                          R"(,"conditions":[{"type":"Available","status":"True"}]}})",
                      {}, "status");
  };
  observe(1);
  deployments.patch("web", rest::PatchType::kMerge, R"({"spec":{"replicas":3}})");
  const auto old = wait({"deploy/web", "--for=condition=Available", "--timeout=0"});
  EXPECT_EQ(old.errors,
            "lookout: deployment.apps/web: timed out: Available is True, of an older generation\n");
  observe(2);
  EXPECT_EQ(wait({"deploy/web", "--for=condition=Available"}).output,
            "deployment.apps/web condition met\n");
}

TEST_F(WaitCommand, WaitsForValues) {
  start({"pod", "web", "--for=jsonpath={.status.phase}=Running"});
  set_status("web", R"({"phase":"Running","message":"ok"})");
  EXPECT_EQ(ended(0), "pod/web condition met\n");
  for (const char* const goal : {"jsonpath=.status.message", "jsonpath={.status.phase}='Running'",
                                 "jsonpath={.spec.containers[?(@.name==\"main\")].image}=i:1",
                                 "jsonpath=.spec.containers[?(@.name==\"main\")].image=i:1",
                                 "jsonpath={.spec.terminationGracePeriodSeconds}=0"}) {
    const auto result = wait({"pod", "web", "--for", goal, "--timeout=0"});
    EXPECT_EQ(result.status, 0) << goal << result.errors;
  }
  EXPECT_EQ(wait({"pod", "web", "--for=jsonpath=.status.phase=Failed", "--timeout=0"}).errors,
            "lookout: pod/web: timed out: .status.phase is Running\n");
  EXPECT_EQ(wait({"pod", "web", "--for=jsonpath=.spec=x", "--timeout=0"}).errors,
            "lookout: .spec is not a single value\n");
}

TEST_F(WaitCommand, WaitsForDeletionAndCreation) {
  EXPECT_EQ(wait({"pod/nobody", "--for=delete"}).status, 0);
  EXPECT_EQ(wait({"pods", "-l", "app=none", "--for=delete"}).status, 0);
  start({"pods", "web", "--for=delete"});
  client_.resource(kPods, "default").remove("web");
  EXPECT_THAT(ended(0), testing::AnyOf("pod/web condition met\n", ""));
  start({"pods", "new", "--for=create"});
  create("pods", "default", pod("new", ""));
  EXPECT_EQ(ended(0), "pod/new condition met\n");
}

TEST_F(WaitCommand, WaitsForTheObjectsOfFiles) {
  const std::string file = dir_.file("a.yaml",
                                     "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n---\n"
                                     "apiVersion: v1\nkind: Pod\nmetadata: {name: nobody}\n");
  const auto result = wait({"-f", file, "--for=create", "--timeout=0"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "pod/web condition met\n");
  EXPECT_EQ(result.errors, "lookout: " + file + ":5: pod/nobody: timed out: it does not exist\n");
}

TEST_F(WaitCommand, ReportsMissingObjects) {
  const auto missing = wait({"pod/nobody", "pod/web", "--for=jsonpath=.kind=Pod"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.output, "pod/web condition met\n");
  EXPECT_EQ(missing.errors, "lookout: pods \"nobody\" not found\n");
  const auto none = wait({"pods", "-l", "app=none", "--for=condition=Ready"});
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.errors, "lookout: no object matches\n");
  EXPECT_THAT(wait({"pods", "-l", "app=none", "--for=create"}).errors,
              HasSubstr("no object matches: name the object"));
}

}  // namespace
}  // namespace lookout::cmd
