// lookout serve.
#include <csignal>
#include <filesystem>

#include "lookout/api/status.h"
#include "lookout/rest/client.h"
#include "lookout/rest/kubeconfig.h"
#include "tests/cmd/cmd_fixture.h"
#include "tests/rest/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::cmd {
namespace {

class Serve : public testing::Test {
 protected:
  test::ProgramResult lookout(const std::vector<std::string>& arguments) const {
    return environment_.run(test::lookout_program(), arguments);
  }

  test::ProgramEnvironment environment_;
  test::TempDir dir_;
};

TEST_F(Serve, PrintsItsUrlAndServesUntilASignal) {
  test::ServeProcess serve(environment_);
  EXPECT_THAT(serve.output(), MatchesRegex("Serving the Kubernetes API at http://127.0.0.1:[0-9]+\n"
                                           "Objects are kept in memory\n"));
  const auto result = lookout({"get", "ns", "-o", "name", "--server", serve.url()});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("namespace/default\n"));
  EXPECT_EQ(serve.terminate(), 0);
  EXPECT_EQ(lookout({"get", "ns", "--server", serve.url()}).status, 1);
}

TEST_F(Serve, EndsRegularlyWithOpenWatches) {
  test::ServeProcess serve(environment_);
  rest::Config config;
  config.server = serve.url();
  const rest::Client client(config);
  auto watch = client.resource(kPods).watch({});
  client.resource(kPods, "default").create(api::Object::parse(pod("a", "")));
  ASSERT_TRUE(watch.next());
  EXPECT_EQ(serve.terminate(), 0);
  EXPECT_FALSE(watch.next()) << "the end, and no error";
}

// If a wrapper has closed standard streams, the program's files must not get the numbers 0 to 2.
TEST_F(Serve, WritesNoMessagesIntoItsAuditLog) {
  const std::string log = (dir_ / "audit.log").string();
  const std::string kubeconfig = (dir_ / "config").string();
  const std::string tokens = dir_.file("tokens.csv", "secret,ann,1\n");
  // The kubeconfig makes it warn that clients send no credentials over plain HTTP.
  test::Process process =
      environment_.start("sh",
                         {"-c", R"(exec "$0" "$@" <&- >&- 2>&-)", test::lookout_program(), "serve",
                          "--listen", "127.0.0.1:0", "--audit-log-path", log, "--write-kubeconfig",
                          kubeconfig, "--token-file", tokens},
                         dir_ / "log");
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(kubeconfig); }));
  EXPECT_EQ(lookout({"get", "ns", "-o", "name", "--kubeconfig", kubeconfig}).status, 1);
  ASSERT_TRUE(test::eventually([&] { return test::read_file(log).ends_with("}\n"); }));
  EXPECT_TRUE(test::read_file(log).starts_with("{")) << test::read_file(log);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(Serve, WritesAKubeconfig) {
  const std::string kubeconfig = (dir_ / "folder/config").string();
  test::ServeProcess serve(environment_, {"--write-kubeconfig", kubeconfig});
  EXPECT_EQ(lookout({"get", "ns", "default", "-o", "name", "--kubeconfig", kubeconfig}).output,
            "namespace/default\n");
  environment_.set("KUBECONFIG", kubeconfig);
  EXPECT_EQ(lookout({"get", "ns", "default", "-o", "name"}).output, "namespace/default\n");
  EXPECT_EQ(lookout({"get", "ns", "default", "-o", "name", "--context", "lookout"}).output,
            "namespace/default\n");
  EXPECT_EQ(lookout({"get", "ns", "--context", "nobody"}).status, 1);
  EXPECT_EQ(serve.terminate(), 0);
  // A second run replaces its own file.
  test::ServeProcess again(environment_, {"--write-kubeconfig", kubeconfig});
  EXPECT_EQ(rest::Kubeconfig::read(kubeconfig).clusters.begin()->second.server, again.url());
}

