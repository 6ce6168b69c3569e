// Requests that a server without authentication rejects because only web pages send them.
#include <gtest/gtest.h>

#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

/// "GET target" with only the given headers.
HttpAnswer ask(std::uint16_t port, const std::string& head, const std::string& body = {}) {
  HttpClient client(port);
  std::string text = head + "\r\n";
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  client.send(text + "\r\n" + body);
  return client.read_answer();
}

std::string reason_of(const HttpAnswer& answer) {
  return std::string(lookout::test::held(api::Object::parse(answer.body))["reason"].as_string());
}

TEST(WebPages, CannotReadUnderAForeignHost) {
  ServerOptions options;
  options.allowed_hosts = {"lookout.test"};
  Server server(options);
  const std::string secrets = "GET /api/v1/secrets HTTP/1.1\r\nHost: ";
  const HttpAnswer rebound = ask(server.port(), secrets + "evil.example.com:8001");
  EXPECT_EQ(rebound.code, 403);
  EXPECT_EQ(reason_of(rebound), "Forbidden");
  EXPECT_THAT(rebound.body, AllOf(HasSubstr("evil.example.com"), HasSubstr("--allow-host")));
  for (const char* host : {"127.0.0.1:8001", "[::1]", "localhost:1", "LOOKOUT.test:8001"})
    EXPECT_EQ(ask(server.port(), secrets + host).code, 200) << host;
  // Load balancers request these with any host name.
  for (const char* path : {"/healthz", "/readyz", "/livez", "/version"}) {
    const auto head = std::string("GET ") + path + " HTTP/1.1\r\nHost: evil.example.com";
    EXPECT_EQ(ask(server.port(), head).code, 200) << path;
  }
}

TEST(WebPages, CannotWriteFromAForeignOrigin) {
  Server server;
  const std::string head =
      std::string("POST ") + kConfigMapsPath + " HTTP/1.1\r\nHost: localhost\r\n";
  const std::string typed = head + "Content-Type: application/json\r\n";
  for (const char* foreign :
       {"Origin: https://evil.example.com", "Origin: null", "Sec-Fetch-Site: cross-site"}) {
    const HttpAnswer answer = ask(server.port(), typed + foreign, config_map_text("foreign"));
    EXPECT_EQ(answer.code, 403) << foreign;
    EXPECT_EQ(reason_of(answer), "Forbidden");
  }
  EXPECT_EQ(http(server.port(), "GET", std::string(kConfigMapsPath) + "/foreign").code, 404);
  EXPECT_EQ(ask(server.port(), typed + "Origin: http://localhost", config_map_text("own")).code,
            201);
}

// Requests that `fetch` sends without a preflight: a body without a type, or with one of three.
TEST(WebPages, CannotWriteWithoutAContentType) {
  Server server;
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    const bool creates = std::string_view(method) == "POST";
    const auto target = std::string(kConfigMapsPath) + (creates ? "" : "/a");
    for (const std::string type : {"", "Content-Type:\r\n", "Content-Type: text/plain\r\n",
                                   "Content-Type: application/x-www-form-urlencoded\r\n",
                                   "Content-Type: multipart/form-data; boundary=x\r\n"}) {
      const std::string head = std::string(method) + " " + target + " HTTP/1.1\r\n" + type;
      const HttpAnswer answer = ask(server.port(), head + "Host: localhost", config_map_text("a"));
      EXPECT_EQ(answer.code, 415) << head;
      EXPECT_EQ(reason_of(answer), "UnsupportedMediaType");
    }
  }
  EXPECT_EQ(http(server.port(), "GET", std::string(kConfigMapsPath) + "/a").code, 404);
  // `kubectl create --raw` sends none.
  const std::string raw =
      std::string("POST ") + kConfigMapsPath + " HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(ask(server.port(), raw + "User-Agent: kubectl/v1.20.2", config_map_text("raw")).code,
            201);
  // Without a body, the type is irrelevant.
  EXPECT_EQ(http(server.port(), "POST", kConfigMapsPath, config_map_text("a"), kJsonBody).code,
            201);
  EXPECT_EQ(http(server.port(), "DELETE", std::string(kConfigMapsPath) + "/a").code, 200);
}

/// A server with the token "secret" for the user ann.
ServerOptions with_tokens(const test::TempDir& dir) {
  test::write_file(dir / "tokens", "secret,ann,1\n");
  ServerOptions options;
  options.token_file = dir / "tokens";
  return options;
}

TEST(WebPages, AreNotCheckedWithAuthentication) {
  const test::TempDir dir;
  ServerOptions options = with_tokens(dir);
  Server server(options);
  const std::string head = std::string("POST ") + kConfigMapsPath +
                           " HTTP/1.1\r\nHost: lookout.example.com\r\n"
                           "Origin: https://app.example.com\r\n";
  EXPECT_EQ(ask(server.port(), head + "Authorization: Bearer secret", config_map_text("a")).code,
            201);
}

// --- Before the body is read --------------------------------------------------------------------

TEST(Bodies, AreNotReadWithoutCredentials) {
  const test::TempDir dir;
  ServerOptions options = with_tokens(dir);
  Server server(options);
  const std::string head = std::string("POST ") + kConfigMapsPath +
                           " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  struct {
    const char* credentials;
    int code;
  } const cases[] = {{"", 403}, {"Authorization: Bearer wrong\r\n", 401}};
  for (const auto& [credentials, code] : cases) {
    for (const char* body : {"Content-Length: 1000000", "Transfer-Encoding: chunked",
                             "Expect: 100-continue\r\nContent-Length: 1000000"}) {
      // The body never arrives.
      HttpClient client(server.port());
      client.send(head + credentials + body + "\r\n\r\n");
      const HttpAnswer answer = client.read_answer();
      EXPECT_EQ(answer.code, code) << credentials << body;
      EXPECT_EQ(answer.headers.at("connection"), "close");
    }
  }
  EXPECT_GE(server.stats().failures, 6u);
  // A client with credentials gets "100 Continue".
  HttpClient client(server.port());
  client.send(head + "Authorization: Bearer secret\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(config_map_text("a").size()) + "\r\n\r\n");
  EXPECT_THAT(client.read_some(), StartsWith("HTTP/1.1 100 Continue\r\n"));
  client.send(config_map_text("a"));
  EXPECT_EQ(client.read_answer().code, 201);
}

// A trailer arrives after the checks, so it must not set the user.
TEST(Bodies, TrailersAreNotHeaders) {
  const test::TempDir dir;
  ServerOptions options = with_tokens(dir);
  Server server(options);
  HttpClient client(server.port());
  const std::string body = "{}";
  client.send(
      "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: localhost\r\n"
      "Authorization: Bearer secret\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nImpersonate-User: bob\r\n\r\n");
  const HttpAnswer answer = client.read_answer();
  ASSERT_EQ(answer.code, 201) << answer.body;
  EXPECT_EQ(lookout::test::held(api::Object::parse(answer.body))["status"]["userInfo"]["username"]
                .as_string(),
            "ann");
}

}  // namespace
}  // namespace lookout::apiserver
