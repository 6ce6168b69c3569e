// TLS: trusted authorities and client certificates.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>

#include "tests/rest/client_testing.h"
#include "tests/rest/environment.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using rest::Client;
using rest::TransportError;
using testing::AnyOf;

/// Answers every request, and records the client certificate and the requested server name.
class TlsServer {
 public:
  struct Visit {
    std::string server_name;
    std::string client_name;
    std::string host;
    int connection = 0;
  };

  explicit TlsServer(HttpServerTls tls)
      : server_(
            [this](HttpConnection& c) {
              while (const auto request = c.read_request()) {
                {
                  const std::lock_guard lock(mutex_);
                  last_ = {c.server_name(), c.client_name(), request->header("Host"), c.index()};
                }
                if (!c.respond({.body = "ok", .content_type = "text/plain"})) return;
              }
            },
            std::move(tls)) {}

  HttpServer& operator*() { return server_; }
  HttpServer* operator->() { return &server_; }
  Visit last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  Visit last_;
  HttpServer server_;
};

class TlsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    authority_ = std::make_unique<CertificateAuthority>();
    other_ = std::make_unique<CertificateAuthority>("another authority");
  }
  static void TearDownTestSuite() {
    authority_.reset();
    other_.reset();
  }

  static HttpServerTls mutual() {
    HttpServerTls tls = tls_of(authority_->issue_local());
    tls.client_ca = other_->certificate();
    return tls;
  }

  static std::string ask(const rest::Config& config) {
    return Client{config}.get_raw("/readyz", {.timeout = std::chrono::seconds(30)});
  }

  static void expect_tls_error(const rest::Config& config, const char* text) {
    const auto error = thrown<TransportError>([&] { ask(config); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), Kind::kTls) << error->what();
    EXPECT_THAT(error->what(), AllOf(HasSubstr(config.server), HasSubstr(text)));
    EXPECT_FALSE(rest::is_transient(*error));
  }

  static inline std::unique_ptr<CertificateAuthority> authority_;
  static inline std::unique_ptr<CertificateAuthority> other_;
  const TempDir dir_;
};

TEST_F(TlsTest, TheAuthorityMayBeTextOrAFile) {
  TlsServer server(tls_of(authority_->issue_local()));
  EXPECT_EQ(ask(config_for(*server, authority_.get())), "ok");

  write_file(dir_ / "ca.pem", authority_->certificate());
  rest::Config file = config_for(*server);
  file.ca_file = (dir_ / "ca.pem").string();
  EXPECT_EQ(ask(file), "ok");
}

TEST_F(TlsTest, OneOfSeveralAuthoritiesIsEnough) {
  TlsServer server(tls_of(authority_->issue_local()));
  rest::Config config = config_for(*server);
  config.ca_data = other_->certificate() + authority_->certificate();
  EXPECT_EQ(ask(config), "ok");
}

TEST_F(TlsTest, AServerOfAnotherAuthorityIsRejected) {
  TlsServer server(tls_of(authority_->issue_local()));
  expect_tls_error(config_for(*server, other_.get()), "unable to get local issuer certificate");
  EXPECT_TRUE(eventually([&] { return server->failed_handshakes() > 0; }));
  EXPECT_EQ(server->failed_handshakes(), 1) << "it was tried again";
}

TEST_F(TlsTest, WithoutAnAuthorityUsesTheSystems) {
  TlsServer server(tls_of(authority_->issue_local()));
  expect_tls_error(config_for(*server), "unable to get local issuer certificate");
}

TEST_F(TlsTest, TheConfiguredAuthorityReplacesTheSystems) {
  // A client with a configured CA ignores the system's CAs.
  TlsServer server(tls_of(authority_->issue_local()));
  write_file(dir_ / "system.pem", authority_->certificate());
  const ScopedEnv env("SSL_CERT_FILE", (dir_ / "system.pem").string());
  expect_tls_error(config_for(*server, other_.get()), "unable to get local issuer certificate");
}

TEST_F(TlsTest, AnExpiredCertificateIsRejected) {
  TlsServer server(tls_of(
      authority_->issue({.common_name = "old", .names = {"IP:127.0.0.1"}, .expired = true})));
  expect_tls_error(config_for(*server, authority_.get()), "expired");
}

TEST_F(TlsTest, ACertificateForAnotherNameIsRejected) {
  TlsServer server(
      tls_of(authority_->issue({.common_name = "127.0.0.1", .names = {"DNS:other.test"}})));
  expect_tls_error(config_for(*server, authority_.get()), "127.0.0.1");
}

TEST_F(TlsTest, AnInvalidAuthorityIsRejected) {
  TlsServer server(tls_of(authority_->issue_local()));
  rest::Config config = config_for(*server);
  config.ca_data = "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(
      [&] { ask(config); },
      AnyOf(testing::Throws<rest::ConfigError>(),
            testing::Throws<TransportError>(testing::Property(&TransportError::kind, Kind::kTls))));
}

TEST_F(TlsTest, AServerWithoutTlsIsATlsError) {
  HttpServer plain(HttpServer::answering([](const HttpRequest&) { return HttpResponse{}; }));
  rest::Config config = config_for(plain, authority_.get());
  config.server = "https://127.0.0.1:" + std::to_string(plain.port());
  // The server reads the handshake as the start of a very long request, or responds in plain text.
  HttpServer answers([](HttpConnection& c) {
    c.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    c.wait_for_close();
  });
  config.server = "https://127.0.0.1:" + std::to_string(answers.port());
  EXPECT_EQ(kind_thrown([&] { ask(config); }), Kind::kTls);
}

