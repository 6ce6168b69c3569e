// The two example programs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "tests/cmd/program.h"
#include "tests/registry/cluster.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace registry::test;
using lookout::test::HttpConnection;
using lookout::test::HttpServer;

class RegistryExampleTest : public testing::TestWithParam<const char*> {
 protected:
  RegistryExampleTest() {
    const std::string kubeconfig = (environment_.home() / "config").string();
    lookout::test::write_file(kubeconfig,
                              fmt::format("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                                          "clusters: [{{name: c, cluster: {{server: \"{}\"}}}}]\n"
                                          "contexts: [{{name: c, context: {{cluster: c}}}}]\n",
                                          cluster_.server().url()));
    environment_.set("KUBECONFIG", kubeconfig);
    environment_.set("POD_NAMESPACE", "default");
  }

  static PodTemplate on_port(PodTemplate pod, int port) {
    pod.ip = "127.0.0.1";
    pod.ports = fmt::format(R"([{{"containerPort":{}}}])", port);
    return pod;
  }
  /// A pod that another program has announced.
  void create(const std::string& name, int port, const std::string& protocol = "http") {
    PodTemplate pod = on_port(kratos_pod("web", name), port);
    pod.annotations = {
        {"kratos-service-protocols", fmt::format(R"({{"{}":"{}"}})", port, protocol)}};
    cluster_.create_pod(name, pod);
  }
  std::string label(const std::string& pod) const {
    const auto object = cluster_.pods().get(pod);
    return std::string(object.labels()["kratos-service-app"].as_string());
  }
  lookout::test::ProgramResult call(int calls) const {
    return environment_.run(LOOKOUT_REGISTRY_CALLER, {"web", std::to_string(calls), GetParam()});
  }

  Cluster cluster_;
  lookout::test::ProgramEnvironment environment_;
};

INSTANTIATE_TEST_SUITE_P(, RegistryExampleTest, testing::Values("curl", "beast"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(RegistryExampleTest, ServesCallsAndLeaves) {
  const int port = lookout::test::free_port();
  cluster_.create_pod("web-1", on_port({}, port));
  environment_.set("POD_NAME", "web-1");
  const auto log = environment_.home() / "server.log";
  auto server = environment_.start(LOOKOUT_REGISTRY_SERVER, {"web", std::to_string(port)}, log);
  ASSERT_TRUE(eventually([&] { return label("web-1") == "web"; })) << lookout::test::read_file(log);

  const auto result = call(3);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "hello from web-1\nhello from web-1\nhello from web-1\n");

  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << lookout::test::read_file(log);
  EXPECT_EQ(label("web-1"), "");
}

TEST_P(RegistryExampleTest, NoCallFailsWhileAnInstanceResponds) {
  const HttpServer good(HttpServer::answering(
      [](const auto&) { return lookout::test::HttpResponse{.body = "here\n"}; }));
  // Like a stopped process: it accepts connections and does nothing else.
  const HttpServer hung([](HttpConnection& connection) { connection.wait_for_close(); });
  create("good", good.port());
  create("hung", hung.port());
  create("killed", lookout::test::free_port());

  constexpr int kCalls = 20;
  const auto result = call(kCalls);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(std::ranges::count(lookout::test::lines(result.output), "here"), kCalls);
  EXPECT_LE(hung.connections(), 4) << "it is left alone after three failures";
}

TEST_P(RegistryExampleTest, FindsTheInstanceWithHttp) {
  const HttpServer good(HttpServer::answering(
      [](const auto&) { return lookout::test::HttpResponse{.body = "here\n"}; }));
  for (int i = 0; i < 5; ++i) create("grpc-" + std::to_string(i), 9000, "grpc");
  create("web", good.port());
  EXPECT_EQ(call(1).output, "here\n");
}

TEST_P(RegistryExampleTest, ReportsWhenNoInstanceResponds) {
  create("killed", lookout::test::free_port());
  const auto result = call(1);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr("(default/killed)"));
  EXPECT_THAT(result.errors, HasSubstr("there is no other instance"));
}

}  // namespace
}  // namespace lookout::registry
