// Authentication: tokens, client certificates, and anonymous requests.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/json.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/base/base64.h"
#include "lookout/rest/client.h"
#include "lookout/rest/error.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/rest/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/text_case.h"
#include "tests/support/thrown.h"

namespace lookout::apiserver {
namespace {

using namespace std::chrono_literals;

/// "ann [group1 group2]": the authenticated user.
std::string who_am_i(const rest::Client& client) {
  const auto review = client
                          .resource({"authentication.k8s.io", "v1", "SelfSubjectReview",
                                     "selfsubjectreviews", false})
                          .create(api::Object::parse("{}"));
  const auto user = review["status"]["userInfo"];
  std::string groups;
  for (const auto group : user["groups"].elements())
    groups += (groups.empty() ? "" : " ") + std::string(group.as_string());
  return std::string(user["username"].as_string()) + " [" + groups + "]";
}

/// The name of the client's credential; empty if there is none.
std::string credential_of(const rest::Client& client) {
  const auto review = client
                          .resource({"authentication.k8s.io", "v1", "SelfSubjectReview",
                                     "selfsubjectreviews", false})
                          .create(api::Object::parse("{}"));
  return std::string(
      review["status"]["userInfo"]["extra"]["authentication.kubernetes.io/credential-id"][0]
          .as_string());
}

/// 200, or the error code.
int code_for(const rest::Client& client) {
  try {
    client.resource(kPods, "default").list({});
  } catch (const api::StatusError& e) {
    return e.status().code;
  }
  return 200;
}

class Authentication : public testing::Test {
 protected:
  rest::Client with_token(const std::string& token) const {
    return with([&](rest::Config& config) { config.bearer_token = token; });
  }
  rest::Client with(const std::function<void(rest::Config&)>& change) const {
    rest::Config config;
    config.server = server_->url();
    if (config.server.starts_with("https")) config.ca_data = authority_.certificate();
    change(config);
    return rest::Client(config);
  }
  ServerOptions tls_options() const {
    const test::KeyPair pair = authority_.issue_local();
    ServerOptions options;
    options.tls_cert_file = dir_.file("server.crt", pair.certificate);
    options.tls_key_file = dir_.file("server.key", pair.key);
    return options;
  }

