// The certificate of a webhook server, and its replacement.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/controller/webhook_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::controller {
namespace {

class WebhookCertificateTest : public WebhookFixture {
 protected:
  static bool answers(const HttpsCaller& caller) {
    const HttpsAnswer answer =
        caller({.path = "/validate", .body = review("1", "CREATE", website(1))});
    return answer.status == 200;
  }
};

TEST_F(WebhookCertificateTest, AreRequiredAtTheStart) {
  std::filesystem::remove(dir_ / "tls.key");
  try {
    const WebhookServer server(loop_, options());
    FAIL() << "there is no key";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("tls.key"));
  }
  write({authority_->issue_local().certificate, authority_->issue_local().key});
  EXPECT_THROW(WebhookServer(loop_, options()), Error);
}

TEST_F(WebhookCertificateTest, AreReplacedWhileRequestsRun) {
  WebhookServer server(loop_, options());
  allow_all(server);
  const Serving serving(server);
  const HttpsCaller before = caller(server);
  const HttpsCaller after(server.port(), other_authority_->certificate());
  EXPECT_TRUE(answers(before));
  EXPECT_FALSE(answers(after));

  // Every request gets a response, from one certificate or the other.
  std::atomic<bool> replaced{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> callers;
  callers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (!replaced) {
        if (!answers(before) && !answers(after)) ++failures;
      }
    });
  }
  write(other_authority_->issue_local());
  EXPECT_TRUE(test::eventually([&] { return answers(after); }));
  replaced = true;
  for (auto& each : callers) each.join();
  EXPECT_EQ(failures, 0);
  EXPECT_FALSE(answers(before));
}

TEST_F(WebhookCertificateTest, AreReplacedByARename) {
  WebhookServer server(loop_, options());
  allow_all(server);
  const Serving serving(server);
  const test::KeyPair pair = other_authority_->issue_local();
  test::write_file(dir_ / "new.crt", pair.certificate);
  test::write_file(dir_ / "new.key", pair.key);
  std::filesystem::rename(dir_ / "new.crt", dir_ / "tls.crt");
  std::filesystem::rename(dir_ / "new.key", dir_ / "tls.key");
  const HttpsCaller after(server.port(), other_authority_->certificate());
  EXPECT_TRUE(test::eventually([&] { return answers(after); }));
}

TEST_F(WebhookCertificateTest, TheLastValidPairStaysUntilAnotherIsValid) {
  WebhookServer server(loop_, options());
  allow_all(server);
  const Serving serving(server);
  const auto errors = [&] { return metric(server, "certwatcher_read_certificate_errors_total"); };
  const test::KeyPair pair = other_authority_->issue_local();
  const double before = errors();
  test::write_file(dir_ / "tls.crt", pair.certificate);
  EXPECT_TRUE(test::eventually([&] { return errors() > before; }));
  EXPECT_TRUE(answers(caller(server)));

  std::filesystem::remove(dir_ / "tls.key");
  const double without_a_key = errors();
  EXPECT_TRUE(test::eventually([&] { return errors() > without_a_key; }));
  EXPECT_TRUE(answers(caller(server)));

  const double reads = metric(server, "certwatcher_read_certificate_total");
  test::write_file(dir_ / "tls.key", pair.key);
  const HttpsCaller after(server.port(), other_authority_->certificate());
  EXPECT_TRUE(test::eventually([&] { return answers(after); }));
  EXPECT_GT(metric(server, "certwatcher_read_certificate_total"), reads);
}

TEST_F(WebhookCertificateTest, ClientsNeedOneIfConfigured) {
  const test::CertificateAuthority clients("clients");
  test::write_file(dir_ / "ca.crt", clients.certificate());
  WebhookOptions with_clients = options();
  with_clients.client_ca_name = "ca.crt";
  WebhookServer server(loop_, with_clients);
  allow_all(server);
  const Serving serving(server);
  EXPECT_FALSE(answers(caller(server)));
  const auto with = [&](const test::KeyPair& pair) {
    return answers(HttpsCaller(server.port(), authority_->certificate(), pair));
  };
  EXPECT_TRUE(with(clients.issue({.common_name = "kube-apiserver"})));
  EXPECT_FALSE(with(authority_->issue({.common_name = "stranger"})));

  // The client authority is reloaded as well.
  const test::CertificateAuthority others("other clients");
  test::write_file(dir_ / "ca.crt", others.certificate());
  EXPECT_TRUE(test::eventually([&] { return with(others.issue({.common_name = "new"})); }));
  EXPECT_FALSE(with(clients.issue({.common_name = "kube-apiserver"})));
}

}  // namespace
}  // namespace lookout::controller
