#include "rest/server_address.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/rest/environment.h"

namespace lookout::rest::detail {
namespace {

TEST(NoProxyTest, MatchesLikeGo) {
  const struct {
    const char* list;
    const char* host;
    const char* port;
    bool matches;
  } cases[] = {
      {"", "a.test", "443", false},
      {"*", "a.test", "443", true},
      {"a.test", "a.test", "443", true},
      {"A.Test", "a.tesT", "443", true},
      {"a.test", "b.a.test", "443", true},
      {"a.test", "ba.test", "443", false},
      {".a.test", "b.a.test", "443", true},
      {".a.test", "a.test", "443", false},
      {"*.a.test", "b.a.test", "443", true},
      {"x, a.test ,y", "a.test", "443", true},
      {"a.test:443", "a.test", "443", true},
      {"a.test:8443", "a.test", "443", false},
      {"10.0.0.0/8", "10.1.2.3", "443", true},
      {"10.0.0.0/8", "11.1.2.3", "443", false},
      {"10.0.0.0/8", "a.test", "443", false},
      {"10.1.2.3", "10.1.2.3", "443", true},
      {"10.1.2.3:80", "10.1.2.3", "443", false},
      {"fd00::/8", "[fd00::1]", "443", true},
      {"fd00::/8", "[fe00::1]", "443", false},
      {"fd00::1", "[fd00:0::1]", "443", true},
      {"[fd00::1]:443", "[fd00::1]", "443", true},
      {"[fd00::1]:80", "[fd00::1]", "443", false},
      {"/,:,[,]:,*.", "a.test", "443", false},
  };
  for (const auto& c : cases)
    EXPECT_EQ(in_no_proxy(c.list, c.host, c.port), c.matches) << c.list << " " << c.host;
}

/// Removes the proxy variables of the environment.
class EnvironmentProxyTest : public testing::Test {
 protected:
  struct Proxied {
    const char* server;
    const char* proxy;
  };
  static void expect_proxies(std::initializer_list<Proxied> cases) {
    for (const auto& [server, proxy] : cases) EXPECT_EQ(environment_proxy(server), proxy) << server;
  }

 private:
  const test::ScopedEnv http_{"http_proxy", nullptr}, upper_http_{"HTTP_PROXY", nullptr},
      https_{"https_proxy", nullptr}, upper_https_{"HTTPS_PROXY", nullptr},
      no_{"no_proxy", nullptr}, upper_no_{"NO_PROXY", nullptr};
};

TEST_F(EnvironmentProxyTest, DependsOnTheScheme) {
  EXPECT_EQ(environment_proxy("https://kube.test"), "");
  const test::ScopedEnv plain("http_proxy", "http://plain.test:3128");
  const test::ScopedEnv secure("https_proxy", "socks5://bastion.test:1080");
  expect_proxies({{"http://kube.test:8080", "http://plain.test:3128"},
                  {"https://kube.test:6443/prefix", "socks5://bastion.test:1080"}});
  const test::ScopedEnv upper("HTTPS_PROXY", "upper.test:3128");
  EXPECT_EQ(environment_proxy("https://kube.test"), "http://upper.test:3128");
}

TEST_F(EnvironmentProxyTest, ExcludesLoopbackAndNoProxy) {
  const test::ScopedEnv proxy("https_proxy", "http://proxy.test");
  const test::ScopedEnv lower("no_proxy", "kube.test");
  expect_proxies({{"https://kube.test:6443/prefix", ""},
                  {"https://other.test", "http://proxy.test"},
                  {"https://[::1]:6443", ""}});
  const test::ScopedEnv upper("NO_PROXY", "other.test");
  EXPECT_EQ(environment_proxy("https://other.test"), "");
}

TEST_F(EnvironmentProxyTest, IgnoresOtherVariables) {
  const test::ScopedEnv all("ALL_PROXY", "http://127.0.0.1:9");
  EXPECT_EQ(environment_proxy("https://kube.test"), "");
}

TEST(RenamedServerTest, PutsIpv6IntoBrackets) {
  const RenamedServer name = rename_server("https://10.0.0.1/p", "kube.test");
  EXPECT_EQ(name.url, "https://kube.test:443/p");
  EXPECT_EQ(name.route, "kube.test:443:10.0.0.1:443");
  EXPECT_EQ(name.host, "10.0.0.1:443");
  const RenamedServer ip = rename_server("https://[fd00::1]:6443", "fd00::2");
  EXPECT_EQ(ip.url, "https://[fd00::2]:6443");
  EXPECT_EQ(ip.route, "[fd00::2]:6443:[fd00::1]:6443");
  EXPECT_EQ(ip.host, "[fd00::1]:6443");
}

}  // namespace
}  // namespace lookout::rest::detail