  test::TempDir dir_;
  const test::CertificateAuthority authority_;
  std::unique_ptr<Server> server_;
};

TEST_F(Authentication, WithoutConfigurationEverythingIsAllowed) {
  server_ = std::make_unique<Server>();
  EXPECT_EQ(who_am_i(with_token("")), "system:unsecured [system:masters system:authenticated]");
  EXPECT_EQ(code_for(with_token("whatever")), 200);
}

TEST_F(Authentication, TokensIdentifyUsers) {
  ServerOptions options = tls_options();
  options.token_file = dir_.file("tokens",
                                 "secret-1,ann,1,\"dev,ops\"\r\n"
                                 "\n"
                                 "secret-2,bob,2\n"
                                 "\"se,cret\"\"3\",carl,3,dev\n");
  server_ = std::make_unique<Server>(options);
  EXPECT_EQ(who_am_i(with_token("secret-1")), "ann [dev ops system:authenticated]");
  EXPECT_EQ(who_am_i(with_token("secret-2")), "bob [system:authenticated]");
  EXPECT_EQ(who_am_i(with_token("se,cret\"3")), "carl [dev system:authenticated]");
  for (const char* wrong : {"secret", "secret-11", "SECRET-1", "ann"})
    EXPECT_EQ(code_for(with_token(wrong)), 401) << wrong;
  // kube-apiserver's message for anonymous users.
  EXPECT_EQ(code_for(with_token("")), 403);
  // The credentials for clients in the server's own process.
  EXPECT_EQ(code_for(rest::Client(server_->client_config())), 200);
}

struct HeaderCase {
  const char* header;
  int code;
};
void PrintTo(const HeaderCase& c, std::ostream* out) { *out << c.header; }
class AuthorizationHeaders : public Authentication,
                             public testing::WithParamInterface<HeaderCase> {};

TEST_P(AuthorizationHeaders, AreParsedLikeKubeApiserver) {
  ServerOptions options;
  options.token_file = dir_.file("tokens", "secret,ann,1\n");
  server_ = std::make_unique<Server>(options);
  const auto& [header, code] = GetParam();
  const HttpAnswer answer = http(server_->port(), "GET", "/api/v1/namespaces/default/pods", "",
                                 {{"Authorization", header}});
  EXPECT_EQ(answer.code, code) << answer.body;
  if (code != 200) {
    EXPECT_EQ(lookout::test::held(api::Object::parse(answer.body))["kind"].as_string(), "Status");
    EXPECT_THAT(answer.body, Not(HasSubstr("secret")));
  }
}

INSTANTIATE_TEST_SUITE_P(Server, AuthorizationHeaders,
                         testing::Values(HeaderCase{"Bearer secret", 200},
                                         HeaderCase{"bearer secret", 200},
                                         HeaderCase{"Bearer   secret ", 200},
                                         HeaderCase{"Bearer secreT", 401},
                                         HeaderCase{"Bearer secret secret", 401},
                                         // Unknown credentials are treated as none.
                                         HeaderCase{"Bearer", 403}, HeaderCase{"Bearer ", 403},
                                         HeaderCase{"Basic c2VjcmV0", 403},
                                         HeaderCase{"secret", 403}, HeaderCase{"", 403}));

TEST_F(Authentication, UsersWithCredentialsMayImpersonate) {
  ServerOptions options = tls_options();
  options.token_file = dir_.file("tokens", "secret,ann,1\n");
  server_ = std::make_unique<Server>(options);
  const auto as = [&](const std::function<void(rest::Impersonation&)>& change) {
    return who_am_i(with([&](rest::Config& config) {
      config.bearer_token = "secret";
      change(config.as);
    }));
  };
  EXPECT_EQ(as([](auto&) {}), "ann [system:authenticated]");
  EXPECT_EQ(as([](auto& to) { to.user = "bob"; }), "bob [system:authenticated]");
  EXPECT_EQ(as([](auto& to) {
              to.user = "bob";
              to.groups = {"cn=a, dc=b", "dev"};
            }),
            "bob [cn=a, dc=b dev system:authenticated]");
  EXPECT_EQ(as([](auto& to) { to.user = "system:serviceaccount:shop:cart"; }),
            "system:serviceaccount:shop:cart [system:serviceaccounts system:serviceaccounts:shop "
            "system:authenticated]");
  // Anonymous users may see nothing.
  EXPECT_EQ(code_for(with([](rest::Config& config) {
              config.bearer_token = "secret";
              config.as.user = "system:anonymous";
            })),
            403);
}

TEST_F(Authentication, ImpersonationAddsTheGroupOfAllUsersOnce) {
  ServerOptions options;
  options.token_file = dir_.file("tokens", "secret,ann,1,\"dev,system:authenticated\"\n");
  server_ = std::make_unique<Server>(options);
  EXPECT_EQ(who_am_i(with_token("secret")), "ann [dev system:authenticated]");
}

TEST_F(Authentication, IncompleteImpersonationIsRejected) {
  ServerOptions options;
  options.token_file = dir_.file("tokens", "secret,ann,1\n");
  server_ = std::make_unique<Server>(options);
  const auto review = [&](HttpClient::Headers headers) {
    headers.emplace_back("Authorization", "Bearer secret");
    headers.emplace_back("Content-Type", "application/json");
    return http(server_->port(), "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}",
                headers);
  };
  const HttpAnswer all = review({{"Impersonate-User", "bob"},
                                 {"Impersonate-Uid", "7"},
                                 {"Impersonate-Extra-Example.com%2fscopes", "view"},
                                 {"Impersonate-Extra-Example.com%2Fscopes", "edit"},
                                 {"Impersonate-Extra-E%78ample.com%2Fscopes", "list"}});
  ASSERT_EQ(all.code, 201) << all.body;
  EXPECT_EQ(lookout::test::held(api::Object::parse(all.body))["status"]["userInfo"].to_json(),
            R"({"username":"bob","groups":["system:authenticated"],"uid":"7",)"
            R"("extra":{"example.com/scopes":["list","view","edit"]}})");
  for (const HttpClient::Headers& half : {HttpClient::Headers{{"Impersonate-Group", "dev"}},
                                          {{"Impersonate-Uid", "7"}},
                                          {{"Impersonate-Extra-Scopes", "view"}}}) {
    const HttpAnswer answer = review(half);
    EXPECT_EQ(answer.code, 400);
    EXPECT_THAT(answer.body, HasSubstr("without impersonating a user"));
  }
  const HttpAnswer nobody =
      http(server_->port(), "GET", "/api/v1/pods", "", {{"Impersonate-User", "bob"}});
  EXPECT_EQ(nobody.code, 403);
  EXPECT_THAT(nobody.body, HasSubstr("cannot impersonate"));
}

TEST_F(Authentication, AnonymousUsersSeeOnlyHealthAndVersion) {
  ServerOptions options;
  options.token_file = dir_.file("tokens", "secret,ann,1\n");
  server_ = std::make_unique<Server>(options);
  for (const char* path : {"/healthz", "/livez", "/readyz", "/version"})
    EXPECT_EQ(http(server_->port(), "GET", path).code, 200) << path;
  for (const char* path : {"/", "/api", "/apis", "/openapi/v2", "/api/v1/pods", "/nothing"})
    EXPECT_EQ(http(server_->port(), "GET", path).code, 403) << path;
  const HttpAnswer watch = http(server_->port(), "GET", "/api/v1/pods?watch=1");
  EXPECT_EQ(watch.code, 403);
  EXPECT_THAT(watch.body, HasSubstr("cannot watch resource"));
  EXPECT_EQ(http(server_->port(), "DELETE", "/api/v1/namespaces/default").code, 403);
}

TEST_F(Authentication, CertificatesIdentifyUsers) {
  ServerOptions options = tls_options();
  options.client_ca_file = dir_.file("ca.crt", authority_.certificate());
  options.token_file = dir_.file("tokens", "secret,ann,1\n");
  server_ = std::make_unique<Server>(options);
  const auto with_certificate = [&](const test::KeyPair& pair, const std::string& token = "") {
    return with([&](rest::Config& config) {
      config.client_cert_data = pair.certificate;
      config.client_key_data = pair.key;
      config.bearer_token = token;
    });
  };
  const test::KeyPair bob = authority_.issue({.common_name = "bob"});
  EXPECT_EQ(who_am_i(with_certificate(bob)), "bob [system:authenticated]");
  const std::string credential = credential_of(with_certificate(bob));
  EXPECT_THAT(credential, testing::MatchesRegex("X509SHA256=[0-9a-f]{64}"));
  EXPECT_EQ(credential_of(with_certificate(bob)), credential);
  EXPECT_NE(credential_of(with_certificate(authority_.issue({.common_name = "bob"}))), credential);
  // The certificate takes precedence.
  EXPECT_EQ(who_am_i(with_certificate(bob, "secret")), "bob [system:authenticated]");
  EXPECT_EQ(who_am_i(with_token("secret")), "ann [system:authenticated]");
  EXPECT_EQ(code_for(with_token("")), 403);

  const test::CertificateAuthority other("other authority");
  const test::KeyPair stranger = other.issue({.common_name = "bob"});
  EXPECT_EQ(code_for(with_certificate(stranger)), 401);
  EXPECT_EQ(who_am_i(with_certificate(stranger, "secret")), "ann [system:authenticated]");
  EXPECT_EQ(code_for(with_certificate(test::make_certificate("bob"))), 401);
  EXPECT_EQ(code_for(with_certificate(authority_.issue({.common_name = "bob", .expired = true}))),
            401);
  EXPECT_EQ(code_for(rest::Client(server_->client_config())), 200);
}

// Recorded requests to a kube-apiserver 1.36; the responses omit times and decisions.
TEST_F(Authentication, ReviewsHaveManagedFields) {
  ServerOptions options;
  options.token_file = dir_.file("tokens", "SECRET,admin,admin,system:masters\n");
  options.service_account_issuer = "https://kubernetes.default.svc";
  server_ = std::make_unique<Server>(options);
  rest::Client(server_->client_config())
      .resource({"", "v1", "ServiceAccount", "serviceaccounts", true}, "default")
      .create(api::Object::parse(R"({"metadata":{"name":"default"}})"));
  const std::string text = test::read_file(test::testdata("kube-1.36/reviews.jsonl"));
  for (const std::string& line : test::lines(text)) {
    SCOPED_TRACE(line);
    const api::Object recorded = api::Object::parse(line);
    const std::string path(recorded["path"].as_string());
    const HttpAnswer answer = http(server_->port(), "POST", path, recorded["request"].to_json(),
                                   {{"Content-Type", "application/json"},
                                    {"User-Agent", "probe/1"},
                                    {"Authorization", "Bearer SECRET"}});
    EXPECT_EQ(answer.code, 201);
    json::Document ours = api::Object::parse(answer.body).to_document();
    json::Value& metadata = *json::find(ours, "metadata");
    for (const char* field : {"uid", "creationTimestamp"}) json::erase(metadata, field);
    json::for_each(metadata, "managedFields", [](json::Value& one) { json::erase(one, "time"); });
    if (path.ends_with("tokenreviews")) {
      json::erase(*json::find(ours, "status"), "user");
    } else {
      json::erase(ours, "status");
    }
    const std::string theirs = recorded["answer"].to_json();
    EXPECT_TRUE(ours == api::Object::parse(theirs).to_document()) << answer.body;
  }
}

TEST_F(Authentication, AReviewNamesTheAudiencesOfAToken) {
  ServerOptions options;
  options.token_file = dir_.file("tokens", "SECRET,admin,admin,system:masters\n");
  options.service_account_issuer = "https://here";
  server_ = std::make_unique<Server>(options);
  const rest::Client client(server_->client_config());
  const auto review = [&](const std::string& audiences) {
    const api::Object answer =
        client.resource({"authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false})
            .create(api::Object::parse(
                fmt::format(R"({{"spec":{{"token":"SECRET","audiences":{}}}}})", audiences)));
    return answer["status"].to_json();
  };
  EXPECT_THAT(review("[]"), HasSubstr(R"("audiences":["https://here"])"));
  EXPECT_THAT(review(R"(["elsewhere","https://here"])"),
              HasSubstr(R"("audiences":["https://here"])"));
  EXPECT_EQ(review(R"(["elsewhere"])"), R"({"user":{},"error":"invalid bearer token"})");
}

const api::Resource kSigningRequests{"certificates.k8s.io", "v1", "CertificateSigningRequest",
                                     "certificatesigningrequests", false};

/// For the user ann, of the groups dev and system:masters.
constexpr const char* kRequestOfMaster = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHxMIGXAgEAMDUxDDAKBgNVBAoMA2RldjEXMBUGA1UECgwOc3lzdGVtOm1hc3Rl
cnMxDDAKBgNVBAMMA2FubjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIW4ESYq
+V2EIXPNdNJ7TFP01892brAFeHT/fyWRYqbCL+meLeFKOwWV6ek2UFy/GzXHQSQi
CYcCcVG2kZEEtY2gADAKBggqhkjOPQQDAgNJADBGAiEAlQzNj+4CEZpoNQ+sIint
ZFvyyKtR7/HSTnEBagCWdyQCIQDdjDMmZL/1P5w2Yhb5Ro28YW5FkQMIfYwpAx19
rj6tjQ==
-----END CERTIFICATE REQUEST-----
)";
/// For the user ann, of the group dev.
constexpr const char* kRequestOfDeveloper = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHWMH4CAQAwHDEMMAoGA1UECgwDZGV2MQwwCgYDVQQDDANhbm4wWTATBgcqhkjO
PQIBBggqhkjOPQMBBwNCAASFuBEmKvldhCFzzXTSe0xT9NfPdm6wBXh0/38lkWKm
wi/pni3hSjsFlenpNlBcvxs1x0EkIgmHAnFRtpGRBLWNoAAwCgYIKoZIzj0EAwID
SAAwRQIgEudsmomXuHmo0PjEYf6FRjDLIoSpFE85fNP+dmvnOpoCIQDhoUoaw+nb
EbAAT7fD2+KW9INIxKaFgk7dbKdJg8PK9Q==
-----END CERTIFICATE REQUEST-----
)";

api::Object signing_request(const std::string& name, const char* signer, std::string_view pem) {
  return from_json(fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"signerName":"{}",
      "request":"{}","usages":["client auth"]}}}})",
                               name, signer, encode_base64(pem)));
}

TEST_F(Authentication, RejectsCertificateRequestsForSystemMasters) {
  constexpr const char* kClients = "kubernetes.io/kube-apiserver-client";
  server_ = std::make_unique<Server>();
  const auto requests = with([](rest::Config&) {}).resource(kSigningRequests);
  const auto refused =
      status_of([&] { requests.create(signing_request("a", kClients, kRequestOfMaster)); });
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(refused.message,
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: use of "
            "kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed");
  EXPECT_EQ(status_of([&] { requests.create(signing_request("a", kClients, "no request")); }).code,
            422);
  std::string torn = kRequestOfDeveloper;
  torn.replace(torn.find("MIHW"), 4, "MIHV");
  EXPECT_EQ(status_of([&] { requests.create(signing_request("a", kClients, torn)); }).code, 403);
  EXPECT_NO_THROW(requests.create(signing_request("a", kClients, kRequestOfDeveloper)));
  // Other signers have no such rule.
  EXPECT_NO_THROW(requests.create(signing_request("b", "example.com/signer", kRequestOfMaster)));
}

TEST_F(Authentication, OnlySignersDecideOverCertificateRequests) {
  ServerOptions options;
  options.authorization = Authorization::kRbac;
  server_ = std::make_unique<Server>(options);
  const rest::Client admin(server_->client_config());
  const auto grant = [&](const std::string& name, const std::string& rule) {
    admin.resource(kClusterRoles)
        .create(
            from_json(fmt::format(R"({{"metadata":{{"name":"{}"}},"rules":[{}]}})", name, rule)));
    admin
        .resource(
            {"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false})
        .create(from_json(fmt::format(
            R"({{"metadata":{{"name":"{0}"}},"subjects":[{{"kind":"User","name":"ann",
            "apiGroup":"rbac.authorization.k8s.io"}}],"roleRef":{{"kind":"ClusterRole","name":"{0}",
            "apiGroup":"rbac.authorization.k8s.io"}}}})",
            name)));
  };
  admin.resource(kSigningRequests)
      .create(signing_request("a", "example.com/signer", kRequestOfDeveloper));
  grant("write", R"({"verbs":["patch"],"apiGroups":["certificates.k8s.io"],
                     "resources":["certificatesigningrequests/status"]})");
  const auto requests = rest::Client(server_->config_for("ann", {})).resource(kSigningRequests);
  const auto patch = [&](const std::string& status) {
    requests.patch("a", rest::PatchType::kMerge, R"({"status":{)" + status + "}}", {}, "status");
  };
  const std::string failed = R"("conditions":[{"type":"Failed","status":"True","reason":"r"}])";
  const std::string certificate =
      R"("certificate":")" + encode_base64(test::make_certificate("ann").certificate) + "\"";
  for (const std::string& status : {failed, certificate}) {
    const auto refused = status_of([&] { patch(status); });
    EXPECT_EQ(refused.code, 403) << status;
    EXPECT_EQ(refused.message,
              "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not "
              "permitted to sign requests with signerName \"example.com/signer\"");
  }
  // It has no other effect.
  EXPECT_NO_THROW(patch(""));
  grant("sign", R"({"verbs":["sign"],"apiGroups":["certificates.k8s.io"],"resources":["signers"],
                    "resourceNames":["example.com/*"]})");
  EXPECT_NO_THROW(patch(certificate));
}

