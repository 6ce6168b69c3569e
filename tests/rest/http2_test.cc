// HTTP/2: many requests and watches on one connection.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "tests/rest/client_testing.h"
#include "tests/rest/gzip.h"
#include "tests/rest/nghttpx.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Pod;
using rest::Client;

// Longer waits are hangs.
constexpr std::chrono::seconds kLong{30};

/// The client connects to a tunnel, which leads to nghttpx, which connects to the server over
/// HTTP/1.1: the tunnel counts connections, and breaks them.
class Http2Test : public testing::Test {
 protected:
  static void SetUpTestSuite() { authority_ = std::make_unique<CertificateAuthority>(); }
  static void TearDownTestSuite() { authority_.reset(); }

  void SetUp() override {
    if (Nghttpx::program().empty())
      GTEST_SKIP() << "nghttpx is not installed (Debian: nghttp2-proxy): HTTP/2 is not tested";
    start_proxy();
  }
  ~Http2Test() override { go_on_.open(); }

  /// Starts a proxy for new connections.
  void start_proxy(const std::vector<std::string>& options = {}) {
    proxies_.push_back(
        std::make_unique<Nghttpx>(server_.port(), authority_->issue_local(), options));
    proxy_port_ = proxies_.back()->port();
  }

  rest::Config config() const {
    rest::Config config;
    config.server = "https://127.0.0.1:" + std::to_string(tunnel_.port());
    config.ca_data = authority_->certificate();
    return config;
  }

  template <class T>
  static std::future<T> start(const Client& client, Awaitable<T> call) {
    return boost::asio::co_spawn(client.loop().context(), std::move(call), boost::asio::use_future);
  }

  /// Opens watches with different names at the same time.
  static std::vector<rest::WatchStream> open_watches(const Client& client, int count) {
    std::vector<std::future<rest::WatchStream>> begun;
    for (int i = 0; i < count; ++i) {
      begun.push_back(
          start(client, client.resource<Pod>("shop").dynamic().async_watch(
                            {.label_selector = "w" + std::to_string(i)}, {}, {.timeout = kLong})));
    }
    std::vector<rest::WatchStream> out;
    out.reserve(begun.size());
    for (auto& watch : begun) out.push_back(test::get(watch));
    return out;
  }

  static void expect_event(rest::WatchStream& watch, api::EventType type, int name) {
    const auto event = watch.next();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->type, type);
    EXPECT_EQ(event->object.name(), "w" + std::to_string(name));
  }

  void serve(HttpConnection& c) {
    while (const auto request = c.read_request()) {
      if (request->target.find("watch=true") == std::string::npos) {
        if (!c.respond(answer_(*request))) return;
      } else if (request->target.find("labelSelector=endless") != std::string::npos) {
        send_endlessly(c);
        return;
      } else {
        const std::string name = request->target.substr(request->target.rfind('=') + 1);
        c.begin_chunks();
        c.chunk(event_json("ADDED", name));
        if (!go_on_.wait()) return;
        c.chunk(event_json("MODIFIED", name));
        c.end_chunks();
      }
    }
  }

  void send_endlessly(HttpConnection& c) {
    endless_ = &c;
    c.begin_chunks();
    const std::string padding(1000, ' ');
    for (int i = 0; c.chunk(event_json("MODIFIED", "w" + std::to_string(i)) + padding); ++i)
      if (break_) return c.reset();
  }

  static inline std::unique_ptr<CertificateAuthority> authority_;
  Gate go_on_;
  std::atomic<HttpConnection*> endless_{nullptr};
  std::atomic<bool> break_{false};
  HttpServer::Handler answer_ = [](const HttpRequest& request) -> HttpResponse {
    return {.body = pod_json(request.target.substr(request.target.rfind('/') + 1))};
  };
  HttpServer server_{[this](HttpConnection& c) { serve(c); }};
  std::vector<std::unique_ptr<Nghttpx>> proxies_;
  std::atomic<int> proxy_port_{0};
  HttpServer tunnel_{[this](HttpConnection& c) { c.tunnel_to(proxy_port_); }};
};

