// Service account tokens: their users and lifetimes.
#include "apiserver/auth/service_account_tokens.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/auth/authenticator.h"
#include "lookout/api/error.h"
#include "lookout/api/time.h"
#include "lookout/base/base64.h"
#include "lookout/rest/subresources.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
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

TEST(TokenSigner, VerifiesItsOwnTokensDuringTheirLifetime) {
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
  // The issuing server's clock may be off by a minute.
  EXPECT_TRUE(signer.verify(token, 2060));
  EXPECT_FALSE(signer.verify(token, 2061));
  EXPECT_TRUE(signer.verify(token, 940));
  EXPECT_FALSE(signer.verify(token, 939));
}

TEST(TokenSigner, RejectsForeignAndMalformedTokens) {
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

TEST(TokenSigner, ReadsKeysFromFiles) {
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

/// Base64 for URLs, without padding.
std::string url_base64(std::string_view bytes) {
  std::string out = encode_base64(bytes);
  while (out.ends_with('=')) out.pop_back();
  for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return out;
}

TEST(TokenSigner, PublishesItsPublicKey) {
  const lookout::test::TempDir dir;
  const auto key_of = [&](std::vector<std::string> arguments) {
    const std::string file = (dir / "key.pem").string();
    for (std::string& argument : arguments) argument = argument == "FILE" ? file : argument;
    EXPECT_EQ(lookout::test::run_command(arguments).status, 0);
    return file;
  };
  // The output of openssl(1) for the key: the numbers are at its end.
  const auto der_of = [&](const std::string& file) {
    const std::string out = (dir / "key.der").string();
    EXPECT_EQ(lookout::test::run_command(
                  {"openssl", "pkey", "-in", file, "-pubout", "-outform", "DER", "-out", out})
                  .status,
              0);
    return lookout::test::read_file(out);
  };
  const std::string rsa = key_of({"openssl", "genrsa", "-out", "FILE", "2048"});
  const std::string rsa_der = der_of(rsa);
  const TokenSigner signer(rsa, "i");
  const api::Object shown = api::Object::parse(signer.public_key());
  EXPECT_EQ(shown["kty"].as_string(), "RSA");
  EXPECT_EQ(shown["alg"].as_string(), "RS256");
  EXPECT_EQ(shown["e"].as_string(), "AQAB");
  EXPECT_EQ(shown["n"].as_string(),
            url_base64(std::string_view(rsa_der).substr(rsa_der.size() - 5 - 256, 256)));
  // The tokens name the key.
  const std::string token = signer.sign(claims());
  const std::string header =
      fmt::format(R"({{"alg":"RS256","kid":"{}"}})", shown["kid"].as_string());
  EXPECT_TRUE(token.starts_with(url_base64(header) + ".")) << header;

  const std::string ec =
      key_of({"openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "FILE"});
  const std::string ec_der = der_of(ec);
  const std::string_view point = std::string_view(ec_der).substr(ec_der.size() - 64);
  const api::Object on_curve = api::Object::parse(TokenSigner(ec, "i").public_key());
  EXPECT_EQ(on_curve["kty"].as_string(), "EC");
  EXPECT_EQ(on_curve["crv"].as_string(), "P-256");
  EXPECT_EQ(on_curve["alg"].as_string(), "ES256");
  EXPECT_EQ(on_curve["x"].as_string(), url_base64(point.substr(0, 32)));
  EXPECT_EQ(on_curve["y"].as_string(), url_base64(point.substr(32)));
}

TEST(Authenticator, IgnoresACertificateWithoutAName) {
  const TokenSigner signer("", "i");
  auth::AuthenticatorOptions options;
  options.certificates = true;
  const auth::Authenticator authenticator(std::move(options), signer, {});
  http::Request request;
  request.peer = http::PeerCertificate{true, "", {"dev"}};
  const auto nobody = authenticator.authenticate(request);
  ASSERT_TRUE(nobody);
  EXPECT_TRUE(nobody->user.is_anonymous());
  EXPECT_EQ(nobody->user.groups, std::vector<std::string>{"system:unauthenticated"});
  request.peer->valid = false;
  EXPECT_FALSE(authenticator.authenticate(request));
}

class ServiceAccountTokens : public ClientTest {
 protected:
  ServiceAccountTokens() : ClientTest(options()) {
    in(kAccounts).create(from_json(R"({"metadata":{"name":"cart"}})"));
  }
  static ServerOptions options() {
    ServerOptions out;
    out.authorization = Authorization::kRbac;
    return out;
  }

  api::Object request(const std::string& spec) const {
    return in(kAccounts).create_subresource("cart", "token",
                                            from_json(fmt::format(R"({{"spec":{{{}}}}})", spec)));
  }
  /// The user of the token, or the error code.
  std::string bearer(std::string_view token) const {
    rest::Config config = server_.client_config();
    config.bearer_token = token;
    try {
      const auto review = rest::Client(config)
                              .resource({"authentication.k8s.io", "v1", "SelfSubjectReview",
                                         "selfsubjectreviews", false})
                              .create(from_json("{}"));
      return std::string(review["status"]["userInfo"]["username"].as_string());
    } catch (const api::StatusError& e) {
      return std::to_string(e.status().code);
    }
  }

  inline static const api::Resource kAccounts{"", "v1", "ServiceAccount", "serviceaccounts", true};
};

constexpr const char* kCart = "system:serviceaccount:default:cart";

TEST_F(ServiceAccountTokens, CanBeVerifiedWithPublishedKeys) {
  const auto get = [&](const std::string& path, const char* accept, const char* method = "GET") {
    return http(server_.port(), method, path, "", {{"Accept", accept}});
  };
  const HttpAnswer about = get("/.well-known/openid-configuration", "*/*");
  EXPECT_EQ(about.code, 200);
  EXPECT_EQ(about.headers.at("cache-control"), "public, max-age=3600");
  EXPECT_EQ(about.body, fmt::format(R"({{"issuer":"https://kubernetes.default.svc.cluster.local",)"
                                    R"("jwks_uri":"http://127.0.0.1:{}/openid/v1/jwks",)"
                                    R"("response_types_supported":["id_token"],)"
                                    R"("subject_types_supported":["public"],)"
                                    R"("id_token_signing_alg_values_supported":["ES256"]}})",
                                    server_.port()));
  const HttpAnswer keys = get("/openid/v1/jwks/", "application/jwk-set+json");
  EXPECT_EQ(keys.code, 200);
  EXPECT_EQ(keys.headers.at("content-type"), "application/jwk-set+json");
  const auto set = api::Object::parse(keys.body);
  EXPECT_EQ(set["keys"].size(), 1);
  EXPECT_EQ(set["keys"][0]["use"].as_string(), "sig");
  EXPECT_EQ(get("/openid/v1/jwks", "application/json").code, 406);
  EXPECT_EQ(get("/.well-known/openid-configuration", "text/html").code, 406);
  EXPECT_EQ(get("/openid/v1/jwks", "*/*", "POST").code, 405);
  EXPECT_EQ(get("/openid/v1", "*/*").code, 404);
}

TEST_F(ServiceAccountTokens, IdentifyTheirAccount) {
  const auto answer = request(R"("expirationSeconds":600)");
  EXPECT_EQ(answer["spec"]["audiences"].to_json(),
            R"(["https://kubernetes.default.svc.cluster.local"])");
  EXPECT_FALSE(answer["status"]["expirationTimestamp"].as_string().empty());
  const std::string token(answer["status"]["token"].as_string());
  EXPECT_EQ(bearer(token), kCart);
  EXPECT_EQ(bearer(token), kCart);  // from the cache
  // The account is recreated with another uid.
  in(kAccounts).remove("cart");
  EXPECT_EQ(bearer(token), "401");
  in(kAccounts).create(from_json(R"({"metadata":{"name":"cart"}})"));
  EXPECT_EQ(bearer(token), "401");
}

TEST_F(ServiceAccountTokens, EndWithTheBoundPod) {
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

TEST(TokenObjects, CountAsGoneAMinuteAfterTheirDeletion) {
  const auto now = api::parse_time("2026-11-28T12:01:30Z");
  const auto deleted = [](const std::string& time) {
    return from_json(R"({"metadata":{"uid":"u-1","deletionTimestamp":")" + time + R"("}})");
  };
  EXPECT_FALSE(auth::is_gone(from_json(R"({"metadata":{"uid":"u-1"}})"), "u-1", *now));
  EXPECT_TRUE(auth::is_gone(from_json(R"({"metadata":{"uid":"u-2"}})"), "u-1", *now));
  EXPECT_TRUE(auth::is_gone(api::Object(), "u-1", *now));
  // A finalizer may keep it.
  EXPECT_FALSE(auth::is_gone(deleted("2026-11-28T12:00:30Z"), "u-1", *now));
  EXPECT_TRUE(auth::is_gone(deleted("2026-11-28T12:00:29Z"), "u-1", *now));
}

TEST_F(ServiceAccountTokens, AreValidOnlyForTheirAudience) {
  const std::string token(
      lookout::test::held(request(R"("audiences":["vault"])"))["status"]["token"].as_string());
  EXPECT_EQ(bearer(token), "401");
  const api::Resource reviews{"authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false};
  const auto review = [&](const char* audience) {
    return all(reviews).create(from_json(
        fmt::format(R"({{"spec":{{"token":"{}","audiences":["{}"]}}}})", token, audience)));
  };
  const auto good = review("vault");
  EXPECT_TRUE(good["status"]["authenticated"].as_bool());
  EXPECT_EQ(good["status"]["user"]["username"].as_string(), kCart);
  EXPECT_EQ(good["status"]["audiences"].to_json(), R"(["vault"])");
  EXPECT_FALSE(lookout::test::held(review("others"))["status"]["authenticated"].as_bool());
}

TEST_F(ServiceAccountTokens, ResponsesNameTheAccount) {
  const api::Object account = in(kAccounts).get("cart");
  const api::Object answer = request("");
  EXPECT_EQ(answer.name(), "cart");
  EXPECT_EQ(answer.uid(), account.uid());
  EXPECT_EQ(answer["spec"]["expirationSeconds"].as_int(), 3600);
}

/// The claims of a token, which is not verified.
api::Object claims_in(std::string_view token) {
  std::string body(token.substr(token.find('.') + 1));
  body.resize(body.find('.'));
  for (char& c : body) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (body.size() % 4 != 0) body += '=';
  return api::Object::parse(decode_base64(body).value_or(std::string()));
}

TEST_F(ServiceAccountTokens, LastAYearInTheVolumesOfPods) {
  pods().create(pod("web", R"(,"serviceAccountName":"cart")"));
  const auto request_for = [&](int seconds, const std::string& more) {
    const api::Object answer = request(fmt::format(
        R"("expirationSeconds":{},"boundObjectRef":{{"apiVersion":"v1","kind":"Pod","name":"web"}}{})",
        seconds, more));
    const auto expires = api::parse_time(answer["status"]["expirationTimestamp"].as_string());
    const api::Object claims = claims_in(answer["status"]["token"].as_string());
    EXPECT_TRUE(expires && std::chrono::floor<std::chrono::seconds>(*expires).time_since_epoch() ==
                               std::chrono::seconds(claims["iat"].as_int() + seconds));
    return claims;
  };
  // As requested by a kubelet; the client must still renew it after an hour.
  const api::Object extended = request_for(3607, "");
  EXPECT_EQ(extended["exp"].as_int() - extended["iat"].as_int(), 365 * 24 * 3600);
  EXPECT_EQ(extended["kubernetes.io"]["warnafter"].as_int(), extended["iat"].as_int() + 3607);
  for (const api::Object& other :
       {request_for(3600, ""), request_for(3607, R"(,"audiences":["vault"])")}) {
    EXPECT_LT(other["exp"].as_int() - other["iat"].as_int(), 3610);
    EXPECT_FALSE(other["kubernetes.io"]["warnafter"].exists());
  }
}

TEST_F(ServiceAccountTokens, MayImpersonateTheNodeOfThePod) {
  const api::Resource nodes{"", "v1", "Node", "nodes", false};
  all(nodes).create(from_json(R"({"metadata":{"name":"n1"}})"));
  pods().create(pod("web", R"(,"serviceAccountName":"cart","nodeName":"n1")"));
  const api::Object answer =
      request(R"("boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"web"})");
  all({"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false})
      .create(from_json(R"({"metadata":{"name":"agent"},"rules":[
        {"verbs":["impersonate:associated-node"],"apiGroups":["authentication.k8s.io"],
         "resources":["nodes"]},
        {"verbs":["impersonate-on:associated-node:create"],
         "apiGroups":["authentication.k8s.io"],"resources":["selfsubjectreviews"]}]})"));
  all({"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false})
      .create(from_json(R"({"metadata":{"name":"agent"},
        "roleRef":{"kind":"ClusterRole","name":"agent"},
        "subjects":[{"kind":"ServiceAccount","name":"cart","namespace":"default"}]})"));
  const auto who_as = [&](const char* user) {
    rest::Config config = server_.client_config();
    config.bearer_token = answer["status"]["token"].as_string();
    config.as.user = user;
    const api::Resource reviews{"authentication.k8s.io", "v1", "SelfSubjectReview",
                                "selfsubjectreviews", false};
    return rest::Client(config).resource(reviews).create(from_json("{}"));
  };
  EXPECT_EQ(lookout::test::held(who_as("system:node:n1"))["status"]["userInfo"].to_json(),
            R"({"username":"system:node:n1","groups":["system:nodes","system:authenticated"]})");
  EXPECT_EQ(status_of([&] { who_as("system:node:n2"); }).code, 403);
}

TEST_F(ServiceAccountTokens, AreNotCreatedInATerminatingNamespace) {
  const api::Resource namespaces{"", "v1", "Namespace", "namespaces", false};
  all(namespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  in(kAccounts, "shop")
      .create(from_json(R"({"metadata":{"name":"cart","finalizers":["example.com/stay"]}})"));
  all(namespaces).remove("shop");
  const api::Status status = status_of(
      [&] { in(kAccounts, "shop").create_subresource("cart", "token", from_json("{}")); });
  EXPECT_EQ(status.code, 403);
  EXPECT_THAT(status.message, HasSubstr("because it is being terminated"));
}

TEST_F(ServiceAccountTokens, NeedAnExistingAccount) {
  const auto post = [&](const char* account, const char* body) {
    return http(server_.port(), "POST",
                fmt::format("/api/v1/namespaces/default/serviceaccounts/{}/token", account), body)
        .code;
  };
  EXPECT_EQ(post("nobody", "{}"), 404);
  EXPECT_EQ(post("cart", R"({"kind":"Pod","apiVersion":"v1"})"), 400);
  EXPECT_EQ(post("cart", "{}"), 201);
}

TEST_F(ServiceAccountTokens, LastAtLeastTenMinutes) {
  const api::Status status = status_of([&] { request(R"("expirationSeconds":599)"); });
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("may not specify a duration less than 10 minutes"));
}

}  // namespace
}  // namespace lookout::apiserver