TEST_F(TlsTest, AConnectionLostInTheHandshakeIsBroken) {
  HttpServer leaves([](HttpConnection&) {});
  rest::Config config = config_for(leaves, authority_.get());
  config.server = "https://127.0.0.1:" + std::to_string(leaves.port());
  // (A read would be retried for seconds.)
  const rest::Client client(config);
  EXPECT_EQ(kind_thrown([&] { client.resource<k8s::core::v1::Pod>("shop").remove("web"); }),
            Kind::kBroken);
}

TEST_F(TlsTest, TheExpectedNameMayBeAnother) {
  TlsServer server(
      tls_of(authority_->issue({.common_name = "x", .names = {"DNS:kubernetes.default.svc"}})));
  rest::Config config = config_for(*server, authority_.get());
  expect_tls_error(config, "127.0.0.1");
  config.server_name = "kubernetes.default.svc";
  EXPECT_EQ(ask(config), "ok");
  EXPECT_EQ(server.last().server_name, "kubernetes.default.svc");
  EXPECT_EQ(server.last().host, "127.0.0.1:" + std::to_string(server->port()));
  config.server_name = "elsewhere.test";
  expect_tls_error(config, "elsewhere.test");
}

TEST_F(TlsTest, InsecureChecksNothing) {
  TlsServer server(
      tls_of(other_->issue({.common_name = "x", .names = {"DNS:other.test"}, .expired = true})));
  rest::Config config = config_for(*server);
  config.insecure = true;
  EXPECT_EQ(ask(config), "ok");
}

/// The configuration of a client with a certificate.
rest::Config config_as(const KeyPair& client, const HttpServer& server,
                       const CertificateAuthority& authority) {
  rest::Config config = config_for(server, &authority);
  config.client_cert_data = client.certificate;
  config.client_key_data = client.key;
  return config;
}

TEST_F(TlsTest, AClientSendsItsCertificate) {
  TlsServer server(mutual());
  const KeyPair jane = other_->issue({.common_name = "jane"});
  rest::Config config = config_as(jane, *server, *authority_);
  EXPECT_EQ(ask(config), "ok");
  EXPECT_EQ(server.last().client_name, "jane");

  write_file(dir_ / "cert.pem", jane.certificate);
  write_file(dir_ / "key.pem", jane.key);
  rest::Config files = config_for(*server, authority_.get());
  files.client_cert_file = (dir_ / "cert.pem").string();
  files.client_key_file = (dir_ / "key.pem").string();
  EXPECT_EQ(ask(files), "ok");
  EXPECT_EQ(server.last().client_name, "jane");
}

TEST_F(TlsTest, AnUnacceptedClientCertificateIsReported) {
  TlsServer server(mutual());
  expect_tls_error(config_for(*server, authority_.get()), "certificate required");
  EXPECT_TRUE(eventually([&] { return server->failed_handshakes() > 0; }));
  EXPECT_EQ(server->failed_handshakes(), 1) << "it was tried again";

  const KeyPair stranger = authority_->issue({.common_name = "stranger"});
  rest::Config config = config_for(*server, authority_.get());
  config.client_cert_data = stranger.certificate;
  config.client_key_data = stranger.key;
  expect_tls_error(config, "unknown ca");
}

TEST_F(TlsTest, ANewClientCertificateUsesANewConnection) {
  TlsServer server(mutual());
  const auto write_pair = [&](const std::string& name) {
    const KeyPair pair = other_->issue({.common_name = name});
    write_file(dir_ / "key.pem", pair.key);
    write_file(dir_ / "cert.pem", pair.certificate);
  };
  write_pair("before");
  rest::Config config = config_for(*server, authority_.get());
  config.client_cert_file = (dir_ / "cert.pem").string();
  config.client_key_file = (dir_ / "key.pem").string();
  const Client client{config};
  client.get_raw("/readyz");
  client.get_raw("/readyz");
  EXPECT_EQ(server->connections(), 1);
  EXPECT_EQ(server.last().client_name, "before");
  write_pair("after");
  // Files are checked once a second.
  EXPECT_TRUE(eventually([&] {
    client.get_raw("/readyz");
    return server.last().client_name == "after";
  }));
  EXPECT_EQ(server->connections(), 2);
}

TEST_F(TlsTest, ServersWithoutAlpnUseHttp1) {
  HttpServerTls tls = tls_of(authority_->issue_local());
  tls.alpn = false;
  TlsServer server(tls);
  EXPECT_EQ(ask(config_for(*server, authority_.get())), "ok");
}

TEST_F(TlsTest, NoKeyAppearsInAnError) {
  TlsServer server(mutual());
  const KeyPair jane = other_->issue({.common_name = "jane"});
  rest::Config config = config_as(jane, *server, *other_);
  config.bearer_token = "secret-token";
  const auto error = thrown<TransportError>([&] { ask(config); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), Not(AnyOf(HasSubstr("PRIVATE KEY"), HasSubstr("secret-token"))));
}

}  // namespace
}  // namespace lookout::test
