// Malformed HTTP, and hostile requests.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/own_resources.h"
#include "tests/support/sanitizers.h"

namespace lookout::apiserver {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;

class HostileHttp : public testing::Test {
 protected:
  explicit HostileHttp(ServerOptions options = {}) : server_(std::move(options)) {}

  std::uint16_t port() const { return server_.port(); }
  void expect_well() {
    EXPECT_EQ(http(port(), "GET", kConfigMapsPath).code, 200);
    EXPECT_TRUE(test::eventually([&] { return server_.stats().connections == 0; }));
  }

  Server server_;
};

/// The head of a request that creates a config map.
std::string head_of_post(const std::string& headers) {
  return std::string("POST ") + kConfigMapsPath +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers +
         "\r\n\r\n";
}

/// Checks that the response is a metav1.Status, and returns its message.
std::string message_of(const HttpAnswer& answer) {
  SCOPED_TRACE(answer.body);
  if (answer.headers.at("content-type") != "application/json") {
    ADD_FAILURE() << "no JSON: " << answer.headers.at("content-type");
    return {};
  }
  const api::Object status = api::Object::parse(answer.body);
  EXPECT_EQ(status.kind(), "Status");
  EXPECT_EQ(status["status"].as_string(), "Failure");
  EXPECT_EQ(status["code"].as_int(), answer.code);
  return std::string(status["message"].as_string());
}

// --- Invalid HTTP -------------------------------------------------------------------------------

struct Garbage {
  const char* name;
  std::string bytes;
};
void PrintTo(const Garbage& garbage, std::ostream* out) { *out << garbage.name; }

class GarbageIsRefused : public HostileHttp, public testing::WithParamInterface<Garbage> {};

TEST_P(GarbageIsRefused, ClosesTheConnection) {
  HttpClient client(port());
  client.send(GetParam().bytes);
  const std::string answer = client.read_to_end();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  // One response, regardless of how many requests it could be read as.
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
  client.close();
  expect_well();
}

INSTANTIATE_TEST_SUITE_P(
    Http, GarbageIsRefused,
    testing::Values(
        Garbage{"TlsHello", std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n", 14)},
        Garbage{"Zeros", std::string(64, '\0')}, Garbage{"OneWord", "HELLO\r\n\r\n"},
        Garbage{"NoVersion", "GET /api\r\n\r\n"},
        Garbage{"OtherProtocol", "GET /api ICY/1.0\r\n\r\n"},
        Garbage{"ControlCharacters", "GET /a\x01pi HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        Garbage{"HeaderWithoutColon", "GET /api HTTP/1.1\r\nHost x\r\n\r\n"},
        Garbage{"BlankBeforeColon", "GET /api HTTP/1.1\r\nHost : x\r\n\r\n"},
        Garbage{"ControlInHeader", "GET /api HTTP/1.1\r\nHost: a\x01z\r\n\r\n"},
        Garbage{"NegativeLength", "POST /api HTTP/1.1\r\nContent-Length: -1\r\n\r\n"},
        Garbage{"LengthIsNoNumber", "POST /api HTTP/1.1\r\nContent-Length: ten\r\n\r\n"},
        Garbage{"LengthOverflows",
                "POST /api HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"},
        Garbage{"TwoLengths",
                "POST /api HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
        // If two servers disagree on the framing, requests can be smuggled in.
        Garbage{"LengthAndChunks",
                "POST /api HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                "0\r\n\r\nGET /version HTTP/1.1\r\n\r\n"},
        Garbage{"NoHost", "GET /api HTTP/1.1\r\n\r\nGET /version HTTP/1.1\r\n\r\n"},
        Garbage{"TwoHosts", "GET /api HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n"},
        Garbage{"OldProtocolWithChunks",
                "POST /api HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        Garbage{"ChunkSizeIsNoNumber",
                "POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
        Garbage{"ChunkSizeIsNegative",
                "POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n"},
        Garbage{"ChunkSizeOverflows",
                "POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                "fffffffffffffffff\r\n"},
        Garbage{"ChunkWithoutItsEnd",
                "POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcdef\r\n"},
        Garbage{"TargetIsNoPath", "GET api HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        Garbage{"TargetIsTwoStars", "OPTIONS ** HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        Garbage{"HalfAnEscape", "GET /api%2 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        Garbage{"WrongEscape", "GET /api/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        Garbage{"WrongEscapeInQuery", "GET /api?a=%g0 HTTP/1.1\r\nHost: localhost\r\n\r\n"}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

/// The end of the body is unknown, and its content must not be read as the next request.
TEST_F(HostileHttp, UnknownTransferEncodingsCloseTheConnection) {
  for (const char* encoding :
       {"gzip", "identity", "gzip, chunked", "chunked, gzip", "chunked, chunked", "xchunked", ""}) {
    for (const char* tokens : {"", "Connection: keep-alive\r\n"}) {
      HttpClient client(port());
      client.send(head_of_post(std::string(tokens) + "Transfer-Encoding: " + encoding) +
                  "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const std::string answer = client.read_to_end();
      EXPECT_THAT(answer, AnyOf(StartsWith("HTTP/1.1 501 Not Implemented\r\n"),
                                StartsWith("HTTP/1.1 400 Bad Request\r\n")))
          << encoding;
      EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
      EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
    }
  }
  expect_well();
}

// --- Too much -----------------------------------------------------------------------------------

TEST_F(HostileHttp, HeadersAreLimited) {
  for (const std::string& head :
       {"GET /api HTTP/1.1\r\nHost: localhost\r\nCookie: " + std::string(200'000, 'a'),
        "GET /" + std::string(200'000, 'a') + " HTTP/1.1\r\n", std::string(200'000, 'G')}) {
    HttpClient client(port());
    client.send(head);
    EXPECT_THAT(client.read_to_end(),
                AnyOf(StartsWith("HTTP/1.1 431 "), StartsWith("HTTP/1.1 400 ")));
  }
  // Many short headers count like a long one.
  std::string many = "GET /api HTTP/1.1\r\n";
  for (int i = 0; i < 10'000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  HttpClient client(port());
  client.send(many);
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 431 "));
  client.close();
  expect_well();
}

TEST_F(HostileHttp, AnOversizedBodyIsRejectedByItsContentLength) {
  constexpr int kClients = 50;
  const std::size_t before = test::resident_bytes();
  for (int i = 0; i < kClients; ++i) {
    HttpClient client(port());
    client.send(head_of_post("Content-Length: 1073741824") + "{");
    const HttpAnswer answer = client.read_answer();
    ASSERT_EQ(answer.code, 413);
    EXPECT_THAT(message_of(answer), HasSubstr("limit is 3145728"));
    EXPECT_EQ(answer.headers.at("connection"), "close");
  }
  if (!test::kSanitized) {
    EXPECT_LT(test::resident_bytes(), before + (16u << 20));
  }
  expect_well();
}

TEST_F(HostileHttp, AnOversizedChunkedBodyIsRejected) {
  HttpClient client(port());
  client.send(head_of_post("Transfer-Encoding: chunked"));
  // The server may close before everything is written, but its response must be readable.
  std::jthread writer([&] {
    const std::string chunk = "10000\r\n" + std::string(0x10000, ' ') + "\r\n";
    try {
      for (int i = 0; i < 80; ++i) client.send(chunk);
    } catch (const boost::system::system_error&) {
      // The server has closed the connection, as expected.
    }
  });
  const HttpAnswer answer = client.read_answer();
  writer.join();
  EXPECT_EQ(answer.code, 413);
  EXPECT_THAT(message_of(answer), HasSubstr("limit is 3145728"));
  client.close();
  expect_well();
}

TEST_F(HostileHttp, ABodyOfTheLimitIsAccepted) {
  const std::size_t limit = 3u << 20;
  const std::string frame = config_map_text("large", "");
  // (Config maps may have a megabyte; annotations of pods less.)
  const std::string blanks(limit - frame.size(), ' ');
  EXPECT_EQ(http(port(), "POST", kConfigMapsPath, frame + blanks, kJsonBody).code, 201);
  EXPECT_EQ(http(port(), "POST", kConfigMapsPath, frame + blanks + " ", kJsonBody).code, 413);
  expect_well();
}

// --- Too slow -----------------------------------------------------------------------------------

class SlowHttp : public HostileHttp {
 protected:
  static ServerOptions impatient() {
    ServerOptions out;
    out.header_timeout = 1s;
    out.body_timeout = 1s;
    return out;
  }
  SlowHttp() : HostileHttp(impatient()) {}
};

/// Sends a byte periodically until the server closes the connection. Returns the response.
std::string dribble(HttpClient& client, const std::string& byte) {
  pollfd poll_fd{client.socket().native_handle(), POLLIN | POLLRDHUP, 0};
  for (int i = 0; i < 3000; ++i) {
    if (poll(&poll_fd, 1, 20) > 0) return client.read_to_end();
    client.send(byte);
  }
  ADD_FAILURE() << "the server goes on listening";
  return {};
}

TEST_F(SlowHttp, AHeadHasATimeoutWithManyClients) {
  std::atomic<int> ended{0};
  std::vector<std::jthread> clients;  // joined even if the test fails
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back([&] {
      HttpClient client(port());
      client.send("GET /api HTTP/1.1\r\nX-Slow: ");
      dribble(client, "a");
      ++ended;
    });
  }
  // Other requests are served in the meantime.
  while (ended < 20) ASSERT_EQ(http(port(), "GET", kConfigMapsPath).code, 200);
  for (auto& client : clients) client.join();
  expect_well();
}

TEST_F(SlowHttp, ABodyHasATimeout) {
  HttpClient announced(port());
  announced.send(head_of_post("Content-Length: 100000"));
  EXPECT_EQ(dribble(announced, " "), "");
  HttpClient in_chunks(port());
  in_chunks.send(head_of_post("Transfer-Encoding: chunked"));
  EXPECT_EQ(dribble(in_chunks, "1\r\n \r\n"), "");
  announced.close();
  in_chunks.close();
  expect_well();
}

class IdleHttp : public HostileHttp {
 protected:
  static ServerOptions idle_options() {
    ServerOptions out;
    out.idle_timeout = 100ms;
    return out;
  }
  IdleHttp() : HostileHttp(idle_options()) {}
};

TEST_F(IdleHttp, IdleConnectionsAreClosed) {
  HttpClient never_used(port());
  HttpClient used(port());
  EXPECT_EQ(used.get("/version").code, 200);
  EXPECT_EQ(never_used.read_to_end(), "");
  EXPECT_EQ(used.read_to_end(), "");
}

// A watch is not idle, nor is a slow request.
TEST_F(IdleHttp, WatchesMayBeQuiet) {
  HttpClient watch(port());
  const HttpAnswer answer = watch.get(std::string(kConfigMapsPath) + "?watch=1&timeoutSeconds=1");
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(watch.get("/version").code, 200);
}

// --- Unusual HTTP -------------------------------------------------------------------------------

TEST_F(HostileHttp, AHalfClosedClientGetsItsResponse) {
  HttpClient client(port());
  client.send(std::string("GET ") + kConfigMapsPath + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send);
  EXPECT_EQ(client.read_answer().code, 200);
  EXPECT_EQ(client.read_to_end(), "");
  client.close();
  // There is no response to an incomplete request.
  HttpClient half(port());
  half.send("GET /api HTTP/1.1\r\nHost");
  half.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send);
  EXPECT_EQ(half.read_to_end(), "");
  half.close();
  expect_well();
}

TEST_F(HostileHttp, PipelinedRequestsAreAnsweredInOrder) {
  constexpr int kRequests = 100;
  std::string all;
  for (int i = 0; i < kRequests; ++i) {
    const std::string body = config_map_text("c" + std::to_string(i));
    all += head_of_post("Content-Length: " + std::to_string(body.size())) + body;
    all += std::string("GET ") + kConfigMapsPath + "/c" + std::to_string(i) +
           " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  HttpClient client(port());
  client.send(all);
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_EQ(client.read_answer().code, 201);
    const HttpAnswer answer = client.read_answer();
    EXPECT_EQ(answer.code, 200);
    EXPECT_EQ(api::Object::parse(answer.body).name(), "c" + std::to_string(i));
  }
  EXPECT_EQ(client.get("/version").code, 200);
}

TEST_F(HostileHttp, ResponsesToOneClientAreBounded) {
  constexpr int kLists = test::kSanitized ? 5 : 50;  // 2 MB each
  const std::size_t before = test::resident_bytes();
  HttpClient client(port());
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(
        client
            .request("POST", kConfigMapsPath,
                     config_map_text("c" + std::to_string(i), std::string(100'000, 'x')), kJsonBody)
            .code,
        201);
  }
  std::jthread writer([&] {
    const std::string list =
        std::string("GET ") + kConfigMapsPath + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (int i = 0; i < kLists; ++i) client.send(list);
  });
  for (int i = 0; i < kLists; ++i) ASSERT_GT(client.read_answer().body.size(), 2'000'000u);
  writer.join();
  if (!test::kSanitized) {
    EXPECT_LT(test::resident_bytes(), before + (64u << 20));
  }
}

TEST_F(HostileHttp, HeadHasNoBody) {
  HttpClient client(port());
  client.send(std::string("HEAD ") + kConfigMapsPath + " HTTP/1.1\r\nHost: localhost\r\n\r\n" +
              "GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answers = client.read_to_end();
  const std::size_t end = answers.find("\r\n\r\n");
  ASSERT_NE(end, std::string::npos);
  // Like kube-apiserver: an unknown method.
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(answers.substr(end + 4), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HostileHttp, SendsContinueWhenExpected) {
  HttpClient client(port());
  const std::string body = config_map_text("a");
  client.send(
      head_of_post("Expect: 100-continue\r\nContent-Length: " + std::to_string(body.size())));
  EXPECT_EQ(client.read_some(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(body);
  EXPECT_EQ(client.read_answer().code, 201);
}

TEST_F(HostileHttp, SupportsHttp10Clients) {
  HttpClient client(port());
  client.send(std::string("GET ") + kConfigMapsPath + " HTTP/1.0\r\n\r\n");
  const std::string answer = client.read_to_end();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(answer.find("chunked"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("]}\n")) << answer;
}

// --- Paths and verbs ----------------------------------------------------------------------------

struct PathCase {
  const char* method;
  const char* target;
  int code;
};
void PrintTo(const PathCase& c, std::ostream* out) { *out << c.method << " " << c.target; }

class OddPaths : public HostileHttp, public testing::WithParamInterface<PathCase> {};

TEST_P(OddPaths, AreAnsweredAndTheConnectionStaysOpen) {
  HttpClient client(port());
  ASSERT_EQ(client
                .request("POST", "/api/v1/namespaces/kube-system/secrets",
                         R"({"metadata":{"name":"hidden","labels":{"in":"treasure"}}})", kJsonBody)
                .code,
            201);
  const auto& [method, target, code] = GetParam();
  const HttpAnswer answer = client.request(method, target);
  EXPECT_EQ(answer.code, code) << answer.body;
  // No form of the path leads anywhere else.
  EXPECT_EQ(answer.body.find("treasure"), std::string::npos) << answer.body;
  EXPECT_EQ(client.get("/version").code, 200);
}

INSTANTIATE_TEST_SUITE_P(
    Http, OddPaths,
    testing::Values(
        PathCase{"GET", "/api/v1/%70ods", 200},
        PathCase{"GET", "http://127.0.0.1/api/v1/pods", 200},
        PathCase{"GET", "/api/v1/pods?limit=%31", 200},
        PathCase{"GET", "/api/v1/namespaces/default/../kube-system/secrets/hidden", 404},
        PathCase{"GET", "/api/v1/namespaces/default/%2e%2e/kube-system/secrets", 404},
        PathCase{"GET", "/api/v1/namespaces/default/secrets/..%2f..%2fkube-system%2fhidden", 404},
        PathCase{"GET", "/api/v1/namespaces/default/secrets/../kube-system/hidden", 404},
        PathCase{"GET", "/api/v1/namespaces/default%2f..%2fkube-system/secrets/hidden", 404},
        PathCase{"GET", "/api/v1/namespaces/kube-system%00/secrets/hidden", 404},
        PathCase{"GET", "/api/v1/namespaces/%2e%2e/secrets/..", 404},
        PathCase{"GET", "/api/v1/namespaces/default/secrets/%00", 404},
        PathCase{"GET", "/api/v1/namespaces/default/secrets/%ff%fe", 404},
        PathCase{"GET", "/api/v1/namespaces/kube%2dsystem/secrets/hiddem", 404},
        PathCase{"GET", "/api/v1/nodes/a/b/c/d/e/f", 404},
        PathCase{"GET", "/../../etc/passwd", 404},
        PathCase{"GET", "/%2e%2e/%2e%2e/etc/passwd", 404}, PathCase{"GET", "/apis/", 200},
        PathCase{"GET", "/apis/none", 404}, PathCase{"GET", "/api/v2/pods", 404},
        PathCase{"GET", "/api/v1/pods?labelSelector=%3d%3d", 400},
        PathCase{"GET", "/api/v1/pods?resourceVersion=abc", 400},
        PathCase{"GET", "/api/v1/pods?limit=abc", 400},
        PathCase{"GET", "/api/v1/pods?continue=abc", 400}, PathCase{"DELETE", "/api/v1", 405},
        PathCase{"POST", "/apis", 200}, PathCase{"POST", "/api", 405},
        PathCase{"POST", "/nothing", 404}, PathCase{"PUT", "/api/v1/pods", 405},
        PathCase{"BREW", "/api/v1/pods", 405}, PathCase{"TRACE", "/api/v1/pods", 405},
        PathCase{"OPTIONS", "/api/v1/pods", 405}, PathCase{"OPTIONS", "*", 200},
        PathCase{"GET", "*", 404}, PathCase{"CONNECT", "/api/v1/namespaces/default/pods", 405},
        PathCase{"PATCH", "/api/v1/namespaces/default/pods", 405}));

// Go's net/http server answers this itself; load balancers use it as a check.
TEST_F(HostileHttp, OptionsOfTheServerHaveAnEmptyAnswer) {
  HttpClient client(port());
  const HttpAnswer answer = client.request("OPTIONS", "*");
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.body, "");
  EXPECT_FALSE(answer.headers.contains("content-type"));
  EXPECT_EQ(client.get("/version").code, 200);
}

TEST_F(HostileHttp, UnknownMethodsAreAnsweredWithAStatus) {
  const HttpAnswer answer = http(port(), "BREW", "/api/v1/namespaces/default/pods");
  EXPECT_EQ(message_of(answer), "the server does not allow this method on the requested resource");
}

// --- Bodies -------------------------------------------------------------------------------------

struct BodyCase {
  const char* name;
  std::string body;
  int code;
  std::string message;
};
void PrintTo(const BodyCase& c, std::ostream* out) { *out << c.name; }

class OddBodies : public HostileHttp, public testing::WithParamInterface<BodyCase> {};

void expect_refused(std::uint16_t port, const BodyCase& odd) {
  HttpClient client(port);
  const HttpAnswer answer = client.request("POST", kConfigMapsPath, odd.body, kJsonBody);
  EXPECT_EQ(answer.code, odd.code);
  EXPECT_THAT(message_of(answer), HasSubstr(odd.message));
  EXPECT_LT(answer.body.size(), 4096u) << "a message is no copy of what was sent";
  EXPECT_EQ(client.request("POST", kConfigMapsPath, config_map_text("next"), kJsonBody).code, 201);
}

TEST_P(OddBodies, AreRejectedAndTheConnectionStaysOpen) { expect_refused(port(), GetParam()); }

std::string nested(std::size_t depth, char open, char close) {
  std::string inner;
  for (std::size_t i = 0; i < depth; ++i) inner += open == '{' ? R"({"a":)" : "[";
  return R"({"metadata":{"name":"deep"},"data":)" + inner + "1" + std::string(depth, close) + "}";
}

INSTANTIATE_TEST_SUITE_P(
    Http, OddBodies,
    testing::Values(
        BodyCase{"Nothing", " ", 400, "json parse error: unexpected end of JSON input"},
        BodyCase{"Text", "hello", 400, "json parse error: invalid character 'h' looking for"},
        BodyCase{"Yaml", "metadata:\n  name: a\n", 400,
                 "json parse error: invalid character 'm' looking for beginning of value"},
        BodyCase{"AList", "[]", 400, "cannot unmarshal array"},
        BodyCase{"AString", R"("x")", 400, "cannot unmarshal string"},
        BodyCase{"Cut", R"({"metadata":{"name":"a")", 400, "json parse error: "},
        BodyCase{"More", config_map_text("a") + "}", 400, "json parse error: "},
        BodyCase{"Two", config_map_text("a") + config_map_text("b"), 400, "json parse error: "},
        BodyCase{"DeepObjects", nested(5000, '{', '}'), 400, "deep"},
        BodyCase{"DeepLists", nested(5000, '[', ']'), 400, "deep"},
        BodyCase{"NoUtf8", config_map_text("a", "\xc3\x28"), 400, "UTF-8"},
        BodyCase{"HugeNumber", R"({"metadata":{"name":"a","generation":1e999}})", 400,
                 "Number too big"},
        BodyCase{"NoName", "{}", 422, "name or generateName is required"},
        BodyCase{"NameWithSlash", config_map_text("a/b"), 422, "a/b"},
        BodyCase{"NameIsAPath", config_map_text(".."), 422, "Invalid value"},
        BodyCase{"NameIsANumber", R"({"metadata":{"name":1}})", 400, "cannot unmarshal number"},
        BodyCase{"MetadataIsAList", R"({"metadata":[]})", 400, "cannot unmarshal array"},
        BodyCase{"LabelsAreNumbers", R"({"metadata":{"name":"a","labels":{"a":1}}})", 400,
                 "cannot unmarshal number"},
        BodyCase{"OtherKind", R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}})", 400,
                 "Pod in version \"v1\" cannot be handled as a ConfigMap"},
        BodyCase{"UnknownKind", R"({"kind":"X","apiVersion":"v1","metadata":{"name":"a"}})", 400,
                 "no kind \"X\" is registered"},
        BodyCase{"OtherVersion",
                 R"({"kind":"ConfigMap","apiVersion":"apps/v1","metadata":{"name":"a"}})", 400,
                 "no kind \"ConfigMap\" is registered for version \"apps/v1\""},
        BodyCase{"OtherNamespace", R"({"metadata":{"name":"a","namespace":"kube-system"}})", 400,
                 "does not match the namespace sent on the request"}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

// (Not a parameter, which would be created at each program start.)
TEST_F(HostileHttp, AMillionNestedListsAreRejected) {
  expect_refused(port(), {"VeryDeepLists", nested(1'000'000, '[', ']'), 400, "deep"});
}

TEST_F(HostileHttp, TheLastDuplicateMemberCounts) {
  const HttpAnswer answer =
      http(port(), "POST", kConfigMapsPath,
           R"({"metadata":{"name":"first"},"data":{"a":"1","a":"2"},"metadata":{"name":"last"}})",
           kJsonBody);
  ASSERT_EQ(answer.code, 201) << answer.body;
  const api::Object created = api::Object::parse(answer.body);
  EXPECT_EQ(created.name(), "last");
  EXPECT_EQ(created["data"].to_json(), R"({"a":"2"})");
  EXPECT_EQ(http(port(), "GET", std::string(kConfigMapsPath) + "/last").code, 200);
  EXPECT_EQ(http(port(), "GET", std::string(kConfigMapsPath) + "/first").code, 404);
}

TEST_F(HostileHttp, OtherContentTypesAreRejected) {
  for (const char* type :
       {"application/x-yaml", "text/plain", "application/xml; charset=utf-8", ";;;"}) {
    const HttpAnswer answer =
        http(port(), "POST", kConfigMapsPath, config_map_text("a"), {{"Content-Type", type}});
    EXPECT_EQ(answer.code, 415) << type;
    EXPECT_THAT(message_of(answer), HasSubstr("application/json")) << type;
  }
  const HttpAnswer answer = http(port(), "GET", kConfigMapsPath, "", {{"Accept", "image/png"}});
  EXPECT_EQ(answer.code, 406);
  EXPECT_THAT(message_of(answer), HasSubstr("application/json"));
}

// Like a kube-apiserver 1.36 with the default of the feature gate CBORServingAndStorage. client-go
// then falls back to JSON.
TEST_F(HostileHttp, CborIsNotServed) {
  EXPECT_EQ(http(port(), "POST", kConfigMapsPath, "\xd9\xd9\xf7\xa0",
                 {{"Content-Type", "application/cbor"}})
                .code,
            415);
  const HttpAnswer applied =
      http(port(), "PATCH", std::string(kConfigMapsPath) + "/a?fieldManager=me", "\xd9\xd9\xf7\xa0",
           {{"Content-Type", "application/apply-patch+cbor"}});
  EXPECT_EQ(applied.code, 415);
  EXPECT_EQ(message_of(applied), "415: Unsupported Media Type");
  for (const char* query : {"", "?watch=1"}) {
    EXPECT_EQ(http(port(), "GET", std::string(kConfigMapsPath) + query, "",
                   {{"Accept", "application/cbor"}})
                  .code,
              406);
  }
  const HttpAnswer json = http(port(), "GET", kConfigMapsPath, "",
                               {{"Accept", "application/cbor,application/json;q=0.9"}});
  EXPECT_EQ(json.code, 200);
  EXPECT_EQ(json.headers.at("content-type"), "application/json");
}

TEST_F(HostileHttp, DeeplyNestedConfigurationsAreRejected) {
  const auto apply = [&](const std::string& body) {
    return http(port(), "PATCH", std::string(kConfigMapsPath) + "/a?fieldManager=me&force=true",
                body, {{"Content-Type", "application/apply-patch+yaml"}})
        .code;
  };
  EXPECT_EQ(apply(std::string(100000, '[')), 400);
  EXPECT_EQ(apply(R"({"a":)" + std::string(100000, '[') + std::string(100000, ']') + "}"), 400);
  std::string fields;
  for (int i = 0; i < 20000; ++i) fields += R"({\"f:a\":)";
  EXPECT_EQ(apply(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":)"
                  R"({"kubectl.kubernetes.io/last-applied-configuration":")" +
                  fields + R"("}}})"),
            201);
}

}  // namespace
}  // namespace lookout::apiserver