TEST_F(Http2Test, ManyRequestsAndWatchesShareOneConnection) {
  constexpr int kMany = 50;
  const Client client{config()};
  auto watches = open_watches(client, kMany);
  for (int i = 0; i < kMany; ++i)
    expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kAdded, i);

  std::vector<std::future<api::Object>> gets;
  for (int i = 0; i < kMany; ++i) {
    gets.push_back(start(client, client.resource<Pod>("shop").dynamic().async_get(
                                     "p" + std::to_string(i), {}, {.timeout = kLong})));
  }
  for (int i = 0; i < kMany; ++i)
    EXPECT_EQ(gets[static_cast<std::size_t>(i)].get().name(), "p" + std::to_string(i));

  go_on_.open();
  for (int i = 0; i < kMany; ++i) {
    expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kModified, i);
    EXPECT_FALSE(watches[static_cast<std::size_t>(i)].next());
  }
  EXPECT_EQ(tunnel_.connections(), 1);
}

TEST_F(Http2Test, MoreRequestsThanOneConnectionAllowsUseSeveral) {
  start_proxy({"--frontend-http2-max-concurrent-streams=10"});
  constexpr int kMany = 35;
  const Client client{config()};
  client.get_raw("/first");  // The limit of the connection is known after this response.
  auto watches = open_watches(client, kMany);
  for (int i = 0; i < kMany; ++i)
    expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kAdded, i);
  EXPECT_GE(tunnel_.connections(), 4);
  go_on_.open();
  for (int i = 0; i < kMany; ++i)
    expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kModified, i);
}

TEST_F(Http2Test, CompressedResponsesAreDecompressed) {
  std::vector<std::string> pods;
  for (int i = 0; i < 5000; ++i) pods.push_back(pod_json("web-" + std::to_string(i)));
  answer_ = [&](const HttpRequest& request) -> HttpResponse {
    EXPECT_EQ(request.header("Accept-Encoding"), "gzip");
    return {.body = gzip(list_json(pods)), .headers = {"Content-Encoding: gzip"}};
  };
  const Client client{config()};
  const auto list = client.resource<Pod>("shop").list({}, {.timeout = kLong});
  ASSERT_EQ(list.items.size(), pods.size());
  EXPECT_EQ(list.items.back().name(), "web-4999");
}

TEST_F(Http2Test, ALostConnectionEndsItsWatchesAndIsReplaced) {
  const Client client{config()};
  auto watches = open_watches(client, 5);
  for (int i = 0; i < 5; ++i)
    expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kAdded, i);
  tunnel_.reset_all();
  for (auto& watch : watches) EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kBroken);
  EXPECT_EQ(client.resource<Pod>("shop").get("web", {}, {.timeout = kLong}).name(), "web");
  EXPECT_EQ(tunnel_.connections(), 2);
}

TEST_F(Http2Test, AResetStreamEndsOneWatch) {
  const Client client{config()};
  auto endless = client.resource<Pod>("shop").dynamic().watch({.label_selector = "endless"});
  auto watches = open_watches(client, 1);
  expect_event(watches[0], api::EventType::kAdded, 0);
  ASSERT_TRUE(endless.next());
  // The proxy loses the server in the middle of the response.
  break_ = true;
  EXPECT_EQ(kind_thrown([&] {
              while (endless.next()) {
              }
            }),
            Kind::kBroken);
  go_on_.open();
  expect_event(watches[0], api::EventType::kModified, 0);
  EXPECT_EQ(tunnel_.connections(), 1);
}