TEST_F(Serve, KeepsAForeignKubeconfig) {
  const std::string text =
      "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n  cluster: {server: "
      "'https://example.test'}\n";
  const std::string kubeconfig = dir_.file("config", text);
  const auto result =
      lookout({"serve", "--listen", "127.0.0.1:0", "--write-kubeconfig", kubeconfig});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("has the cluster \"production\""));
  EXPECT_THAT(result.errors, HasSubstr("name another one"));
  EXPECT_EQ(test::read_file(kubeconfig), text);
  const std::string notes = dir_.file("notes", "- buy milk\n");
  EXPECT_EQ(lookout({"serve", "--listen", "127.0.0.1:0", "--write-kubeconfig", notes}).status, 1);
  EXPECT_EQ(test::read_file(notes), "- buy milk\n");
}

TEST_F(Serve, SupportsTlsAndTokens) {
  const test::CertificateAuthority authority;
  const test::KeyPair pair = authority.issue_local();
  const std::string kubeconfig = (dir_ / "config").string();
  test::ServeProcess serve(
      environment_,
      {"--tls-cert", dir_.file("crt", pair.certificate), "--tls-key", dir_.file("key", pair.key),
       "--token-file", dir_.file("tokens", "secret,ann,1\n"), "--write-kubeconfig", kubeconfig});
  EXPECT_THAT(serve.url(), StartsWith("https://127.0.0.1:"));
  const auto result = lookout({"get", "ns", "default", "-o", "name", "--kubeconfig", kubeconfig});
  EXPECT_EQ(result.output, "namespace/default\n") << result.errors;

  rest::Config config;
  config.server = serve.url();
  config.ca_data = authority.certificate();
  const auto attempt = [&](const std::string& token) {
    config.bearer_token = token;
    rest::write_kubeconfig((dir_ / "other").string(), config);
    return lookout({"get", "ns", "--kubeconfig", (dir_ / "other").string()});
  };
  EXPECT_EQ(attempt("secret").status, 0);
  const auto wrong = attempt("wrong");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.errors, HasSubstr("check the user of the context"));
  EXPECT_THAT(wrong.errors, testing::Not(HasSubstr("wrong")));
  config.ca_data = test::CertificateAuthority("other").certificate();
  const auto untrusted = attempt("secret");
  EXPECT_EQ(untrusted.status, 1);
  EXPECT_THAT(untrusted.errors, HasSubstr("check certificate-authority"));
  const auto alone = lookout({"get", "ns", "--server", serve.url()});
  EXPECT_EQ(alone.status, 1);
  EXPECT_THAT(alone.errors, HasSubstr("lookout: without a kubeconfig, only certificates of this"));
}

struct WrongFlags {
  const char* name;
  /// Arguments after "--listen 127.0.0.1:0", unless they begin with --listen.
  std::vector<std::string> flags;
  int status;
  std::string message;
};
void PrintTo(const WrongFlags& flags, std::ostream* out) { *out << flags.name; }

class WrongServe : public Serve, public testing::WithParamInterface<WrongFlags> {};

