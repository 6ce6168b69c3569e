#include "lookout/rest/config.h"

#include <gtest/gtest.h>

#include "lookout/rest/kubeconfig.h"
#include "lookout/version.h"
#include "tests/rest/environment.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::rest {
namespace {

using testing::Pair;
using testing::ThrowsMessage;

TEST(ConfigTest, UserAgentNamesProgramVersionSystemAndMachine) {
  EXPECT_THAT(Config{}.user_agent, StartsWith("rest_config_test/" + std::string(kVersion) + " ("));
  EXPECT_THAT(Config{}.user_agent, ::testing::ContainsRegex(R"( \([a-z]+/[a-z0-9]+\) lookout$)"));
}

TEST(ConfigTest, VersionEqualsItsComponents) {
  EXPECT_EQ(kVersion, std::to_string(kVersionMajor) + "." + std::to_string(kVersionMinor) + "." +
                          std::to_string(kVersionPatch));
}

struct ServerCase {
  std::string name;
  Config config;
  std::string server;  // empty: rejected
};

class ServerTest : public ::testing::TestWithParam<ServerCase> {};

// The results of client-go's DefaultServerURL for the same hosts.
TEST_P(ServerTest, IsNormalized) {
  const auto& [name, config, server] = GetParam();
  if (server.empty()) {
    EXPECT_THROW(config.normalized(), ConfigError);
  } else {
    EXPECT_EQ(config.normalized().server, server);
    EXPECT_EQ(config.normalized().normalized(), config.normalized());
    EXPECT_EQ(config.uses_tls(), server.starts_with("https://"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Servers, ServerTest,
    ::testing::Values(
        ServerCase{"Url", {.server = "https://host:6443"}, "https://host:6443"},
        ServerCase{"PlainHttp", {.server = "http://host"}, "http://host"},
        ServerCase{"UpperCaseScheme", {.server = "HTTPS://host"}, "https://host"},
        ServerCase{"TrailingSlash", {.server = "https://host:6443/"}, "https://host:6443"},
        ServerCase{
            "Prefix", {.server = "https://host/k8s/clusters/c-1"}, "https://host/k8s/clusters/c-1"},
        ServerCase{"PrefixWithSlash", {.server = "https://host/a//"}, "https://host/a"},
        ServerCase{"QueryAndFragment", {.server = "https://host/a?b=c#d"}, "https://host/a"},
        ServerCase{"HostPort", {.server = "host:8080"}, "http://host:8080"},
        ServerCase{"Host", {.server = "localhost"}, "http://localhost"},
        ServerCase{"HostWithCaFile", {.server = "host", .ca_file = "/ca"}, "https://host"},
        ServerCase{"HostWithCaData", {.server = "host", .ca_data = "pem"}, "https://host"},
        ServerCase{"HostWithCertificate",
                   {.server = "host", .client_cert_file = "/c", .client_key_file = "/k"},
                   "https://host"},
        ServerCase{"HostInsecure", {.server = "host:1", .insecure = true}, "https://host:1"},
        ServerCase{"Ipv6", {.server = "https://[2001:db8::1]:6443"}, "https://[2001:db8::1]:6443"},
        ServerCase{"Empty", {}, ""}, ServerCase{"OnlyScheme", {.server = "https://"}, ""},
        ServerCase{"HostWithPath", {.server = "host/path"}, ""},
        ServerCase{"OtherScheme", {.server = "ftp://host"}, ""},
        ServerCase{"Space", {.server = "https://ho st"}, ""},
        ServerCase{"LineBreak", {.server = "https://host\r\nX: y"}, ""},
        ServerCase{"Port", {.server = "https://host:99999"}, ""},
        ServerCase{"Nul", {.server = std::string("https://host\0.evil", 18)}, ""},
        ServerCase{"Password", {.server = "https://me:secret@host"}, ""}),
    [](const auto& test) { return test.param.name; });

TEST(ConfigTest, AnErrorOmitsThePasswordOfAUrl) {
  for (const char* server : {"https://me:s3cret@host", "ftp://me:s3cret@host",
                             "https://me:s3cret@host:99999", "me:s3cret@host/path"}) {
    EXPECT_THAT([&] { (void)Config{.server = server}.normalized(); },
                ThrowsMessage<ConfigError>(Not(HasSubstr("s3cret"))))
        << server;
  }
  const Config config{.server = "https://host", .proxy_url = "ftp://me:s3cret@proxy"};
  EXPECT_THAT([&] { (void)config.normalized(); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("proxy_url"), Not(HasSubstr("s3cret")))));
}

struct ConflictCase {
  std::string name;
  Config config;
  std::string message;
};

class ConflictTest : public ::testing::TestWithParam<ConflictCase> {};

TEST_P(ConflictTest, IsRejected) {
  Config config = GetParam().config;
  config.server = "https://host";
  EXPECT_THAT(
      [&] { (void)config.normalized(); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr(GetParam().message), Not(HasSubstr("s3cret")))));
}

INSTANTIATE_TEST_SUITE_P(
    Conflicts, ConflictTest,
    ::testing::Values(
        ConflictCase{"TokenAndPassword",
                     {.bearer_token = "s3cret", .username = "me", .password = "s3cret"},
                     "a token and a username or password"},
        ConflictCase{"TokenFileAndUser", {.token_file = "/t", .username = "me"}, "a token and a"},
        ConflictCase{"PasswordAlone", {.password = "s3cret"}, "no username"},
        ConflictCase{"ColonInUser", {.username = "a:b"}, "username"},
        ConflictCase{"CaDataAndInsecure", {.ca_data = "pem", .insecure = true}, "insecure"},
        ConflictCase{"CaFileAndInsecure", {.ca_file = "/ca", .insecure = true}, "insecure"},
        ConflictCase{"CertificateWithoutKey", {.client_cert_data = "pem"}, "no key"},
        ConflictCase{"KeyWithoutCertificate", {.client_key_file = "/k"}, "no certificate"},
        ConflictCase{"GroupsWithoutUser", {.as = {.groups = {"g"}}}, "no user"},
        ConflictCase{"UidWithoutUser", {.as = {.uid = "1"}}, "no user"},
        ConflictCase{"ExtraWithoutUser", {.as = {.extra = {{"a", {"b"}}}}}, "no user"},
        ConflictCase{"LineBreakInToken", {.bearer_token = "s3cret\r\nX: y"}, "bearer_token"},
        ConflictCase{"LineBreakInUser", {.as = {.user = "a\nb"}}, "user to act as"},
        ConflictCase{"LineBreakInGroup", {.as = {.user = "a", .groups = {"\n"}}}, "group"},
        ConflictCase{
            "LineBreakInExtra", {.as = {.user = "a", .extra = {{"scopes", {"b\n"}}}}}, "scopes"},
        ConflictCase{
            "SpaceBehindUser", {.as = {.user = "jane: "}}, "user to act as begins or ends"},
        ConflictCase{"SpaceBeforeUid", {.as = {.user = "a", .uid = " 1"}}, "uid to act as begins"},
        ConflictCase{"SpaceBehindGroup", {.as = {.user = "a", .groups = {"g "}}}, "group"},
        ConflictCase{"SpaceBehindExtra",
                     {.as = {.user = "a", .extra = {{"scopes", {"b "}}}}},
                     "\"scopes\" to act with begins or ends"},
        ConflictCase{"NegativeRate", {.qps = -1}, "qps"},
        ConflictCase{"NoBurst", {.qps = 1, .burst = 0}, "burst"},
        ConflictCase{"LineBreakInUserAgent", {.user_agent = "a\nb"}, "user_agent"},
        ConflictCase{"NulInPath", {.ca_file = std::string("/a\0b", 4)}, "ca_file"},
        ConflictCase{"ProxyWithoutScheme", {.proxy_url = "proxy:3128"}, "proxy_url"},
        ConflictCase{"ProxyOfAnotherKind", {.proxy_url = "ftp://proxy"}, "proxy_url"},
        ConflictCase{"ProxyThatIsNoUrl", {.proxy_url = "http://a b"}, "proxy_url"},
        ConflictCase{"NegativeTimeout", {.timeout = std::chrono::seconds(-1)}, "timeout"},
        ConflictCase{"Namespace", {.default_namespace = "../nodes"}, "default_namespace"},
        ConflictCase{"PluginWithoutCommand", {.exec = ExecConfig{}}, "command"},
        ConflictCase{"PluginOfOldVersion",
                     {.exec = ExecConfig{.command = "x",
                                         .api_version = "client.authentication.k8s.io/v1alpha1"}},
                     "apiVersion"},
        ConflictCase{"PluginWithoutMode",
                     {.exec = ExecConfig{.command = "x", .interactive_mode = ""}},
                     "interactiveMode"},
        ConflictCase{"PluginEnvironment",
                     {.exec = ExecConfig{.command = "x", .env = {{.name = "", .value = "s3cret"}}}},
                     "env"}),
    [](const auto& test) { return test.param.name; });

TEST(ConfigTest, AcceptsValidCombinations) {
  const Config config{.server = "https://host",
                      .ca_data = "pem",
                      .ca_file = "/unused",
                      .client_cert_data = "pem",
                      .client_key_file = "/key",
                      .bearer_token = "token",
                      .token_file = "/token",
                      .exec = ExecConfig{.command = "plugin"},
                      .as = {.user = "jane", .uid = "7", .groups = {"dev"}},
                      .proxy_url = "socks5://me:secret@proxy:1080"};
  EXPECT_EQ(config.normalized(), config);
}

TEST(ConfigTest, TheSchemeOfAProxyMayBeInUpperCase) {
  const Config config{.server = "https://host", .proxy_url = "HTTP://proxy:3128"};
  EXPECT_EQ(config.normalized().proxy_url, config.proxy_url);
}

TEST(ConfigTest, TimesOfTheKeepAliveMayBeUnlimited) {
  constexpr auto kNever = std::chrono::milliseconds::max();
  const Config config{
      .server = "https://host",
      .keepalive = {.probe_after = kNever, .probe_timeout = kNever, .stream_silence = kNever}};
  const rest::KeepAlive used = config.normalized().keepalive;
  const auto now = std::chrono::steady_clock::now();
  EXPECT_GT(now + used.probe_after + used.probe_timeout, now);
  EXPECT_GT(now + used.stream_silence, now);
}

TEST(ConfigTest, SpaceAroundTheTokenIsRemoved) {
  EXPECT_EQ((Config{.server = "https://host", .bearer_token = " abc\n"}.normalized().bearer_token),
            "abc");
}

TEST(ConfigTest, CaIsTheTextOrElseTheFile) {
  const test::TempDir dir;
  test::write_file(dir / "ca.crt", "from file");
  Config config{.ca_file = (dir / "ca.crt").string()};
  EXPECT_EQ(config.ca(), "from file");
  config.ca_data = "from text";
  EXPECT_EQ(config.ca(), "from text");
  config.ca_data.clear();
  config.ca_file = (dir / "none").string();
  EXPECT_THAT([&] { (void)config.ca(); }, ThrowsMessage<ConfigError>(HasSubstr(config.ca_file)));
  EXPECT_EQ(Config{}.ca(), "");
}

// Opening a pipe would block.
TEST(ConfigTest, CaMustBeARegularFile) {
  const test::TempDir dir;
  const std::string pipe = (dir / "pipe").string();
  ASSERT_EQ(::system(("mkfifo " + pipe).c_str()), 0);
  EXPECT_THAT([&] { (void)Config{.ca_file = pipe}.ca(); },
              ThrowsMessage<ConfigError>(HasSubstr("not a regular file")));
}

TEST(ImpersonationTest, HasTheHeadersOfClientGo) {
  const Impersonation as{.user = "jane",
                         .uid = "42",
                         .groups = {"dev", "ops"},
                         .extra = {{"acme.com/project", {"a", "b"}}, {"50% ü", {"c"}}}};
  EXPECT_THAT(as.headers(),
              ElementsAre(Pair("Impersonate-User", "jane"), Pair("Impersonate-Uid", "42"),
                          Pair("Impersonate-Group", "dev"), Pair("Impersonate-Group", "ops"),
                          Pair("Impersonate-Extra-50%25%20%C3%BC", "c"),
                          Pair("Impersonate-Extra-acme.com%2Fproject", "a"),
                          Pair("Impersonate-Extra-acme.com%2Fproject", "b")));
  EXPECT_THAT(Impersonation{}.headers(), IsEmpty());
}

/// A pod: the environment and the files that the kubelet gives it.
class InClusterTest : public ::testing::Test {
 protected:
  InClusterTest() {
    test::write_file(dir_ / "token", "s3cret");
    test::write_file(dir_ / "ca.crt", "pem");
    test::write_file(dir_ / "namespace", "shop\n");
  }

  std::string path(std::string_view name) const { return (dir_ / name).string(); }
  std::string dir() const { return dir_.path().string(); }

  const test::TempDir dir_;
  const test::ScopedEnv host_{"KUBERNETES_SERVICE_HOST", "10.0.0.1"};
  const test::ScopedEnv port_{"KUBERNETES_SERVICE_PORT", "443"};
  const test::ScopedEnv namespace_{"POD_NAMESPACE", nullptr};
  const test::ScopedEnv kubeconfig_{"KUBECONFIG", nullptr};
  const test::ScopedEnv home_{"HOME", path("home")};
};

TEST_F(InClusterTest, UsesTheServiceAccount) {
  const Config config = Config::in_cluster(dir());
  EXPECT_EQ(config.server, "https://10.0.0.1:443");
  EXPECT_EQ(config.token_file, path("token"));
  EXPECT_EQ(config.ca_file, path("ca.crt"));
  EXPECT_EQ(config.default_namespace, "shop");
}

TEST_F(InClusterTest, BracketsIpv6) {
  const test::ScopedEnv host("KUBERNETES_SERVICE_HOST", "fd00::1");
  EXPECT_EQ(Config::in_cluster(dir()).server, "https://[fd00::1]:443");
}

TEST_F(InClusterTest, PodNamespaceOverridesTheFile) {
  const test::ScopedEnv ns("POD_NAMESPACE", "web");
  EXPECT_EQ(Config::in_cluster(dir()).default_namespace, "web");
}

TEST_F(InClusterTest, WithoutNamespaceItIsDefault) {
  std::filesystem::remove(dir_ / "namespace");
  EXPECT_EQ(Config::in_cluster(dir()).default_namespace, "default");
}

TEST_F(InClusterTest, WithoutCaTheSystemIsTrusted) {
  std::filesystem::remove(dir_ / "ca.crt");
  EXPECT_EQ(Config::in_cluster(dir()).ca_file, "");
}

TEST_F(InClusterTest, NamesTheMissingParts) {
  {
    const test::ScopedEnv host("KUBERNETES_SERVICE_HOST", nullptr);
    EXPECT_THAT([&] { Config::in_cluster(dir()); },
                ThrowsMessage<ConfigError>(HasSubstr("$KUBERNETES_SERVICE_HOST is not set")));
  }
  {
    const test::ScopedEnv port("KUBERNETES_SERVICE_PORT", "");
    EXPECT_THAT([&] { Config::in_cluster(dir()); },
                ThrowsMessage<ConfigError>(HasSubstr("$KUBERNETES_SERVICE_PORT is not set")));
  }
  test::write_file(dir_ / "token", "\n");
  EXPECT_THAT([&] { Config::in_cluster(dir()); },
              ThrowsMessage<ConfigError>(HasSubstr(path("token") + " is empty")));
  std::filesystem::remove(dir_ / "token");
  EXPECT_THAT([&] { Config::in_cluster(dir()); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot read " + path("token"))));
}

TEST_F(InClusterTest, LoadFallsBackToIt) {
  const Config config = Config::load({.service_account_dir = dir()});
  EXPECT_EQ(config.server, "https://10.0.0.1:443");
  EXPECT_EQ(config.default_namespace, "shop");
  EXPECT_EQ((Config::load({.ns = "other", .service_account_dir = dir()}).default_namespace),
            "other");
}

TEST_F(InClusterTest, LoadFallsBackToItWhenNoContextIsChosen) {
  test::write_file(dir_ / "home/.kube/config", "contexts: [{name: a, context: {cluster: b}}]");
  EXPECT_EQ(Config::load({.service_account_dir = dir()}).server, "https://10.0.0.1:443");
}

TEST_F(InClusterTest, LoadPrefersTheKubeconfig) {
  write_kubeconfig(path("home/.kube/config"), {.server = "https://elsewhere"});
  EXPECT_EQ(Config::load({.service_account_dir = dir()}).server, "https://elsewhere");
}

TEST_F(InClusterTest, LoadPrefersAnAddress) {
  EXPECT_EQ(Config::load({.server = "https://elsewhere", .service_account_dir = dir()}).server,
            "https://elsewhere");
}

TEST_F(InClusterTest, ABrokenKubeconfigIsAnError) {
  test::write_file(dir_ / "home/.kube/config", "clusters: 7");
  EXPECT_THAT([&] { Config::load({.service_account_dir = dir()}); },
              ThrowsMessage<ConfigError>(HasSubstr(path("home/.kube/config") + ":1: clusters")));
}

class LoadTest : public ::testing::Test {
 protected:
  const test::TempDir dir_;
  const std::string none_ = (dir_ / "none").string();
  const test::ScopedEnv host_{"KUBERNETES_SERVICE_HOST", nullptr};
  const test::ScopedEnv kubeconfig_{"KUBECONFIG", nullptr};
  const test::ScopedEnv home_{"HOME", dir_.path().string()};
};

TEST_F(LoadTest, NamesTheSearchedSources) {
  EXPECT_THAT(
      [&] { Config::load(); },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("$KUBECONFIG (not set)"), HasSubstr((dir_ / ".kube/config").string()),
                HasSubstr("$KUBERNETES_SERVICE_HOST is not set"), HasSubstr("Name a kubeconfig"))));
  const test::ScopedEnv list("KUBECONFIG", none_);
  EXPECT_THAT([&] { Config::load(); },
              ThrowsMessage<ConfigError>(HasSubstr("$KUBECONFIG (" + none_ + ")")));
}

TEST_F(LoadTest, NamesTheExistingContexts) {
  test::write_file(dir_ / ".kube/config",
                   "contexts: [{name: dev, context: {}}, {name: prod, context: {}}]");
  EXPECT_THAT([&] { Config::load(); },
              ThrowsMessage<ConfigError>(HasSubstr("no current-context; there are: dev prod")));
  EXPECT_THAT([&] { Config::from_kubeconfig(); },
              ThrowsMessage<ConfigError>(HasSubstr("no current-context; there are: dev prod")));
}

TEST_F(LoadTest, AnExplicitFileMustExist) {
  EXPECT_THAT([&] { Config::load({.file = none_}); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot read " + none_)));
}

TEST_F(LoadTest, AnAddressIsEnough) {
  EXPECT_EQ(Config::load({.server = "127.0.0.1:8001", .ns = "shop"}),
            (Config{.server = "http://127.0.0.1:8001", .default_namespace = "shop"}));
}

TEST_F(LoadTest, ReportsAMissingHome) {
  const test::ScopedEnv home("HOME", nullptr);
  EXPECT_THAT([&] { Config::load(); }, ThrowsMessage<ConfigError>(HasSubstr("$HOME is not set")));
}

}  // namespace
}  // namespace lookout::rest
