// Clients of other languages against `lookout serve`, with objects in memory and in etcd.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/cmd/program.h"
#include "tests/e2e/served_storage.h"
#include "tests/support/go_program.h"

namespace lookout {
namespace {

class ForeignClient : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    storage_.emplace(GetParam());
    serve_.emplace(environment_, storage_->flags({"--write-kubeconfig", kubeconfig()}));
  }
  std::string kubeconfig() const { return (dir_ / "config").string(); }
  static std::string script(const std::string& name) {
    return (std::filesystem::path(LOOKOUT_E2E_SCRIPTS) / name).string();
  }
  /// Runs a script, which prints "ok" at its end.
  void expect_ok(const std::string& program, const std::string& name) const {
    const auto result = environment_.run(program, {script(name), kubeconfig()});
    EXPECT_EQ(result.status, 0) << result.output << result.errors;
    EXPECT_EQ(result.output, "ok\n");
  }

  test::ProgramEnvironment environment_;
  test::TempDir dir_;
  std::optional<test::ServedStorage> storage_;
  std::optional<test::ServeProcess> serve_;
};

TEST_P(ForeignClient, Python) {
  std::string python;
  // The interpreter of Debian's packages first.
  for (const std::string& candidate :
       {std::string("/usr/bin/python3"), test::find_program("python3")}) {
    if (candidate.empty() || !std::filesystem::exists(candidate)) continue;
    if (environment_.run(candidate, {"-c", "import kubernetes"}).status != 0) continue;
    python = candidate;
    break;
  }
  if (python.empty())
    GTEST_SKIP() << "*** there is no Kubernetes client for Python: install python3-kubernetes ***";
  expect_ok(python, "python_client.py");
}

TEST_P(ForeignClient, GoApplies) {
  const std::string program = test::go_program("LOOKOUT_GO_APPLY", "go-interop-apply");
  if (access(program.c_str(), X_OK) != 0)
    GTEST_SKIP() << "*** optional: scripts/go-interop.sh builds client-go's apply ***";
  const auto result = environment_.run(program, {"-server", serve_->url()});
  EXPECT_EQ(result.status, 0) << result.output << result.errors;
  EXPECT_EQ(result.output, "ok\n");
}

TEST_P(ForeignClient, Node) {
  const char* module = std::getenv("LOOKOUT_NODE_CLIENT");
  if (module == nullptr) {
    GTEST_SKIP() << "*** optional: `npm install @kubernetes/client-node` in some folder, and name "
                    "it with LOOKOUT_NODE_CLIENT ***";
  }
  environment_.set("LOOKOUT_NODE_CLIENT", module);
  const std::string node = test::find_program("node");
  ASSERT_FALSE(node.empty());
  expect_ok(node, "node_client.mjs");
}

INSTANTIATE_TEST_SUITE_P(E2e, ForeignClient, testing::ValuesIn(test::ServedStorage::names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace lookout
