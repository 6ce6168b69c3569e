// The clients for libcurl and Boost.Beast, against a server.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/base/event_loop.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/clients/beast.h"
#include "lookout/registry/clients/curl.h"
#include "tests/registry/fixed_discovery.h"
#include "tests/support/gate.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace std::chrono_literals;
using lookout::test::Gate;
using lookout::test::HttpConnection;
using lookout::test::HttpServer;
using test::FixedDiscovery;

Endpoint endpoint_of(const HttpServer& server) {
  return {"http", "127.0.0.1", static_cast<std::uint16_t>(server.port())};
}

HttpServer::Script echo() {
  return HttpServer::answering([](const lookout::test::HttpRequest& request) {
    return lookout::test::HttpResponse{.status = request.target == "/broken" ? 503 : 200,
                                       .body = request.method + " " + request.target + " " +
                                               request.header("X-Word") + " " + request.body};
  });
}

struct Client {
  const char* name;
  std::function<HttpResponse(const Endpoint&, const HttpRequest&)> request;
};

class HttpClientsTest : public testing::TestWithParam<Client> {};

TEST_P(HttpClientsTest, SendsTheRequestAndReadsTheResponse) {
  const HttpServer server(echo());
  const auto ask = [&](const HttpRequest& request) {
    return GetParam().request(endpoint_of(server), request);
  };
  EXPECT_EQ(ask({}).body, "GET /  ");
  const HttpResponse response =
      ask({.method = "POST", .path = "/a?b=c", .headers = {{"X-Word", "word"}}, .body = "content"});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "POST /a?b=c word content");
  EXPECT_EQ(ask({.method = "DELETE", .path = "/a"}).body, "DELETE /a  ");
  EXPECT_EQ(ask({.path = "/last"}).body, "GET /last  ") << "nothing stays of the one before";
}

TEST_P(HttpClientsTest, AServerThatIsBrokenHasFailed) {
  const HttpServer server(echo());
  const auto judged = [&](const char* path) {
    return judge_http(GetParam().request(endpoint_of(server), {.path = path}));
  };
  EXPECT_EQ(judged("/broken"), Outcome::kFailed);
  EXPECT_EQ(judged("/"), Outcome::kOk);
  EXPECT_EQ(judge_http({.status = 404}), Outcome::kOk);
}

TEST_P(HttpClientsTest, NoServerIsAnException) {
  const auto port = [] { return HttpServer(echo()).port(); }();
  EXPECT_ANY_THROW(
      GetParam().request(Endpoint("http", "127.0.0.1", static_cast<std::uint16_t>(port)), {}));
}

HttpResponse by_beast(const Endpoint& endpoint, const HttpRequest& request) {
  EventLoop loop(1);
  return loop.run(beast_request(endpoint, request));
}

INSTANTIATE_TEST_SUITE_P(
    , HttpClientsTest,
    testing::Values(Client{"curl",
                           [](const Endpoint& endpoint, const HttpRequest& request) {
                             static CurlClient client;
                             return client.request(endpoint, request, Attempt());
                           }},
                    Client{"beast", by_beast}),
    [](const auto& test) { return test.param.name; });

TEST(CurlClientTest, KeepsItsConnection) {
  const HttpServer server(echo());
  CurlClient client;
  for (int i = 0; i < 3; ++i) client.request(endpoint_of(server), {}, Attempt());
  EXPECT_EQ(server.connections(), 1);
}

TEST(CurlClientTest, ALongResponseIsAnError) {
  const HttpServer server(echo());
  CurlClient client(100);
  EXPECT_EQ(client.request(endpoint_of(server), {.body = std::string(80, 'x')}, Attempt()).status,
            200);
  EXPECT_THROW(client.request(endpoint_of(server), {.body = std::string(100, 'x')}, Attempt()),
               Error);
  EXPECT_EQ(client.request(endpoint_of(server), {}, Attempt()).status, 200) << "it goes on";
}

/// Reads requests, and says so, and answers nothing.
struct Silence {
  Gate asked;
  const HttpServer server{[this](HttpConnection& connection) {
    connection.read_request();
    asked.open();
    connection.wait_for_close();
  }};
};

TEST(CurlClientTest, KeepsToTheTimeOfTheAttempt) {
  Silence silence;
  CurlClient client;
  Attempt attempt;
  attempt.time = 20ms;
  EXPECT_THROW(client.request(endpoint_of(silence.server), {}, attempt), Error);
}

TEST(CurlClientTest, EndsAtOnceWhenItIsStopped) {
  Silence silence;
  std::stop_source stop;
  Attempt attempt;
  attempt.stop = stop.get_token();
  const std::jthread stops([&] {
    EXPECT_TRUE(silence.asked.wait());
    stop.request_stop();
  });
  CurlClient client;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THROW(client.request(endpoint_of(silence.server), {}, attempt), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
}

TEST(CurlClientTest, ABalancerCallsAnotherInstance) {
  const HttpServer good(echo());
  const HttpServer broken(HttpServer::answering(
      [](const auto&) { return lookout::test::HttpResponse{.status = 500}; }));
  FixedDiscovery discovery;
  discovery.publish({{.id = "1", .endpoints = {endpoint_of(good)}},
                     {.id = "2", .endpoints = {endpoint_of(broken)}}});
  const Balancer web(discovery, "web", round_robin());
  CurlClient client;
  for (int i = 0; i < 6; ++i) {
    const HttpResponse response = web.call(
        {.scheme = "http"},
        [&](const Endpoint& endpoint, const Attempt& attempt) {
          return client.request(endpoint, {.path = "/hello"}, attempt);
        },
        judge_http);
    EXPECT_EQ(response.body, "GET /hello  ");
  }
}

}  // namespace
}  // namespace lookout::registry