TEST_P(WrongServe, EndsAtOnceWithAnError) {
  const std::vector<std::string>& flags = GetParam().flags;
  std::vector<std::string> arguments{"serve"};
  if (flags[0] != "--listen") arguments.insert(arguments.end(), {"--listen", "127.0.0.1:0"});
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const auto result = lookout(arguments);
  EXPECT_EQ(result.status, GetParam().status);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cmd, WrongServe,
    testing::Values(
        WrongFlags{"NoPort", {"--listen", "127.0.0.1"}, 2, "is not an address such as"},
        WrongFlags{"EmptyPort", {"--listen", "127.0.0.1:"}, 2, "is not an address such as"},
        WrongFlags{"PortIsAWord", {"--listen", "127.0.0.1:http"}, 2, "is not an address such as"},
        WrongFlags{
            "PortIsTooLarge", {"--listen", "127.0.0.1:65536"}, 2, "is not an address such as"},
        WrongFlags{"PortIsNegative", {"--listen", "127.0.0.1:-1"}, 2, "is not an address such as"},
        WrongFlags{"NoAddress", {"--listen", ""}, 2, "is not an address such as"},
        WrongFlags{"AddressIsAName", {"--listen", "example:0"}, 2, "'example' is not an address"},
        WrongFlags{"AddressOfOthers", {"--listen", "192.0.2.1:0"}, 1, "192.0.2.1:0"},
        WrongFlags{"UnknownStorage", {"--storage", "disk"}, 2, "--storage"},
        WrongFlags{"EncryptionOfMemory",
                   {"--encryption-config", "/none.yaml"},
                   2,
                   "--encryption-config needs --storage etcd"},
        WrongFlags{"EndpointsOfNoEtcd",
                   {"--etcd-endpoints", "http://127.0.0.1:1"},
                   2,
                   "--etcd-endpoints needs --storage etcd"},
        WrongFlags{"PrefixOfNoEtcd",
                   {"--etcd-prefix", "/registry"},
                   2,
                   "--etcd-prefix needs --storage etcd"},
        WrongFlags{
            "MemoryWithoutCache", {"--watch-cache=false"}, 2, "--watch-cache needs --storage etcd"},
        WrongFlags{"LevelOfNoAuditLog",
                   {"--audit-level", "Request"},
                   2,
                   "--audit-level needs --audit-log-path"},
        WrongFlags{"NodesOfNoCluster",
                   {"--simulated-nodes", "5"},
                   2,
                   "--simulated-nodes needs --simulate-cluster"},
        WrongFlags{"NegativeRequestsOfAUser",
                   {"--max-requests-per-user", "-1"},
                   2,
                   "--max-requests-per-user"},
        WrongFlags{"NegativeRequestsOfAnAddress",
                   {"--max-requests-per-address", "-1"},
                   2,
                   "--max-requests-per-address"},
        WrongFlags{"NegativeConnections",
                   {"--max-connections-per-address", "-1"},
                   2,
                   "--max-connections-per-address"},
        WrongFlags{"NoEndpoint",
                   {"--storage", "etcd", "--etcd-endpoints", ""},
                   1,
                   "is not an etcd endpoint"},
        WrongFlags{"NoEtcdCertificate",
                   {"--storage", "etcd", "--etcd-cafile", "/none.crt"},
                   1,
                   "/none.crt"},
        WrongFlags{"NoPassword",
                   {"--storage", "etcd", "--etcd-password-file", "/dev/null"},
                   1,
                   "no password in /dev/null"},
        WrongFlags{"NegativeCompaction",
                   {"--etcd-compaction-interval", "-1"},
                   2,
                   "--etcd-compaction-interval"},
        WrongFlags{"UnknownFlag", {"--lissten", "x"}, 2, "--lissten"},
        WrongFlags{"NoValue", {"--listen"}, 2, "--listen"},
        WrongFlags{"CertificateWithoutKey", {"--tls-cert", "/dev/null"}, 1, "needs both"},
        WrongFlags{"NoCertificateThere",
                   {"--tls-cert", "/none.crt", "--tls-key", "/none.key"},
                   1,
                   "/none.crt"},
        WrongFlags{
            "ClientsWithoutTls", {"--client-ca", "/none.crt"}, 1, "client certificates need TLS"},
        WrongFlags{"NoTokensThere", {"--token-file", "/none.csv"}, 1, "/none.csv"},
        WrongFlags{"NoSuchPlugin",
                   {"--enable-admission-plugins", "ServiceAccount,Other"},
                   1,
                   "there is no admission plugin \"Other\""},
        WrongFlags{"NoSuchMode", {"--authorization-mode", "ABAC"}, 2, "--authorization-mode"},
        WrongFlags{"NoKeyThere", {"--service-account-key-file", "/none.pem"}, 1, "/none.pem"}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

// It retries for ten seconds, because etcd may be starting.
TEST_F(Serve, ReportsAnUnreachableEtcd) {
  const std::string url = "http://127.0.0.1:" + std::to_string(test::free_port());
  const auto result =
      lookout({"serve", "--listen", "127.0.0.1:0", "--storage", "etcd", "--etcd-endpoints", url});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors,
              AllOf(HasSubstr("lookout: waiting for etcd (" + url + ")\n"),
                    HasSubstr("lookout: cannot reach etcd at " + url),
                    HasSubstr("Connection refused; is it running? (--etcd-endpoints)\n"),
                    Not(HasSubstr("StorageError")), Not(HasSubstr("watch cache"))));
}

TEST_F(Serve, GivesServiceAccountsToPods) {
  struct Case {
    std::vector<std::string> flags;
    const char* account;
  };
  const std::vector<Case> cases = {
      {{}, ""},
      {{"--enable-admission-plugins=LimitRanger,ServiceAccount"}, "default"},
      {{"--simulate-cluster"}, "default"},
      {{"--simulate-cluster", "--disable-admission-plugins=ServiceAccount"}, ""}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.flags.empty() ? "no flags" : one.flags.back());
    test::ServeProcess serve(environment_, one.flags);
    rest::Config config;
    config.server = serve.url();
    const rest::Client client(config);
    const api::Object made =
        client.resource(kPods, "default").create(api::Object::parse(pod("a", "")));
    EXPECT_EQ(made["spec"]["serviceAccountName"].as_string(), one.account);
    EXPECT_EQ(serve.terminate(), 0);
  }
}

