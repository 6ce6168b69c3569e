// Requests through an HTTP proxy, and past it.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/rest/client_testing.h"
#include "tests/rest/environment.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Pod;
using rest::Client;

/// Answers absolute URIs itself, and connects every CONNECT to one server.
class ProxyTest : public testing::Test {
 protected:
  void serve(HttpConnection& c) {
    while (const auto request = c.read_request()) {
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(*request);
      }
      if (request->method != "CONNECT") {
        if (!c.respond({.body = "by proxy", .content_type = "text/plain"})) return;
      } else if (refusal_ != 0) {
        if (!c.respond({.status = refusal_})) return;
      } else {
        c.write("HTTP/1.1 200 Connection established\r\n\r\n");
        return c.tunnel_to(server_.port());
      }
    }
  }

  std::vector<HttpRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<std::string> targets() {
    std::vector<std::string> out;
    for (const auto& request : requests()) out.push_back(request.method + " " + request.target);
    return out;
  }

  rest::Config through_proxy(const std::string& server) const {
    rest::Config config;
    config.server = server;
    config.ca_data = server.starts_with("https") ? authority_.certificate() : "";
    config.proxy_url = proxy_.url();
    return config;
  }
  /// The response shows the path that the request took.
  static std::string ask(const rest::Config& config) { return Client{config}.get_raw("/readyz"); }

  std::atomic<int> refusal_{0};
  std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::vector<HttpRequest> tunnelled_;
  const CertificateAuthority authority_;
  HttpServer server_{
      HttpServer::answering([this](const HttpRequest& request) -> HttpResponse {
        const std::lock_guard lock(mutex_);
        tunnelled_.push_back(request);
        return {.body = "by tunnel", .content_type = "text/plain"};
      }),
      tls_of(authority_.issue({.common_name = "kube",
                               .names = {"DNS:kube.test", "IP:127.0.0.1", "DNS:kube.localhost"}}))};
  HttpServer plain_{HttpServer::answering([](const HttpRequest&) -> HttpResponse {
    return {.body = "direct", .content_type = "text/plain"};
  })};
  HttpServer proxy_{[this](HttpConnection& c) { serve(c); }};

 private:
  // Removes proxy variables of the environment.
  const ScopedEnv http_{"http_proxy", nullptr}, https_{"https_proxy", nullptr},
      upper_https_{"HTTPS_PROXY", nullptr}, all_{"all_proxy", nullptr},
      upper_all_{"ALL_PROXY", nullptr}, no_{"no_proxy", nullptr}, upper_no_{"NO_PROXY", nullptr};
};

TEST_F(ProxyTest, PlainRequestsUseAbsoluteUris) {
  EXPECT_EQ(ask(through_proxy("http://kube.test:8080/prefix")), "by proxy");
  EXPECT_THAT(targets(), ElementsAre("GET http://kube.test:8080/prefix/readyz"));
}

TEST_F(ProxyTest, TlsUsesATunnelToTheServer) {
  rest::Config config = through_proxy("https://kube.test:6443");
  config.bearer_token = "secret";
  const Client client{config};
  EXPECT_EQ(client.get_raw("/readyz"), "by tunnel");
  EXPECT_EQ(client.get_raw("/version"), "by tunnel");
  EXPECT_THAT(targets(), ElementsAre("CONNECT kube.test:6443")) << "or the tunnel was not kept";
  EXPECT_THAT(requests()[0].all("Authorization"), ElementsAre())
      << "the proxy must not see credentials";
  EXPECT_EQ(tunnelled_[0].target, "/readyz");
  EXPECT_EQ(tunnelled_[0].header("Authorization"), "Bearer secret");
  EXPECT_THAT(tunnelled_[0].all("Proxy-Authorization"), ElementsAre());
}

TEST_F(ProxyTest, TheTunnelLeadsToTheAddressNotTheExpectedName) {
  rest::Config config = through_proxy("https://10.1.2.3:6443");
  config.server_name = "kube.test";
  EXPECT_EQ(ask(config), "by tunnel");
  EXPECT_THAT(targets(), ElementsAre("CONNECT 10.1.2.3:6443"));
}

TEST_F(ProxyTest, SendsProxyCredentials) {
  rest::Config config = through_proxy("https://kube.test:6443");
  config.proxy_url = "http://user:pa%3Ass@127.0.0.1:" + std::to_string(proxy_.port());
  EXPECT_EQ(ask(config), "by tunnel");
  EXPECT_EQ(requests()[0].header("Proxy-Authorization"), "Basic dXNlcjpwYTpzcw==");
  EXPECT_THAT(tunnelled_[0].all("Proxy-Authorization"), ElementsAre());
}

