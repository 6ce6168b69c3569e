// /metrics over TLS, for authorized clients only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lookout/apiserver/server.h"
#include "lookout/controller/manager.h"
#include "lookout/testing/fake_clock.h"
#include "tests/controller/manager_fixture.h"
#include "tests/rest/certificates.h"
#include "tests/support/files.h"

namespace lookout::controller {
namespace {

using testing::StartsWith;

class SecureMetricsTest : public RbacFixture {
 protected:
  static ManagerOptions secure(const SecureMetrics& how) {
    ManagerOptions out;
    out.metrics_listen = "127.0.0.1:0";
    out.secure_metrics = how;
    return out;
  }

  void bind(const std::string& role, const std::string& ns, const std::string& account) const {
    const api::Resource bindings("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding",
                                 "clusterrolebindings", false);
    admin_.resource(bindings).create(api::Object::parse(
        R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{)"
        R"("name":")" +
        account + R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",)" +
        R"("name":")" + role + R"("},"subjects":[{"kind":"ServiceAccount","name":")" + account +
        R"(","namespace":")" + ns + R"("}]})"));
  }

  void allow_to_read_metrics() const {
    const api::Resource roles("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles",
                              false);
    admin_.resource(roles).create(api::Object::parse(
        R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":)"
        R"("metrics-reader"},"rules":[{"nonResourceURLs":["/metrics"],"verbs":["get"]}]})"));
    bind("metrics-reader", "default", "prometheus");
  }

  /// A client of a service account.
  rest::Client client_of(const std::string& account) const {
    return rest::Client(server_.config_for_service_account("default", account));
  }
  std::string token_of(const std::string& account) const {
    return server_.config_for_service_account("default", account).bearer_token;
  }

  /// The metrics, or the code and the message of the error.
  static std::string read(const Manager& manager, const std::string& token,
                          const std::string& authority = {}) {
    rest::Config config;
    config.server = "https://127.0.0.1:" + std::to_string(manager.metrics_port());
    config.ca_data = authority;
    config.insecure = authority.empty();
    config.bearer_token = token;
    rest::CallOptions call;
    call.timeout = 20s;
    try {
      return rest::Client(config).get_raw("/metrics", call);
    } catch (const api::StatusError& e) {
      return std::to_string(e.code()) + ": " + e.what();
    } catch (const rest::TransportError& e) {
      return e.kind() == rest::TransportError::Kind::kTls ? "another certificate" : e.what();
    }
  }
};

TEST_F(SecureMetricsTest, AuthenticatesAndAuthorizesClients) {
  bind("system:auth-delegator", "default", "manager");
  const auto clock = std::make_shared<test::FakeClock>();
  ManagerOptions options = secure({});
  options.clock = clock;
  Manager manager{client_of("manager"), options};
  const Running running(manager);
  EXPECT_THAT(read(manager, ""), StartsWith("401"));
  EXPECT_THAT(read(manager, "no.such.token"), StartsWith("401"));
  const std::string token = token_of("prometheus");
  const std::string denied = read(manager, token);
  EXPECT_THAT(denied, StartsWith("403"));
  EXPECT_THAT(denied,
              HasSubstr("Authorization denied for user system:serviceaccount:default:prometheus"));

  // Denials are cached for 30 s.
  allow_to_read_metrics();
  EXPECT_THAT(read(manager, token), StartsWith("403"));
  clock->advance(31s);
  EXPECT_THAT(read(manager, token), HasSubstr("rest_client_requests_total{code=\"201\""));
}

TEST_F(SecureMetricsTest, FailsClosedWithoutTheRightToReview) {
  Manager manager{client_of("manager"), secure({})};
  const Running running(manager);
  const std::string failed = read(manager, token_of("prometheus"));
  EXPECT_THAT(failed, StartsWith("500"));
  EXPECT_THAT(failed, HasSubstr("Authentication failed"));
}

TEST_F(SecureMetricsTest, ServesARenewedCertificate) {
  const test::TempDir dir;
  const test::CertificateAuthority before;
  const test::CertificateAuthority after;
  const auto write = [&dir](const test::KeyPair& pair) {
    test::write_file(dir / "tls.crt", pair.certificate);
    test::write_file(dir / "tls.key", pair.key);
  };
  write(before.issue_local());
  SecureMetrics how;
  how.cert_dir = dir.path();
  how.authorize = false;
  Manager manager{client_of("manager"), secure(how)};
  const Running running(manager);
  EXPECT_THAT(read(manager, "", before.certificate()), HasSubstr("certwatcher_read_certificate"));
  EXPECT_EQ(read(manager, "", after.certificate()), "another certificate");
  write(after.issue_local());
  EXPECT_TRUE(eventually([&] {
    return read(manager, "", after.certificate()).find("certwatcher") != std::string::npos;
  }));
}

TEST_F(SecureMetricsTest, ReportsMissingCertificates) {
  const test::TempDir dir;
  SecureMetrics how;
  how.cert_dir = dir.path();
  try {
    const Manager manager{client_of("manager"), secure(how)};
    FAIL() << "there is no certificate";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("tls.crt"));
  }
  how = SecureMetrics();
  how.client_ca_name = "ca.crt";
  EXPECT_THROW(Manager(client_of("manager"), secure(how)), InvalidArgument);
}

}  // namespace
}  // namespace lookout::controller