TEST_F(Authentication, TheClientAuthorityIsPublishedWithoutItsKey) {
  ServerOptions options = tls_options();
  const test::KeyPair other = test::make_certificate("other");
  options.client_ca_file = dir_.file(
      "ca.crt", other.key + authority_.certificate() + "# another one\n" + other.certificate);
  options.bootstrap = true;
  server_ = std::make_unique<Server>(options);
  const api::Resource config_maps("", "v1", "ConfigMap", "configmaps", true);
  const api::Object published = rest::Client(server_->client_config())
                                    .resource(config_maps, "kube-system")
                                    .get("extension-apiserver-authentication");
  EXPECT_EQ(published["data"]["client-ca-file"].as_string(),
            authority_.certificate() + other.certificate);
}

// --- TLS ----------------------------------------------------------------------------------------

TEST_F(Authentication, InvalidHandshakesDoNotAffectOthers) {
  ServerOptions options = tls_options();
  options.header_timeout = 200ms;
  server_ = std::make_unique<Server>(options);
  std::string noise;
  for (int i = 0; i < 100'000; ++i) noise += static_cast<char>(i * 7919 % 251);
  const std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (const std::string& bytes :
       {std::string("GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n"), noise, hello + noise,
        // For these the server waits for more data, until its timeout.
        hello, std::string("\x16"), std::string()}) {
    HttpClient client(server_->port());
    try {
      client.send(bytes);
    } catch (const boost::system::system_error&) {
      // The server may close before it has read everything.
    }
    EXPECT_THAT(client.read_to_end(), Not(HasSubstr("HTTP/1.1 200")));
  }
  EXPECT_TRUE(test::eventually([&] { return server_->stats().connections == 0; }));
  EXPECT_EQ(code_for(with_token("")), 200);
}

TEST_F(Authentication, PlainHttpIsRejected) {
  server_ = std::make_unique<Server>(tls_options());
  const auto plain = with([&](rest::Config& config) {
    config.server = "http://127.0.0.1:" + std::to_string(server_->port());
    config.ca_data.clear();
  });
  // (A read would be retried for seconds.)
  EXPECT_THROW(plain.resource(kPods, "default").remove("web"), rest::TransportError);
}

TEST_F(Authentication, InvalidFilesFailTheStart) {
  const auto error_of = [](const ServerOptions& options) {
    return test::refusal([&] { const Server server(options); });
  };
  ServerOptions options = tls_options();
  options.tls_key_file.clear();
  EXPECT_THAT(error_of(options), HasSubstr("TLS needs both"));

  options = tls_options();
  options.tls_key_file = dir_.file("other.key", authority_.issue_local().key);
  EXPECT_THAT(error_of(options), HasSubstr("other.key"));

  options = tls_options();
  options.tls_cert_file = dir_.file("garbage.crt", "no certificate");
  EXPECT_THAT(error_of(options), HasSubstr("garbage.crt"));

  options = tls_options();
  options.client_ca_file = dir_.file("garbage.ca", "no certificate");
  EXPECT_THAT(error_of(options), HasSubstr("garbage.ca"));

  options = {};
  options.client_ca_file = dir_.file("ca.crt", authority_.certificate());
  EXPECT_THAT(error_of(options), HasSubstr("need TLS"));

  options = {};
  options.token_file = "/none.csv";
  EXPECT_THAT(error_of(options), HasSubstr("/none.csv"));

  options = {};
  options.address = "nowhere";
  EXPECT_THAT(error_of(options), HasSubstr("'nowhere' is not an address"));

  const Server server;
  options = {};
  options.port = server.port();
  EXPECT_THAT(error_of(options), HasSubstr(std::to_string(server.port())));
}

TEST_F(Authentication, WrongTokenFilesAreRejectedWithoutQuotingTheirContent) {
  const test::TextCase cases[] = {{"secret\n", "line 1"},
                                  {"a,b,c\nsecret,ann\n", "line 2"},
                                  {",ann,1\n", "the token is empty"},
                                  {"\"secret,ann,1\n", "line 1"}};
  for (const auto& c : cases) {
    ServerOptions options;
    options.token_file = dir_.file("tokens.csv", c.text);
    EXPECT_THAT(test::refusal([&] { const Server server(options); }),
                AllOf(HasSubstr("tokens.csv"), HasSubstr(c.expected), Not(HasSubstr("secret"))))
        << c.text;
  }
}

}  // namespace
}  // namespace lookout::apiserver