// Servers that restart or balance load send GOAWAY.
TEST_F(Http2Test, AfterGoawayRequestsUseAnotherConnectionAndWatchesContinue) {
  const Client client{config()};
  auto watches = open_watches(client, 3);
  for (int i = 0; i < 3; ++i)
    expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kAdded, i);
  start_proxy();
  proxies_[0]->retire();
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(client.resource<Pod>("shop").get("web", {}, {.timeout = kLong}).name(), "web");
    return tunnel_.connections() == 2;
  }));
  go_on_.open();
  for (int i = 0; i < 3; ++i) {
    expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kModified, i);
    EXPECT_FALSE(watches[static_cast<std::size_t>(i)].next());
  }
}

TEST_F(Http2Test, AnUnreadWatchDoesNotBlockOthers) {
  const Client client{config()};
  auto endless = client.resource<Pod>("shop").dynamic().watch({.label_selector = "endless"});
  ASSERT_TRUE(eventually([&] {
    const HttpConnection* c = endless_;
    return c != nullptr && c->stalled();
  }));
  auto watches = open_watches(client, 2);
  for (int i = 0; i < 2; ++i)
    expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kAdded, i);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.resource<Pod>("shop").get("web", {}, {.timeout = kLong}).name(), "web");
  }
  EXPECT_EQ(tunnel_.connections(), 1);
  // No event was lost.
  const std::size_t lag = endless_.load()->written() / 1000;
  for (std::size_t i = 0; i < lag; ++i) {
    const auto event = endless.next();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->object.name(), "w" + std::to_string(i));
  }
}

// All responses are larger than the readers can take at once.
TEST_F(Http2Test, LargeConcurrentResponsesAllComplete) {
  const std::string body(2'000'000, ' ');
  answer_ = [&](const HttpRequest&) -> HttpResponse { return {.body = body}; };
  const Client client{config()};
  auto endless = client.resource<Pod>("shop").dynamic().watch({.label_selector = "endless"});
  for (int round = 0; round < 20; ++round) {
    std::vector<std::future<std::string>> answers;
    for (int i = 0; i < 6; ++i)
      answers.push_back(start(client, client.async_get_raw("/long", {.timeout = kLong})));
    for (auto& answer : answers) EXPECT_EQ(answer.get().size(), body.size()) << round;
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(endless.next());
  }
  EXPECT_EQ(tunnel_.connections(), 1);
}

TEST_F(Http2Test, ListsUseASeparateConnection) {
  answer_ = [](const HttpRequest& request) -> HttpResponse {
    const std::string name = request.target.substr(request.target.rfind('/') + 1);
    return {.body = name == "pods" ? list_json({pod_json("web")}) : pod_json(name)};
  };
  const Client client{config()};
  const auto pods = client.resource<Pod>("shop");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(pods.list({}, {.timeout = kLong}).items.size(), 1u);
    auto watches = open_watches(client, 3);
    for (int i = 0; i < 3; ++i)
      expect_event(watches[static_cast<std::size_t>(i)], api::EventType::kAdded, i);
    EXPECT_EQ(pods.get("web", {}, {.timeout = kLong}).name(), "web");
  }
  EXPECT_EQ(tunnel_.connections(), 2);
}

// The watch's buffered data is neither leaked (AddressSanitizer checks) nor delivered to the next
// watch.
TEST_F(Http2Test, AnUnreadWatchFreesItsData) {
  const Client client{config()};
  auto other = open_watches(client, 1);
  expect_event(other[0], api::EventType::kAdded, 0);
  for (int round = 0; round < 2; ++round) {
    endless_ = nullptr;
    auto endless = client.resource<Pod>("shop").dynamic().watch({.label_selector = "endless"});
    ASSERT_TRUE(eventually([&] {
      const HttpConnection* c = endless_;
      return c != nullptr && c->stalled();
    }));
    for (int i = 0; i < 5; ++i) {
      const auto event = endless.next();
      ASSERT_TRUE(event);
      EXPECT_EQ(event->object.name(), "w" + std::to_string(i));
    }
  }
  EXPECT_EQ(tunnel_.connections(), 1);
}

}  // namespace
}  // namespace lookout::test
