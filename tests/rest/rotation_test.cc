// Certificate authorities that are replaced while a client runs, and TLS requirements.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "rest/ca_source.h"
#include "tests/rest/client_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using rest::Client;
using testing::ThrowsMessage;

HttpServer::Script answering_ok() {
  return HttpServer::answering([](const HttpRequest&) -> HttpResponse {
    return {.body = "ok", .content_type = "text/plain"};
  });
}

class RotationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    before_ = std::make_unique<CertificateAuthority>("before");
    after_ = std::make_unique<CertificateAuthority>("after");
  }
  static void TearDownTestSuite() {
    before_.reset();
    after_.reset();
  }

  rest::Config config_for_file(const HttpServer& server) const {
    rest::Config config = config_for(server);
    config.ca_file = file_;
    return config;
  }

  static std::string ask(const Client& client) {
    return client.get_raw("/readyz", {.timeout = std::chrono::seconds(30)});
  }

  static inline std::unique_ptr<CertificateAuthority> before_;
  static inline std::unique_ptr<CertificateAuthority> after_;
  const TempDir dir_;
  const std::string file_ = (dir_ / "ca.crt").string();
};

TEST_F(RotationTest, ANewAuthorityIsTrustedWithoutARestart) {
  write_file(file_, before_->certificate());
  auto server = std::make_unique<HttpServer>(answering_ok(), tls_of(after_->issue_local()));
  const Client client{config_for_file(*server)};
  EXPECT_EQ(kind_thrown([&] { ask(client); }), Kind::kTls);
  write_file(file_, after_->certificate());
  EXPECT_TRUE(eventually([&] {
    try {
      return ask(client) == "ok";
    } catch (const rest::TransportError&) {
      return false;  // the file is checked once a second
    }
  }));
}

TEST_F(RotationTest, ARemovedAuthorityIsNotTrusted) {
  write_file(file_, before_->certificate());
  HttpServer server(answering_ok(), tls_of(before_->issue_local()));
  const Client client{config_for_file(server)};
  EXPECT_EQ(ask(client), "ok");
  write_file(file_, after_->certificate());
  EXPECT_TRUE(eventually([&] {
    try {
      ask(client);
      return false;
    } catch (const rest::TransportError& e) {
      return e.kind() == Kind::kTls;
    }
  }));
}

TEST_F(RotationTest, AnInvalidAuthorityDoesNotReplaceAValidOne) {
  write_file(file_, before_->certificate());
  rest::Config config;
  config.ca_file = file_;
  rest::detail::CaSource source(config);
  const auto good = source.current();
  for (const char* text : {"", "nonsense"}) {
    write_file(file_, text);
    // The same pointer, even after the next check of the file.
    EXPECT_FALSE(eventually([&] { return source.current() != good; }, std::chrono::seconds(2)));
  }
  write_file(file_, before_->certificate() + after_->certificate());
  EXPECT_TRUE(eventually([&] { return source.current() != good; }));
  EXPECT_EQ(*source.current(), before_->certificate() + after_->certificate());
}

// Otherwise the client would trust the system's authorities.
TEST_F(RotationTest, AFileWithoutACertificateIsAnErrorAtTheStart) {
  rest::Config config;
  config.server = "https://127.0.0.1:1";
  config.ca_file = file_;
  for (const char* text : {"", "\n", "nonsense"}) {
    write_file(file_, text);
    EXPECT_THAT([&] { Client{config}; }, ThrowsMessage<rest::ConfigError>(HasSubstr(file_)))
        << text;
  }
  config.ca_file.clear();
  config.ca_data = "\n";
  EXPECT_THAT([&] { Client{config}; }, ThrowsMessage<rest::ConfigError>(HasSubstr("ca_data")));
}

// As in Go. libcurl alone would accept the common name.
TEST_F(RotationTest, ACertificateWithOnlyACommonNameIsRejected) {
  HttpServer server(answering_ok(), tls_of(before_->issue({.common_name = "localhost"})));
  rest::Config config = config_for(server, before_.get());
  config.server_name = "localhost";
  EXPECT_EQ(kind_thrown([&] { ask(Client{config}); }), Kind::kTls);
}

TEST_F(RotationTest, TheMinimumTlsVersionMayBeRaised) {
  HttpServer server(answering_ok(), tls_of(before_->issue_local()));
  rest::Config config = config_for(server, before_.get());
  config.min_tls_version = rest::TlsVersion::k13;
  EXPECT_EQ(ask(Client{config}), "ok");
}

}  // namespace
}  // namespace lookout::test
