#include "lookout/rest/kubeconfig.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "lookout/base/base64.h"
#include "tests/rest/environment.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::rest {
namespace {

using testing::ThrowsMessage;

constexpr const char* kSmall = R"(
clusters: [{name: c, cluster: {server: 'https://host'}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)";

TEST(KubeconfigTest, ReadsEveryField) {
  const Kubeconfig config = Kubeconfig::parse(R"(
apiVersion: v1
kind: Config
preferences: {colors: true}
something-new: {a: [1, 2]}
clusters:
- name: prod
  cluster:
    server: https://prod:6443
    tls-server-name: kubernetes.default
    insecure-skip-tls-verify: false
    certificate-authority: ca.crt
    certificate-authority-data: Y2E=
    proxy-url: http://proxy:3128
    disable-compression: yes
    extensions:
    - name: other
      extension: {a: b}
    - name: client.authentication.k8s.io/exec
      extension: {audience: 06e3fbd18de8, n: 7, ratio: 1.5e3, on: "on", list: [true, ~, off]}
users:
- name: jane
  user:
    client-certificate: /certs/jane.crt
    client-certificate-data: Y2VydA==
    client-key: jane.key
    client-key-data: |
      a2
      V5
    token: t0ken
    tokenFile: token
    username: jane
    password: 1234
    as: admin
    as-uid: "7"
    as-groups: [a, b]
    as-user-extra: {scopes: [x, y]}
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: aws
      args: [eks, get-token, --cluster-name, prod]
      env: [{name: AWS_PROFILE, value: prod}]
      installHint: Install aws
      provideClusterInfo: true
      interactiveMode: Never
contexts:
- name: x
  context: {cluster: prod, user: jane, namespace: shop}
current-context: x
)");
  const Kubeconfig::Cluster& cluster = config.clusters.at("prod");
  EXPECT_EQ(cluster.server, "https://prod:6443");
  EXPECT_EQ(cluster.tls_server_name, "kubernetes.default");
  EXPECT_FALSE(cluster.insecure_skip_tls_verify);
  EXPECT_EQ(cluster.certificate_authority, "ca.crt");
  EXPECT_EQ(cluster.certificate_authority_data, "ca");
  EXPECT_EQ(cluster.proxy_url, "http://proxy:3128");
  EXPECT_TRUE(cluster.disable_compression);
  EXPECT_EQ(
      cluster.exec_config,
      R"({"audience":"06e3fbd18de8","false":7,"list":[true,null,false],"ratio":1500,"true":"on"})");

  const Kubeconfig::User& user = config.users.at("jane");
  EXPECT_EQ(user.client_certificate, "/certs/jane.crt");
  EXPECT_EQ(user.client_certificate_data, "cert");
  EXPECT_EQ(user.client_key, "jane.key");
  EXPECT_EQ(user.client_key_data, "key");
  EXPECT_EQ(user.token, "t0ken");
  EXPECT_EQ(user.token_file, "token");
  EXPECT_EQ(user.username, "jane");
  EXPECT_EQ(user.password, "1234");
  EXPECT_EQ(
      user.as,
      (Impersonation{
          .user = "admin", .uid = "7", .groups = {"a", "b"}, .extra = {{"scopes", {"x", "y"}}}}));
  EXPECT_EQ(user.exec, (ExecConfig{.command = "aws",
                                   .args = {"eks", "get-token", "--cluster-name", "prod"},
                                   .env = {{.name = "AWS_PROFILE", .value = "prod"}},
                                   .api_version = "client.authentication.k8s.io/v1",
                                   .interactive_mode = "Never",
                                   .install_hint = "Install aws",
                                   .provide_cluster_info = true}));

  EXPECT_EQ(config.contexts.at("x").cluster, "prod");
  EXPECT_EQ(config.contexts.at("x").user, "jane");
  EXPECT_EQ(config.contexts.at("x").ns, "shop");
  EXPECT_EQ(config.current_context, "x");
}

TEST(KubeconfigTest, ReadsJson) {
  const Kubeconfig config = Kubeconfig::parse(
      R"({"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"c",)"
      R"("cluster":{"server":"https:\/\/host","insecure-skip-tls-verify":true}}],"users":null,)"
      R"("contexts":[{"name":"x","context":{"cluster":"c","user":""}}]})");
  EXPECT_EQ(config.to_config(), (Config{.server = "https://host", .insecure = true}));
}

TEST(KubeconfigTest, AnEmptyFileIsAnEmptyKubeconfig) {
  for (const char* text :
       {"", "\n", "# only a comment\n", "---\n", "{}", "~", "users:\nclusters: []"}) {
    const Kubeconfig config = Kubeconfig::parse(text);
    EXPECT_THAT(config.clusters, IsEmpty()) << text;
    EXPECT_FALSE(config.chooses_cluster()) << text;
  }
}

TEST(KubeconfigTest, AnchorsAndMergeKeysWork) {
  const Kubeconfig config = Kubeconfig::parse(R"(
common: &common {insecure-skip-tls-verify: true, server: https://other}
proxy: &proxy {proxy-url: http://proxy, server: https://third}
clusters:
- {name: a, cluster: {<<: *common, server: https://a}}
- {name: b, cluster: {<<: [*common, *proxy]}}
- {name: c, cluster: *common}
)");
  EXPECT_EQ(config.clusters.at("a").server, "https://a");
  EXPECT_TRUE(config.clusters.at("a").insecure_skip_tls_verify);
  EXPECT_EQ(config.clusters.at("b").server, "https://other");
  EXPECT_EQ(config.clusters.at("b").proxy_url, "http://proxy");
  EXPECT_EQ(config.clusters.at("c").server, "https://other");
}

TEST(KubeconfigTest, TheLastOfDuplicateFieldsCounts) {
  EXPECT_EQ(Kubeconfig::parse("current-context: a\ncurrent-context: b").current_context, "b");
}

TEST(KubeconfigTest, TheFirstDocumentCounts) {
  EXPECT_EQ(Kubeconfig::parse("current-context: a\n---\ncurrent-context: b").current_context, "a");
}

struct RefusedCase {
  std::string name;
  std::string text;
  std::string message;
};

class RefusedTest : public ::testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedTest, ReportsPositionAndReason) {
  EXPECT_THAT([] { (void)Kubeconfig::parse(GetParam().text, "/dir/config"); },
              ThrowsMessage<ConfigError>(AllOf(StartsWith("/dir/config:" + GetParam().message),
                                               Not(HasSubstr("s3cret")))));
}

INSTANTIATE_TEST_SUITE_P(
    Refused, RefusedTest,
    ::testing::Values(
        RefusedCase{"Text", "hello", "1: this is not a kubeconfig"},
        RefusedCase{"List", "- a\n", "1: this is not a kubeconfig"},
        RefusedCase{"AnotherObject", "apiVersion: v1\nkind: Pod\n", "2: kind is not \"Config\""},
        RefusedCase{"AnotherVersion", "apiVersion: v2\n", "1: apiVersion is not \"v1\""},
        RefusedCase{"NoYaml", "a: b\nc: [1, 2\n", "3: end of sequence flow not found"},
        RefusedCase{"Latin1", "users:\n- name: j\xfcrgen", "2: the text is not UTF-8"},
        RefusedCase{"Tab", "users:\n\t- s3cret\n", "2: "},
        RefusedCase{"ListForMap", "users:\n- name: u\n  user: []\n",
                    "3: users[0].user is not a map"},
        RefusedCase{"MapForList", "clusters:\n  c: {}\n", "2: clusters is not a list"},
        RefusedCase{"MapForText", "users:\n- name: u\n  user:\n    token: {s3cret: 1}\n",
                    "4: users[0].user.token is not a string"},
        RefusedCase{"TextForMap", "users: [s3cret]\n", "1: users[0] is not a map"},
        RefusedCase{"NoBase64", "users:\n- name: u\n  user:\n    client-key-data: '*s3cret*'\n",
                    "4: users[0].user.client-key-data is not base64"},
        RefusedCase{"NoFlag",
                    "clusters:\n- name: c\n  cluster:\n    insecure-skip-tls-verify: s3cret\n",
                    "4: clusters[0].cluster.insecure-skip-tls-verify is neither true nor false"},
        RefusedCase{"QuotedFlag",
                    "clusters: [{name: c, cluster: {insecure-skip-tls-verify: \"true\"}}]",
                    "1: clusters[0].cluster.insecure-skip-tls-verify is neither true nor false"},
        RefusedCase{"Twice", "users:\n- {name: u}\n- {name: u}\n",
                    "3: users[1] has the name \"u\", which occurs above already"},
        RefusedCase{"Nul", "users: [{name: u, user: {tokenFile: \"/etc/\\0s3cret\"}}]",
                    "1: users[0].user.tokenFile contains a NUL character"},
        RefusedCase{"UnknownAlias", "users:\n- name: u\n  user: {password: *s3cret }\n",
                    "3: the referenced anchor is not defined"},
        RefusedCase{"Args", "users: [{name: u, user: {exec: {args: [a, {b: s3cret}]}}}]",
                    "1: users[0].user.exec.args[1] is not a string"},
        RefusedCase{"Extra", "users: [{name: u, user: {as-user-extra: {\"a\\nb\": s3cret}}}]",
                    "1: users[0].user.as-user-extra[\"a?b\"] is not a list"},
        RefusedCase{"MergeOfText", "a:\n  <<: s3cret\n", "2: \"<<\" merges a value"}),
    [](const auto& test) { return test.param.name; });

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

/// Each level expands to nine of the level below.
std::string billion(std::string_view first, std::string_view open, std::string_view close) {
  std::string out = "a0: &a0 " + std::string(first) + "\n";
  for (int i = 1; i < 30; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    out += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " " + std::string(open) + below +
           repeated(", " + below, 8) + std::string(close) + "\n";
  }
  return out;
}

struct HostileCase {
  std::string name;
  /// (A function, so that the text is not created at each start of the program.)
  std::string (*text)();
};

class HostileTest : public ::testing::TestWithParam<HostileCase> {};

TEST_P(HostileTest, IsRejectedWithBoundedResources) {
  EXPECT_THROW(Kubeconfig::parse(GetParam().text(), "f"), ConfigError);
}

INSTANTIATE_TEST_SUITE_P(
    Hostile, HostileTest,
    ::testing::Values(HostileCase{"BillionLaughs", [] { return billion("[~, ~]", "[", "]"); }},
                      HostileCase{"BillionMerges",
                                  [] { return billion("{x: y}", "{<<: [", "]}"); }},
                      HostileCase{"BillionBytes",
                                  [] {
                                    return "a: &a '" + std::string(1 << 20, 'x') + "'\nb: [" +
                                           repeated("*a, ", 100'000) + "*a]";
                                  }},
                      HostileCase{"Cycle", [] { return std::string("a: &a [*a]"); }},
                      HostileCase{"MergeCycle", [] { return std::string("a: &a {<<: *a}"); }},
                      HostileCase{"DeepLists", [] { return std::string(100'000, '['); }},
                      HostileCase{"DeepMaps", [] { return repeated("{a: ", 100'000); }},
                      HostileCase{"DeepBlock", [] { return repeated("- ", 100'000); }},
                      HostileCase{"DeepKeys", [] { return repeated("? ", 100'000); }},
                      HostileCase{"DeepAliases",
                                  [] {
                                    return "a0: &a0 " + repeated("[", 40) + repeated("]", 40) +
                                           "\na1: " + repeated("[", 40) + "*a0" + repeated("]", 40);
                                  }},
                      HostileCase{"ManyValues", [] { return repeated("- a\n", 300'000); }},
                      HostileCase{"Unclosed", [] { return "a: \"" + std::string(1 << 20, 'x'); }},
                      HostileCase{"Noise", [] { return std::string("\xff\xfe\0\0\1\2{[", 8); }}),
    [](const auto& test) { return test.param.name; });

// yaml-cpp allocates some hundred bytes for each of these commas before anything can be counted.
TEST(KubeconfigTest, AHugeFlowCollectionIsRejectedBeforeParsing) {
  EXPECT_THAT([] { (void)Kubeconfig::parse("[" + repeated("a,\n", 600'000), "f"); },
              ThrowsMessage<ConfigError>(StartsWith("f:500000: too many")));
}

/// Files in a temporary directory, and the variables that name them.
class KubeconfigFilesTest : public ::testing::Test {
 protected:
  std::string path(std::string_view name) const { return (dir_ / name).string(); }
  std::string write(std::string_view name, std::string_view text) const {
    test::write_file(dir_ / name, text);
    return path(name);
  }
  /// A kubeconfig with the parts that tests vary.
  std::string write_small(std::string_view cluster, std::string_view user,
                          std::string_view context = "") const {
    return write("config", "clusters: [{name: c, cluster: {" + std::string(cluster) +
                               "}}]\nusers: [{name: u, user: {" + std::string(user) +
                               "}}]\ncontexts: [{name: x, context: {cluster: c, user: u, " +
                               std::string(context) + "}}]\ncurrent-context: x\n");
  }

  const test::TempDir dir_;
  const test::ScopedEnv kubeconfig_{"KUBECONFIG", nullptr};
  const test::ScopedEnv home_{"HOME", dir_.path().string()};
};

TEST_F(KubeconfigFilesTest, HomeIsTheDefault) {
  EXPECT_THAT(Kubeconfig::default_files(), ElementsAre(path(".kube/config")));
}

TEST_F(KubeconfigFilesTest, VariableListsFiles) {
  const test::ScopedEnv list("KUBECONFIG", "/a::/b:/a:");
  EXPECT_THAT(Kubeconfig::default_files(), ElementsAre("/a", "/b"));
}

TEST_F(KubeconfigFilesTest, TheFirstFileWins) {
  const std::string first = write("one/config", R"(
clusters: [{name: both, cluster: {server: https://first}}]
users: [{name: both, user: {username: first}}]
contexts: [{name: x, context: {cluster: both, user: both}}]
)");
  const std::string second = write("two/config", R"(
clusters:
- {name: both, cluster: {server: https://second, certificate-authority: ca.crt}}
- {name: more, cluster: {server: https://more, certificate-authority: ca.crt}}
users: [{name: both, user: {password: second}}]
contexts: [{name: y, context: {cluster: more, user: both}}]
current-context: y
)");
  const std::string third = write("three/config", "current-context: x");
  const test::ScopedEnv list("KUBECONFIG",
                             first + ":" + path("missing") + ":" + second + ":" + third);
  const Kubeconfig config = Kubeconfig::load();
  EXPECT_THAT(config.files, ElementsAre(first, second, third));
  EXPECT_EQ(config.current_context, "y");
  EXPECT_EQ(config.clusters.at("both").server, "https://first");
  // Fields that the first file leaves open do not come from the second one either.
  EXPECT_EQ(config.clusters.at("both").certificate_authority, "");
  EXPECT_EQ(config.users.at("both").password, "");
  EXPECT_EQ(config.clusters.at("more").certificate_authority, path("two/ca.crt"));
  EXPECT_EQ(config.clusters.at("more").origin.file, second);
  EXPECT_EQ(config.clusters.at("more").origin.line, 4);
}

TEST_F(KubeconfigFilesTest, AnUnreadableFileIsAnError) {
  std::filesystem::create_directory(dir_ / "dir");
  const test::ScopedEnv list("KUBECONFIG", path("dir"));
  EXPECT_THAT([] { Kubeconfig::load(); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(path("dir")), HasSubstr("directory"))));
}

TEST_F(KubeconfigFilesTest, AHugeFileIsRejected) {
  const std::string file = write("huge", std::string((4 << 20) + 1, ' '));
  EXPECT_THAT([&] { Kubeconfig::read(file); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(file), HasSubstr("larger than"))));
  EXPECT_THROW(Kubeconfig::read("/dev/zero"), ConfigError);
}

TEST_F(KubeconfigFilesTest, PathsAreRelativeToTheFile) {
  const std::string file = write("sub/config", R"(
clusters: [{name: c, cluster: {certificate-authority: ../ca.crt}}]
users:
- name: a
  user:
    client-certificate: a.crt
    client-key: ./a.key
    tokenFile: /abs/token
    exec: {command: bin/plugin}
- name: b
  user: {exec: {command: plugin}}
)");
  const auto check = [&](const Kubeconfig& config) {
    EXPECT_EQ(config.clusters.at("c").certificate_authority, path("ca.crt"));
    EXPECT_EQ(config.users.at("a").client_certificate, path("sub/a.crt"));
    EXPECT_EQ(config.users.at("a").client_key, path("sub/a.key"));
    EXPECT_EQ(config.users.at("a").token_file, "/abs/token");
    EXPECT_EQ(config.users.at("a").exec->command, path("sub/bin/plugin"));
    EXPECT_EQ(config.users.at("b").exec->command, "plugin");
  };
  check(Kubeconfig::read(file));
  // The case of a relative file name in the current directory.
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir_ / "sub");
  check(Kubeconfig::read("config"));
  std::filesystem::current_path(before);
}

TEST_F(KubeconfigFilesTest, ChosenContextBecomesAConfig) {
  write("ca.crt", "ca");
  write("u.crt", "cert");
  const std::string file = write_small(
      "server: 'https://host:6443/', certificate-authority: ca.crt, tls-server-name: name, "
      "proxy-url: 'socks5://proxy', disable-compression: true",
      "client-certificate: u.crt, client-key-data: a2V5, token: t0ken, as: jane, as-groups: [g]",
      "namespace: shop");
  EXPECT_EQ(Config::from_kubeconfig({.file = file}),
            (Config{.server = "https://host:6443",
                    .default_namespace = "shop",
                    .ca_file = path("ca.crt"),
                    .client_cert_file = path("u.crt"),
                    .client_key_data = "key",
                    .server_name = "name",
                    .bearer_token = "t0ken",
                    .as = {.user = "jane", .groups = {"g"}},
                    .proxy_url = "socks5://proxy",
                    .disable_compression = true}));
}

TEST_F(KubeconfigFilesTest, DataOverridesFiles) {
  const std::string file = write_small(
      "server: 'https://h', certificate-authority: none, certificate-authority-data: Y2E=",
      "client-certificate: none, client-certificate-data: Y2VydA==, client-key: none, "
      "client-key-data: a2V5");
  EXPECT_EQ(Config::from_kubeconfig({.file = file}), (Config{.server = "https://h",
                                                             .ca_data = "ca",
                                                             .client_cert_data = "cert",
                                                             .client_key_data = "key"}));
}

TEST_F(KubeconfigFilesTest, OptionsOverride) {
  const std::string file = write("config", R"(
clusters:
- {name: a, cluster: {server: https://a, insecure-skip-tls-verify: true, tls-server-name: name}}
- {name: b, cluster: {server: https://b}}
users: [{name: u, user: {token: one}}, {name: v, user: {token: two}}]
contexts:
- {name: x, context: {cluster: a, user: u, namespace: one}}
- {name: y, context: {cluster: b, user: v}}
current-context: x
)");
  const auto load = [&](LoadOptions options) {
    options.file = file;
    return Config::from_kubeconfig(options);
  };
  const Config plain{.server = "https://a",
                     .default_namespace = "one",
                     .server_name = "name",
                     .insecure = true,
                     .bearer_token = "one"};
  const auto changed = [&](auto change) {
    Config config = plain;
    change(config);
    return config;
  };
  EXPECT_EQ(load({}), plain);
  EXPECT_EQ(load({.context = "y"}), (Config{.server = "https://b", .bearer_token = "two"}));
  EXPECT_EQ(load({.user = "v"}), changed([](Config& c) { c.bearer_token = "two"; }));
  EXPECT_EQ(load({.ns = "two"}), changed([](Config& c) { c.default_namespace = "two"; }));
  EXPECT_EQ(load({.cluster = "b"}), changed([](Config& c) {
              c.server = "https://b";
              c.server_name = "";
              c.insecure = false;
            }));
  // The expected name of the certificate belongs to the address; the other TLS settings do not.
  EXPECT_EQ(load({.server = "https://elsewhere"}), changed([](Config& c) {
              c.server = "https://elsewhere";
              c.server_name = "";
            }));
}

struct UnusableCase {
  std::string name;
  std::string text;
  LoadOptions options;
  std::string message;
};

class UnusableTest : public ::testing::TestWithParam<UnusableCase> {};

TEST_P(UnusableTest, ReportsPositionAndReason) {
  const UnusableCase& param = GetParam();
  const Kubeconfig config = Kubeconfig::parse(param.text, "/dir/config");
  EXPECT_THAT([&] { (void)config.to_config(param.options); },
              ThrowsMessage<ConfigError>(AllOf(StartsWith("/dir/config"), HasSubstr(param.message),
                                               Not(HasSubstr("s3cret")))));
}

std::string with_user(std::string_view user) {
  return "clusters: [{name: c, cluster: {server: 'https://host'}}]\n"
         "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
         "current-context: x\n"
         "users: [{name: u, user: {" +
         std::string(user) + "}}]\n";
}

std::string with_cluster(std::string_view cluster) {
  return "contexts: [{name: x, context: {cluster: c}}]\n"
         "current-context: x\n"
         "clusters: [{name: c, cluster: {" +
         std::string(cluster) + "}}]\n";
}

INSTANTIATE_TEST_SUITE_P(
    Unusable, UnusableTest,
    ::testing::Values(
        UnusableCase{"NoContext",
                     kSmall,
                     {.context = "y"},
                     "context \"y\" does not exist; there are: \"x\""},
        UnusableCase{"NoCurrentContext", "current-context: gone", {}, "context \"gone\""},
        UnusableCase{"NoClusterOfThatName",
                     kSmall,
                     {.cluster = "d"},
                     "cluster \"d\" does not exist; there are: \"c\""},
        UnusableCase{"NoUserOfThatName",
                     kSmall,
                     {.user = "v"},
                     "user \"v\" does not exist; there are: \"u\""},
        UnusableCase{"ContextWithoutCluster",
                     "contexts: [{name: x}]\ncurrent-context: x",
                     {},
                     "names no cluster"},
        UnusableCase{"NoServer",
                     with_cluster("insecure-skip-tls-verify: true"),
                     {},
                     ":3: cluster \"c\": server is missing"},
        UnusableCase{
            "BadServer", with_cluster("server: 'gopher://h'"), {}, ":1: context \"x\": server"},
        UnusableCase{
            "BadProxy", with_cluster("server: 'https://h', proxy-url: s3cret"), {}, "proxy_url"},
        UnusableCase{"CaAndInsecure",
                     with_cluster("server: 'https://h', insecure-skip-tls-verify: true, "
                                  "certificate-authority-data: Y2E="),
                     {},
                     "insecure"},
        UnusableCase{"NoCaFile",
                     with_cluster("server: 'https://h', certificate-authority: none"),
                     {},
                     ":3: cluster \"c\": certificate-authority: cannot read /dir/none"},
        UnusableCase{"NoCertificateFile",
                     with_user("client-certificate: none, client-key: none"),
                     {},
                     ":4: user \"u\": client-certificate: cannot read /dir/none"},
        UnusableCase{"NoTokenFile",
                     with_user("tokenFile: none"),
                     {},
                     ":4: user \"u\": tokenFile: cannot read /dir/none"},
        UnusableCase{"NoKey", with_user("client-certificate-data: Y2E="), {}, "no key"},
        UnusableCase{"TokenAndPassword",
                     with_user("token: s3cret, username: a, password: s3cret"),
                     {},
                     "a token and a"},
        UnusableCase{"AuthProvider",
                     with_user("auth-provider: {name: gcp}"),
                     {},
                     ":4: user \"u\": auth-provider \"gcp\" is not supported"},
        UnusableCase{"PluginWithoutCommand",
                     with_user("exec: {apiVersion: client.authentication.k8s.io/v1beta1}"),
                     {},
                     "exec: command is missing"},
        UnusableCase{"PluginWithoutVersion",
                     with_user("exec: {command: x}"),
                     {},
                     "exec: apiVersion must be"},
        UnusableCase{"PluginWithoutMode",
                     with_user("exec: {command: x, apiVersion: client.authentication.k8s.io/v1}"),
                     {},
                     "exec: interactiveMode must be"},
        UnusableCase{"GroupsWithoutUser", with_user("as-groups: [g]"), {}, "no user"}),
    [](const auto& test) { return test.param.name; });

// Like clientcmd.
TEST(KubeconfigTest, AKeyWithoutACertificateIsNotUsed) {
  EXPECT_EQ(Kubeconfig::parse(with_user("client-key-data: a2V5")).to_config(),
            Config{.server = "https://host"});
}

TEST(KubeconfigTest, OldPluginsNeedNoInteractiveMode) {
  const Kubeconfig config = Kubeconfig::parse(
      with_user("exec: {command: x, apiVersion: client.authentication.k8s.io/v1beta1}"));
  EXPECT_EQ(config.to_config().exec->interactive_mode, "IfAvailable");
}

TEST(KubeconfigTest, APluginReceivesTheExtensionOfItsCluster) {
  const Kubeconfig config = Kubeconfig::parse(R"(
clusters:
- name: c
  cluster:
    server: https://h
    extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: a}}]
users:
- {name: u, user: {exec: {command: x, apiVersion: client.authentication.k8s.io/v1beta1}}}
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)");
  EXPECT_EQ(config.to_config().exec->cluster_config, R"({"audience":"a"})");
}

TEST(KubeconfigTest, WithoutAUserThereAreNoCredentials) {
  EXPECT_EQ(Kubeconfig::parse(with_cluster("server: 'https://h'")).to_config(),
            Config{.server = "https://h"});
}

// Like clientcmd: plain HTTP would expose the token.
TEST(KubeconfigTest, PlainHttpUsesNoSecrets) {
  const Kubeconfig config = Kubeconfig::parse(R"(
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:8001'}}]
users: [{name: u, user: {token: a, as: jane}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)");
  EXPECT_EQ(config.to_config(),
            (Config{.server = "http://127.0.0.1:8001", .as = {.user = "jane"}}));
}

TEST_F(KubeconfigFilesTest, AWrittenFileReadsBack) {
  const Config config{.server = "https://127.0.0.1:6443/prefix",
                      .default_namespace = "shop",
                      .ca_data = "-----BEGIN CERTIFICATE-----\n",
                      .client_cert_data = "cert",
                      .client_key_data = "key",
                      .server_name = "name",
                      .bearer_token = "12345",
                      .as = {.user = "true",
                             .uid = "7",
                             .groups = {"null", "a: b"},
                             .extra = {{"scopes: #", {"\"x\"", "y\\"}}}},
                      .proxy_url = "http://proxy",
                      .disable_compression = true};
  const std::string file = path("new/dir/config");
  write_kubeconfig(file, config, "it's: a \"name\"");
  EXPECT_EQ(Config::from_kubeconfig({.file = file}), config);
  EXPECT_EQ(Kubeconfig::read(file).current_context, "it's: a \"name\"");

  const Config other{
      .server = "https://h", .insecure = true, .username = "no", .password = "~ \t#"};
  write_kubeconfig(file, other);
  EXPECT_EQ(Config::from_kubeconfig({.file = file}), other);
}

// kubectl does not accept a number as text.
TEST_F(KubeconfigFilesTest, WrittenTextIsQuoted) {
  EXPECT_THAT(render_kubeconfig({.server = "https://h", .bearer_token = "12345"}),
              HasSubstr("token: \"12345\""));
}

TEST_F(KubeconfigFilesTest, WrittenPathsAreAbsolute) {
  const std::string text =
      render_kubeconfig({.server = "https://h", .ca_file = "ca.crt", .token_file = "/abs/token"});
  const Kubeconfig config = Kubeconfig::parse(text);
  EXPECT_EQ(config.clusters.at("lookout").certificate_authority,
            std::filesystem::absolute("ca.crt").string());
  EXPECT_EQ(config.users.at("lookout").token_file, "/abs/token");
}

TEST_F(KubeconfigFilesTest, APluginIsNotWritten) {
  EXPECT_THROW(render_kubeconfig({.server = "https://h", .exec = ExecConfig{.command = "x"}}),
               InvalidArgument);
}

TEST_F(KubeconfigFilesTest, OnlyTheOwnerMayReadIt) {
  const std::string file = write("config", "old");
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  const mode_t before = ::umask(0);
  write_kubeconfig(file, {.server = "https://h"});
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  // No other files remain.
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, UnorderedElementsAre("config"));
}

TEST_F(KubeconfigFilesTest, KeepsSymbolicLink) {
  const std::string file = write("real/config", "old");
  std::filesystem::create_symlink("real/config", dir_ / "link");
  write_kubeconfig(path("link"), {.server = "https://h"});
  EXPECT_TRUE(std::filesystem::is_symlink(dir_ / "link"));
  EXPECT_EQ(Config::from_kubeconfig({.file = file}).server, "https://h");
}

TEST_F(KubeconfigFilesTest, APipeIsWrittenTo) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::jthread reader([&] { read = test::read_file(pipe); });
  write_kubeconfig(pipe, {.server = "https://h"});
  // If the pipe were replaced, its reader would hang.
  ASSERT_TRUE(std::filesystem::is_fifo(pipe));
  reader.join();
  EXPECT_EQ(read, render_kubeconfig({.server = "https://h"}));
}

TEST_F(KubeconfigFilesTest, ReadersNeverSeeAPartialFile) {
  const std::string file = path("config");
  const Config config{.server = "https://h", .ca_data = std::string(200'000, 'x')};
  write_kubeconfig(file, config);
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (int i = 0; i < 50; ++i) write_kubeconfig(file, config);
    done = true;
  });
  while (!done) EXPECT_EQ(Config::from_kubeconfig({.file = file}), config);
}

TEST_F(KubeconfigFilesTest, AnUnwritablePathIsAnError) {
  write("file", "");
  EXPECT_THAT([&] { write_kubeconfig(path("file/config"), {.server = "https://h"}); },
              ThrowsMessage<ConfigError>(HasSubstr(path("file"))));
}

}  // namespace
}  // namespace lookout::rest
