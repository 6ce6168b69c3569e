// The libcurl and Boost.Beast clients, against a server.
#include "lookout/base/detail/asio.h"  // before Asio

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
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

namespace {

constexpr std::string_view kHangingName = "hangs.example.com";
/// The look-up of that name waits for it.
std::atomic<lookout::test::Gate*> name_gate{nullptr};

}  // namespace

/// Replaces the C library's function in this program.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** out) {
  if (name != nullptr && name == kHangingName) {
    if (auto* const gate = name_gate.load()) static_cast<void>(gate->wait());
    return EAI_AGAIN;
  }
  static const auto next =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return next(name, service, hints, out);
}

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

TEST_P(HttpClientsTest, ServerErrorsAreFailures) {
  const HttpServer server(echo());
  const auto judged = [&](const char* path) {
    return judge_http(GetParam().request(endpoint_of(server), {.path = path}));
  };
  EXPECT_EQ(judged("/broken"), Outcome::kFailed);
  EXPECT_EQ(judged("/"), Outcome::kOk);
  EXPECT_EQ(judge_http({.status = 404}), Outcome::kOk);
}

TEST_P(HttpClientsTest, PathsAndHeadersAreSentCorrectly) {
  const HttpServer server(HttpServer::answering([](const lookout::test::HttpRequest& request) {
    return lookout::test::HttpResponse{.body = request.target + " " + request.header("Host") + " " +
                                               std::to_string(request.all("X-Empty").size())};
  }));
  const auto ask = [&](const HttpRequest& request) {
    return GetParam().request(endpoint_of(server), request).body;
  };
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(ask({.path = "hello"}), "/hello " + host + " 0");
  EXPECT_EQ(ask({.path = ""}), "/ " + host + " 0");
  EXPECT_EQ(ask({.path = "?a=b"}), "/?a=b " + host + " 0");
  EXPECT_EQ(ask({.headers = {{"host", "shop.example.com"}, {"X-Empty", ""}}}),
            "/ shop.example.com 1");
}

TEST_P(HttpClientsTest, ARequestWithoutABodyHasContentLength0) {
  const HttpServer server(HttpServer::answering([](const lookout::test::HttpRequest& request) {
    return lookout::test::HttpResponse{.body = request.header("Content-Length")};
  }));
  const auto length = [&](const char* method) {
    return GetParam().request(endpoint_of(server), {.method = method}).body;
  };
  EXPECT_EQ(length("POST"), "0");
  EXPECT_EQ(length("PUT"), "0");
  EXPECT_EQ(length("GET"), "");
}

TEST_P(HttpClientsTest, AResponseToHeadHasNoBody) {
  const HttpServer server([](HttpConnection& connection) {
    if (connection.read_request()) connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  });
  const HttpResponse response = GetParam().request(endpoint_of(server), {.method = "HEAD"});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "");
}

TEST_P(HttpClientsTest, EarlyHintsAreNotTheResponse) {
  const HttpServer server([](HttpConnection& connection) {
    if (connection.read_request())
      connection.write(
          "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  const HttpResponse response = GetParam().request(endpoint_of(server), {});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok");
}

TEST_P(HttpClientsTest, AnUnreachableServerThrows) {
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

/// An address that never responds: its accept queue is full.
class SilentAddress {
 public:
  SilentAddress() {
    acceptor_.listen(0);
    // (Linux accepts one more than the backlog.)
    for (int i = 0; i < 4; ++i) {
      clients_.emplace_back(context_, boost::asio::ip::tcp::v4());
      clients_.back().native_non_blocking(true);
      const auto to = address();
      static_cast<void>(
          ::connect(clients_.back().native_handle(), to.data(), static_cast<socklen_t>(to.size())));
    }
  }
  boost::asio::ip::tcp::endpoint address() const { return acceptor_.local_endpoint(); }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_{
      context_, {boost::asio::ip::make_address("127.0.0.1"), 0}, false};
  std::vector<boost::asio::ip::tcp::socket> clients_;
};

TEST(BeastClientTest, AnUnresponsiveAddressLeavesTimeForTheNext) {
  using boost::asio::ip::tcp;
  const HttpServer server(echo());
  const tcp::endpoint good(boost::asio::ip::make_address("127.0.0.1"),
                           static_cast<std::uint16_t>(server.port()));
  const SilentAddress silent;
  const auto connect = [](std::vector<tcp::endpoint> addresses,
                          std::chrono::milliseconds time) -> Awaitable<tcp::endpoint> {
    auto stream = co_await detail::connect_to_any(std::move(addresses), time);
    co_return stream.socket().remote_endpoint();
  };
  EventLoop loop(1);
  EXPECT_EQ(loop.run(connect({silent.address(), good}, 200ms)), good);
  EXPECT_EQ(loop.run(connect({good, silent.address()}, 200ms)), good);
  EXPECT_EQ(loop.run(connect({silent.address(), good}, std::chrono::milliseconds::max())), good);
  EXPECT_THROW(loop.run(connect({}, 200ms)), boost::system::system_error);
}

TEST(BeastClientTest, AHangingNameDelaysNothingBeyondTheTimeOfItsCall) {
  const HttpServer server(echo());
  static Gate answers;  // it outlives all look-ups
  name_gate = &answers;
  EventLoop loop(1);
  Attempt attempt;
  attempt.time = 20ms;
  const Endpoint unknown("http", std::string(kHangingName), 80);
  EXPECT_THROW(loop.run(beast_request(unknown, HttpRequest(), attempt)),
               boost::system::system_error);
  EXPECT_EQ(loop.run(beast_request(endpoint_of(server), HttpRequest())).status, 200);
  answers.open();
  attempt.time = 60s;
  EXPECT_THROW(loop.run(beast_request(unknown, HttpRequest(), attempt)),
               boost::system::system_error);
}

TEST(BeastClientTest, RefusesEndpointsThatRequireTls) {
  const HttpServer server(echo());
  const std::string place = "://127.0.0.1:" + std::to_string(server.port());
  EXPECT_THROW(by_beast("https" + place, {}), Error);
  EXPECT_THROW(by_beast("http" + place + "?isSecure=true", {}), Error);
  EXPECT_EQ(server.connections(), 0) << "nothing was sent in plain text";
}

TEST(CurlClientTest, SupportsOnlyHttp) {
  CurlClient client;
  EXPECT_THROW(client.request(Endpoint("file://127.0.0.1"), {.path = "/proc/self/stat"}, Attempt()),
               Error);
}

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

/// Reads requests, opens a gate, and never responds.
struct Silence {
  Gate asked;
  const HttpServer server{[this](HttpConnection& connection) {
    connection.read_request();
    asked.open();
    connection.wait_for_close();
  }};
};

TEST(CurlClientTest, EndsAtTheAttemptsDeadline) {
  Silence silence;
  CurlClient client;
  Attempt attempt;
  attempt.time = 20ms;
  EXPECT_THROW(client.request(endpoint_of(silence.server), {}, attempt), Error);
}

TEST(CurlClientTest, AStopEndsItAtOnce) {
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
