// The example http_failover, run as a program, with instances that do not answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cmd/program.h"
#include "tests/registry/cluster.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace registry::test;
using lookout::test::HttpConnection;
using lookout::test::HttpServer;

class HttpFailoverTest : public testing::Test {
 protected:
  HttpFailoverTest() {
    const std::string kubeconfig = (environment_.home() / "config").string();
    lookout::test::write_file(kubeconfig,
                              "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                              "clusters: [{name: c, cluster: {server: \"" +
                                  cluster_.server().url() +
                                  "\"}}]\n"
                                  "contexts: [{name: c, context: {cluster: c}}]\n");
    environment_.set("KUBECONFIG", kubeconfig);
  }

  void create(const std::string& name, int port, const std::string& protocol = "http") {
    PodTemplate pod = kratos_pod("web", name, "127.0.0.1");
    const std::string number = std::to_string(port);
    pod.annotations = {
        {"kratos-service-protocols", R"({")" + number + R"(":")" + protocol + R"("})"}};
    pod.ports = R"([{"containerPort":)" + number + "}]";
    cluster_.create_pod(name, pod);
  }
  lookout::test::ProgramResult run(int calls) const {
    return environment_.run(LOOKOUT_HTTP_FAILOVER, {"web", "/", std::to_string(calls)});
  }

  Cluster cluster_;
  lookout::test::ProgramEnvironment environment_;
};

TEST_F(HttpFailoverTest, NoCallFailsWhileOneInstanceAnswers) {
  const HttpServer good(HttpServer::answering(
      [](const auto&) { return lookout::test::HttpResponse{.body = "here"}; }));
  // As a process that is stopped: the connection comes about, and nothing else.
  const HttpServer hung([](HttpConnection& connection) { connection.wait_for_close(); });
  create("good", good.port());
  create("hung", hung.port());
  create("killed", lookout::test::free_port());

  constexpr int kCalls = 20;
  const auto result = run(kCalls);
  EXPECT_EQ(result.status, 0) << result.errors;
  const auto answers = lookout::test::lines(result.output);
  EXPECT_EQ(std::ranges::count(answers, "here"), kCalls);
  // (Of so many calls some began elsewhere.)
  EXPECT_THAT(result.errors, HasSubstr("(default/hung)"));
  EXPECT_THAT(result.errors, HasSubstr("(default/killed)"));
  EXPECT_LE(hung.connections(), kCalls) << "no call has asked it twice";
}

TEST_F(HttpFailoverTest, FindsTheOneThatSpeaksHttp) {
  const HttpServer good(HttpServer::answering(
      [](const auto&) { return lookout::test::HttpResponse{.body = "here"}; }));
  for (int i = 0; i < 5; ++i) create("grpc-" + std::to_string(i), 9000, "grpc");
  create("web", good.port());
  EXPECT_EQ(run(1).output, "here\n");
}

TEST_F(HttpFailoverTest, SaysWhenNobodyAnswers) {
  create("killed", lookout::test::free_port());
  const auto result = run(1);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr("(default/killed)"));
  EXPECT_THAT(result.errors, HasSubstr("no instance has answered, of 1 that were picked"));
}

}  // namespace
}  // namespace lookout::registry
