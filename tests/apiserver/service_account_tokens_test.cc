// Tokens of service accounts: who they stand for, and until when.
#include "apiserver/auth/service_account_tokens.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "lookout/api/error.h"
#include "lookout/rest/subresources.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/support/files.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace lookout::apiserver {
namespace {

using auth::TokenClaims;
using auth::TokenSigner;

TokenClaims claims() {
  TokenClaims out{"shop", "cart", "u-1", {"Pod", "web", "u-2"}, {"Node", "n1", "u-3"}};
  out.audiences = {"api", "vault"};
  out.id = "id-1";
  out.issued = 1000;
  out.expires = 2000;
  return out;
}

TEST(TokenSigner, VerifiesItsOwnTokensInTheirTime) {
  const TokenSigner signer("", "https://issuer");
  const std::string token = signer.sign(claims());
  EXPECT_EQ(std::count(token.begin(), token.end(), '.'), 2);
  EXPECT_EQ(token.find_first_of("=+/"), std::string::npos);
  const auto read = signer.verify(token, 1000);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bound.uid, "u-2");
  EXPECT_EQ(read->node.name, "n1");
  const auth::User user = read->user();
  EXPECT_EQ(user.name, "system:serviceaccount:shop:cart");
  EXPECT_EQ(user.uid, "u-1");
  EXPECT_EQ(user.groups,
            (std::vector<std::string>{"system:serviceaccounts", "system:serviceaccounts:shop"}));
  EXPECT_EQ(user.extra.at("authentication.kubernetes.io/pod-name").at(0), "web");
  EXPECT_EQ(user.extra.at("authentication.kubernetes.io/credential-id").at(0), "JTI=id-1");
  EXPECT_TRUE(signer.verify(token, 1999));
  EXPECT_FALSE(signer.verify(token, 2000));
  EXPECT_FALSE(signer.verify(token, 999));
}

TEST(TokenSigner, RefusesTokensOfOthersAndBrokenOnes) {
  const TokenSigner signer("", "https://issuer");
  const TokenSigner other("", "https://issuer");
  const std::string token = signer.sign(claims());
  EXPECT_FALSE(other.verify(token, 1500));
  for (std::size_t i = 0; i < token.size(); i += 7) {
    std::string broken = token;
    broken[i] = broken[i] == 'A' ? 'B' : 'A';
    if (broken != token) {
      EXPECT_FALSE(signer.verify(broken, 1500)) << i;
    }
  }
  const std::size_t last = token.rfind('.');
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("a.b.c"),
        token.substr(0, last), token.substr(0, last + 1), token + "A", "." + token})
    EXPECT_FALSE(signer.verify(text, 1500)) << text;
}

TEST(TokenSigner, TakesKeysFromFiles) {
  const lookout::test::TempDir dir;
  const std::string rsa = (dir / "rsa.pem").string();
  const std::string ec = (dir / "ec.pem").string();
  const std::string wrong = (dir / "wrong.pem").string();
  const auto openssl = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    ASSERT_EQ(lookout::test::run_command(arguments).status, 0);
  };
  openssl({"genrsa", "-out", rsa, "2048"});
  openssl({"ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", ec});
  openssl({"ecparam", "-name", "secp384r1", "-genkey", "-noout", "-out", wrong});
  for (const std::string& file : {rsa, ec}) {
    const std::string token = TokenSigner(file, "i").sign(claims());
    EXPECT_TRUE(TokenSigner(file, "i").verify(token, 1500)) << file;
    EXPECT_FALSE(TokenSigner(file, "j").verify(token, 1500)) << file;
  }
  EXPECT_THROW(TokenSigner(wrong, "i"), Error);
  EXPECT_THROW(TokenSigner((dir / "none").string(), "i"), Error);
}

class ServiceAccountTokens : public ClientTest {
 protected:
  ServiceAccountTokens() : ClientTest(options()) {
    in(kAccounts).create(json(R"({"metadata":{"name":"cart"}})"));
  }
  static ServerOptions options() {
    ServerOptions out;
    out.authorization = Authorization::kRbac;
    return out;
  }

  api::Object request(const std::string& spec) const {
    return in(kAccounts).create_subresource("cart", "token",
                                            json(fmt::format(R"({{"spec":{{{}}}}})", spec)));
  }
  /// The user that the server takes the bearer for, or the code of the refusal.
  std::string bearer(std::string_view token) const {
    rest::Config config = server_.client_config();
    config.bearer_token = token;
    try {
      const auto review = rest::Client(config)
                              .resource({"authentication.k8s.io", "v1", "SelfSubjectReview",
                                         "selfsubjectreviews", false})
                              .create(json("{}"));
      return std::string(review["status"]["userInfo"]["username"].as_string());
    } catch (const api::StatusError& e) {
      return std::to_string(e.status().code);
    }
  }

  inline static const api::Resource kAccounts{"", "v1", "ServiceAccount", "serviceaccounts", true};
};

constexpr const char* kCart = "system:serviceaccount:default:cart";

TEST_F(ServiceAccountTokens, StandForTheirAccount) {
  const auto answer = request(R"("expirationSeconds":600)");
  EXPECT_EQ(answer["spec"]["audiences"].to_json(),
            R"(["https://kubernetes.default.svc.cluster.local"])");
  EXPECT_FALSE(answer["status"]["expirationTimestamp"].as_string().empty());
  const std::string token(answer["status"]["token"].as_string());
  EXPECT_EQ(bearer(token), kCart);
  EXPECT_EQ(bearer(token), kCart);  // from the cache
  // The account is another one now.
  in(kAccounts).remove("cart");
  EXPECT_EQ(bearer(token), "401");
  in(kAccounts).create(json(R"({"metadata":{"name":"cart"}})"));
  EXPECT_EQ(bearer(token), "401");
}

TEST_F(ServiceAccountTokens, EndWithThePodThatTheyAreBoundTo) {
  EXPECT_EQ(status_of([&] {
              request(R"("boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"web"})");
            }).code,
            404);
  pods().create(pod("other"));
  EXPECT_EQ(status_of([&] {
              request(R"("boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"other"})");
            }).code,
            400);
  pods().create(pod("web", R"(,"serviceAccountName":"cart")"));
  const auto answer = request(R"("boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"web"})");
  const std::string token(answer["status"]["token"].as_string());
  EXPECT_EQ(bearer(token), kCart);
  pods().remove("web", {.grace_period_seconds = 0});
  EXPECT_EQ(bearer(token), "401");
}

TEST_F(ServiceAccountTokens, AreForTheirAudience) {
  const std::string token(
      lookout::test::held(request(R"("audiences":["vault"])"))["status"]["token"].as_string());
  EXPECT_EQ(bearer(token), "401");
  const api::Resource reviews{"authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false};
  const auto review = [&](const char* audience) {
    return all(reviews).create(
        json(fmt::format(R"({{"spec":{{"token":"{}","audiences":["{}"]}}}})", token, audience)));
  };
  const auto good = review("vault");
  EXPECT_TRUE(good["status"]["authenticated"].as_bool());
  EXPECT_EQ(good["status"]["user"]["username"].as_string(), kCart);
  EXPECT_EQ(good["status"]["audiences"].to_json(), R"(["vault"])");
  EXPECT_FALSE(lookout::test::held(review("others"))["status"]["authenticated"].as_bool());
}

TEST_F(ServiceAccountTokens, LastAtLeastTenMinutes) {
  const api::Status status = status_of([&] { request(R"("expirationSeconds":599)"); });
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("may not specify a duration less than 10 minutes"));
}

}  // namespace
}  // namespace lookout::apiserver