TEST_F(Serve, AuthorizesByRolesAndWritesAnAuditLog) {
  const std::string audit = (dir_ / "audit").string();
  test::ServeProcess serve(environment_,
                           {"--authorization-mode", "RBAC", "--audit-log-path", audit});
  rest::Config config;
  config.server = serve.url();
  EXPECT_NO_THROW(rest::Client(config).get_raw("/api/v1/pods"));
  // The service exists from the start, like the bootstrap roles.
  EXPECT_NO_THROW(rest::Client(config).get_raw("/api/v1/namespaces/default/services/kubernetes"));
  config.as.user = "ann";
  EXPECT_THROW(rest::Client(config).get_raw("/api/v1/pods"), api::StatusError);
  EXPECT_NO_THROW(rest::Client(config).get_raw("/apis"));
  EXPECT_EQ(serve.terminate(), 0);
  EXPECT_THAT(test::read_file(audit), HasSubstr(R"("impersonatedUser":{"username":"ann")"));
}

TEST_F(Serve, WarnsThatNoCredentialsAreRequired) {
  for (const char* listen : {":0", "0.0.0.0:0"}) {
    test::ServeProcess open(environment_, {}, listen);
    EXPECT_THAT(open.output(), HasSubstr("no credentials are required"));
    EXPECT_THAT(open.output(), HasSubstr(" and at every other address of this machine\n"));
    // The printed address works.
    EXPECT_THAT(open.url(), StartsWith("http://127.0.0.1:"));
    const auto result = lookout({"get", "ns", "default", "-o", "name", "--server", open.url()});
    EXPECT_EQ(result.output, "namespace/default\n") << result.errors;
  }
  test::ServeProcess with_tokens(
      environment_, {"--token-file", dir_.file("tokens.csv", "secret,ann,1\n")}, "0.0.0.0:0");
  EXPECT_THAT(with_tokens.output(), Not(HasSubstr("credentials")));
}

TEST_F(Serve, AcceptsAllowedHostNames) {
  test::ServeProcess serve(environment_,
                           {"--allow-host", "lookout.test", "--allow-host", "other.test"});
  const auto code_of = [&](const std::string& host) {
    return test::run_command({"curl", "--silent", "--output", "/dev/null", "--write-out",
                              "%{http_code}", "--header", "Host: " + host, serve.url() + "/api"})
        .output;
  };
  EXPECT_EQ(code_of("lookout.test"), "200");
  EXPECT_EQ(code_of("other.test:8001"), "200");
  EXPECT_EQ(code_of("evil.test"), "403");
}

TEST_F(Serve, ReportsAPortInUse) {
  const apiserver::Server server;
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  const auto result = lookout({"serve", "--listen", address});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr(address));
  EXPECT_THAT(result.errors, HasSubstr("in use"));
}

TEST_F(Serve, ListensOnAnIpv6Address) {
  std::optional<test::ServeProcess> serve;
  try {
    serve.emplace(environment_, std::vector<std::string>{}, "[::1]:0");
  } catch (const std::exception& e) {
    GTEST_SKIP() << "*** no IPv6 here: " << e.what() << " ***";
  }
  EXPECT_THAT(serve->url(), StartsWith("http://[::1]:"));
  const auto result = lookout({"get", "ns", "default", "-o", "name", "--server", serve->url()});
  EXPECT_EQ(result.output, "namespace/default\n") << result.errors;
}

}  // namespace
}  // namespace lookout::cmd
