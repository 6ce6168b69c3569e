// The example workqueue, run as a program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "tests/cmd/program.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/http_server.h"

namespace lookout {
namespace {

using k8s::core::v1::Pod;
using test::eventually;
using test::HttpConnection;
using test::HttpServer;
using testing::HasSubstr;
using namespace std::chrono_literals;

class WorkqueueExampleTest : public testing::Test {
 protected:
  void start(const std::string& url) {
    const std::string kubeconfig = (environment_.home() / "config").string();
    test::write_file(kubeconfig,
                     "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                     "clusters: [{name: c, cluster: {server: \"" +
                         url + "\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\n");
    environment_.set("KUBECONFIG", kubeconfig);
    program_.emplace(environment_.start(LOOKOUT_EXAMPLE_WORKQUEUE, {}, log()));
  }
  std::filesystem::path log() const { return environment_.home() / "log"; }
  /// Stops the program; returns its output.
  std::string end() {
    const auto begin = std::chrono::steady_clock::now();
    program_->signal(SIGTERM);
    EXPECT_EQ(program_->wait(), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s) << "it has waited for a request";
    return test::read_file(log());
  }

  test::ProgramEnvironment environment_;
  std::optional<test::Process> program_;
};

TEST_F(WorkqueueExampleTest, ProcessesEveryPodInOrder) {
  apiserver::Server server;
  rest::Config config;
  config.server = server.url();
  const rest::Client client{config};
  const auto pods = client.resource<Pod>("default");
  const auto create = [&](const std::string& name, const std::string& annotations) {
    pods.dynamic().create(api::Object::parse(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"(","annotations":{)" +
        annotations + R"(}},"spec":{"containers":[{"name":"c","image":"i"}]}})"));
  };
  const auto greeted = [&](const std::string& name) {
    return lookout::test::held(pods.get(name)).metadata().annotations()["example.com/greeted"] ==
           "yes";
  };
  create("early", R"("example.com/greet":"please")");
  create("quiet", "");
  start(server.url());
  EXPECT_TRUE(eventually([&] { return greeted("early"); }));
  create("late", R"("example.com/greet":"please")");
  EXPECT_TRUE(eventually([&] { return greeted("late"); }));
  EXPECT_FALSE(greeted("quiet"));
  const std::string said = end();
  EXPECT_THAT(said, HasSubstr("Sync/Add/Update for pod quiet\n"));
  EXPECT_THAT(said, HasSubstr("Sync/Add/Update for pod late\n"));
  EXPECT_THAT(said, HasSubstr("Pod default/mypod does not exist anymore\n"));
}

/// A server with one pod that the program greets; the test handles its patches.
class PatchedPod {
 public:
  using Patch = std::function<void(HttpConnection&, int number)>;
  explicit PatchedPod(Patch patch) : patch_(std::move(patch)) {}

  std::string url() const { return server_.url(); }
  int patches() const { return patches_; }
  static void respond(HttpConnection& connection, const api::StatusError& error) {
    connection.respond({.status = error.code(), .body = error.status().to_object().to_json()});
  }
  static std::string pod() {
    return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default",)"
           R"("resourceVersion":"5","annotations":{"example.com/greet":"please"}}})";
  }

 private:
  void serve(HttpConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->method == "PATCH") {
        patch_(connection, ++patches_);
      } else if (request->target.find("sendInitialEvents") != std::string::npos) {
        respond(connection, api::StatusError::bad_request("there are no streams here"));
      } else if (request->target.find("watch=") != std::string::npos) {
        connection.begin_chunks();
        connection.wait_for_close();
        return;
      } else {
        connection.respond({.body = R"({"apiVersion":"v1","kind":"PodList","metadata":)"
                                    R"({"resourceVersion":"7"},"items":[)" +
                                    pod() + "]}"});
      }
    }
  }

  const Patch patch_;
  std::atomic<int> patches_{0};
  HttpServer server_{[this](HttpConnection& connection) { serve(connection); }};
};

TEST_F(WorkqueueExampleTest, RetriesFailures) {
  constexpr int kFailures = 7;  // more than the retries of many controllers
  PatchedPod server([](HttpConnection& connection, int number) {
    if (number <= kFailures) {
      PatchedPod::respond(connection, api::StatusError::conflict("", "pods", "web", "not yet"));
    } else {
      connection.respond({.body = PatchedPod::pod()});
    }
  });
  start(server.url());
  EXPECT_TRUE(eventually([&] { return server.patches() == kFailures + 1; }));
  EXPECT_THAT(end(), HasSubstr("will retry"));
  EXPECT_EQ(server.patches(), kFailures + 1) << "and no more often";
}

TEST_F(WorkqueueExampleTest, EndsWhileTheServerHangs) {
  PatchedPod server([](HttpConnection& connection, int) { connection.wait_for_close(); });
  start(server.url());
  EXPECT_TRUE(eventually([&] { return server.patches() == 1; }));
  end();
  EXPECT_EQ(server.patches(), 1);
}

}  // namespace
}  // namespace lookout