TEST_F(ProxyTest, ARejectionOfTheProxyIsAnErrorAtOnce) {
  for (const int status : {403, 407, 502}) {
    refusal_ = status;
    const auto before = requests().size();
    const auto error =
        thrown<rest::TransportError>([&] { ask(through_proxy("https://kube.test:6443")); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), Kind::kUnreachable);
    EXPECT_THAT(error->what(), HasSubstr(std::to_string(status)));
    EXPECT_EQ(requests().size(), before + 1) << "it was tried again";
  }
}

TEST_F(ProxyTest, AnUnreachableProxyIsNamed) {
  rest::Config config = through_proxy("http://kube.test");
  const int port = free_port();
  config.proxy_url = "http://127.0.0.1:" + std::to_string(port);
  const auto error = thrown<rest::TransportError>([&] { ask(config); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kRefused);
  EXPECT_THAT(error->what(), HasSubstr(std::to_string(port)));
}

TEST_F(ProxyTest, TheServersCertificateIsVerified) {
  EXPECT_EQ(kind_thrown([&] { ask(through_proxy("https://other.test:6443")); }), Kind::kTls);
}

TEST_F(ProxyTest, TheEnvironmentNamesProxiesForEachScheme) {
  rest::Config config = through_proxy("http://kube.test:8080");
  config.proxy_url = "";
  rest::Config secure = through_proxy("https://kube.test:6443");
  secure.proxy_url = "";
  {
    const ScopedEnv env("http_proxy", proxy_.url());
    EXPECT_EQ(ask(config), "by proxy");
  }
  const ScopedEnv env("https_proxy", proxy_.url());
  EXPECT_EQ(ask(secure), "by tunnel");
  EXPECT_THAT(targets(), ElementsAre("GET http://kube.test:8080/readyz", "CONNECT kube.test:6443"));
}

// "kube.localhost" resolves to 127.0.0.1 everywhere, but is not recognised as loopback.
TEST_F(ProxyTest, NoProxyAppliesToProxiesOfTheEnvironment) {
  rest::Config config = through_proxy("http://kube.localhost:" + std::to_string(plain_.port()));
  const ScopedEnv no_proxy("no_proxy", "example.test,.localhost");
  EXPECT_EQ(ask(config), "by proxy");
  config.proxy_url = "";
  const ScopedEnv env("http_proxy", proxy_.url());
  EXPECT_EQ(ask(config), "direct");
}

// The name of the certificate is not the address of the server.
TEST_F(ProxyTest, NoProxyMatchesTheAddressNotTheExpectedName) {
  rest::Config config = through_proxy("https://10.1.2.3:6443");
  config.proxy_url = "";
  config.server_name = "kube.test";
  const ScopedEnv env("https_proxy", proxy_.url());
  const ScopedEnv no_proxy("no_proxy", "kube.test");
  EXPECT_EQ(ask(config), "by tunnel");
  EXPECT_THAT(targets(), ElementsAre("CONNECT 10.1.2.3:6443"));
}

// As in client-go: such a cluster is on this machine, out of reach of the proxy.
TEST_F(ProxyTest, LoopbackBypassesTheProxyOfTheEnvironment) {
  const ScopedEnv env("http_proxy", proxy_.url());
  for (const char* host : {"127.0.0.1", "localhost"}) {
    rest::Config config;
    config.server = std::string("http://") + host + ":" + std::to_string(plain_.port());
    EXPECT_EQ(ask(config), "direct") << host;
    config.proxy_url = proxy_.url();
    EXPECT_EQ(ask(config), "by proxy") << host;
  }
}

TEST_F(ProxyTest, WatchesGoThroughTunnels) {
  HttpServer server(
      [](HttpConnection& c) {
        c.read_request();
        c.begin_chunks();
        c.chunk(event_json("ADDED", "web"));
        c.wait_for_close();
      },
      tls_of(authority_.issue_local()));
  HttpServer proxy([&](HttpConnection& c) {
    c.read_request();
    c.write("HTTP/1.1 200 Connection established\r\n\r\n");
    c.tunnel_to(server.port());
  });
  rest::Config config = config_for(server, &authority_);
  config.proxy_url = proxy.url();
  const Client client{config};
  auto watch = client.resource<Pod>("shop").dynamic().watch();
  const auto event = watch.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object.name(), "web");
  proxy.reset_all();
  EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kBroken);
}

}  // namespace
}  // namespace lookout::test
