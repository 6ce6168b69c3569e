// Stops, deadlines and the client's destruction, in all states of a call.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <fstream>
#include <future>

#include "tests/rest/black_hole.h"
#include "tests/rest/client_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"
#include "tests/support/own_resources.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Pod;
using rest::Client;

/// An event that never occurs, and a check that a call waits for it.
class Obstacle {
 public:
  virtual ~Obstacle() = default;
  virtual rest::Config config() const = 0;
  virtual void wait_until_reached() = 0;
};

class Unconnected : public Obstacle {
 public:
  rest::Config config() const override {
    rest::Config config;
    config.server = "http://127.0.0.1:" + std::to_string(hole_.port());
    return config;
  }
  void wait_until_reached() override {
    EXPECT_TRUE(eventually([&] { return hole_.reached(); }));
  }

 private:
  BlackHole hole_;
};

class Scripted : public Obstacle {
 public:
  explicit Scripted(HttpServer::Script script, bool tls = false)
      : tls_(tls), script_(std::move(script)) {}
  rest::Config config() const override {
    rest::Config config = config_for(server_);
    if (tls_) config.server.replace(0, 4, "https");
    return config;
  }
  void wait_until_reached() override { EXPECT_TRUE(reached_.wait()); }

 private:
  const bool tls_;
  const HttpServer::Script script_;
  Gate reached_;
  HttpServer server_{[this](HttpConnection& c) {
    if (!tls_) c.read_request();
    script_(c);
    reached_.open();
    c.wait_for_close();
  }};
};

/// A credential plugin that never ends.
class Thinking : public Obstacle {
 public:
  Thinking() {
    EXPECT_EQ(mkfifo((dir_ / "started").c_str(), 0600), 0);
    write_file(dir_ / "plugin",
               "#!/bin/sh\necho x >" + (dir_ / "started").string() + "\nexec sleep 1000\n");
    EXPECT_EQ(chmod((dir_ / "plugin").c_str(), 0700), 0);
  }
  rest::Config config() const override {
    rest::Config config = config_for(server_);
    config.exec.emplace();
    config.exec->command = (dir_ / "plugin").string();
    return config;
  }
  void wait_until_reached() override { std::ifstream(dir_ / "started").get(); }

 private:
  const TempDir dir_;
  HttpServer server_{HttpServer::answering([](const HttpRequest&) { return HttpResponse{}; })};
};

struct Phase {
  const char* name;
  std::function<std::unique_ptr<Obstacle>()> make;
  Kind when_late = Kind::kTimeout;
  bool watches = false;
};
void PrintTo(const Phase& phase, std::ostream* out) { *out << phase.name; }

std::function<std::unique_ptr<Obstacle>()> scripted(HttpServer::Script script, bool tls = false) {
  return [=] { return std::make_unique<Scripted>(script, tls); };
}

const Phase kPhases[] = {
    {"Connecting", [] { return std::make_unique<Unconnected>(); }, Kind::kUnreachable},
    {"Handshake", scripted([](HttpConnection&) {}, true), Kind::kUnreachable},
    {"Head", scripted([](HttpConnection&) {})},
    {"HalfAHead", scripted([](HttpConnection& c) { c.write("HTTP/1.1 200 OK\r\nContent-"); })},
    {"Body", scripted([](HttpConnection& c) {
       c.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{");
     })},
    {"ErrorBody", scripted([](HttpConnection& c) {
       c.write("HTTP/1.1 500 Oh\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{");
     })},
    {"WatchHead", scripted([](HttpConnection&) {}), Kind::kTimeout, true},
    {"Watch", scripted([](HttpConnection& c) { c.begin_chunks(); }), Kind::kTimeout, true},
    {"HalfAnEvent", scripted([](HttpConnection& c) {
       c.begin_chunks();
       c.chunk(R"({"type":"ADDED","object":{)");
     }),
     Kind::kTimeout, true},
    {"Credential", [] { return std::make_unique<Thinking>(); }},
};

Awaitable<void> wait_for(Awaitable<api::Object> get) { co_await std::move(get); }

Awaitable<void> wait_for(Awaitable<rest::WatchStream> opening) {
  auto watch = co_await std::move(opening);
  std::vector<api::WatchEvent> events;
  co_await watch.async_next(events);
}

/// The asynchronous form of call_blocking(). It holds no copy of the client.
std::future<void> start(const Client& client, bool watches, const rest::CallOptions& options = {}) {
  const auto pods = client.resource<Pod>("shop").dynamic();
  return boost::asio::co_spawn(client.loop().context(),
                               watches ? wait_for(pods.async_watch({}, {}, options))
                                       : wait_for(pods.async_get("web", {}, options)),
                               boost::asio::use_future);
}

void call_blocking(const Client& client, bool watches, const rest::CallOptions& options) {
  const auto pods = client.resource<Pod>("shop");
  if (watches) {
    pods.watch({}, {}, options).next();
  } else {
    pods.get("web", {}, options);
  }
}

class CancellationTest : public testing::TestWithParam<Phase> {
 protected:
  static void SetUpTestSuite() { set_up_what_clients_share(); }

  void TearDown() override {
    obstacle_.reset();
    resources_.expect_return();
  }

  /// The kind of exception that ends a blocking call.
  static std::optional<Kind> end_of_call(const Client& client, const std::stop_source& stop) {
    return kind_thrown(
        [&] { call_blocking(client, GetParam().watches, {.stop = stop.get_token()}); });
  }

  const ResourceMark resources_;
  std::unique_ptr<Obstacle> obstacle_ = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Phases, CancellationTest, testing::ValuesIn(kPhases),
                         [](const auto& test) { return test.param.name; });

TEST_P(CancellationTest, AStopEndsABlockingCall) {
  const Client client{obstacle_->config()};
  std::stop_source stop;
  std::jthread stopper([&] {
    obstacle_->wait_until_reached();
    stop.request_stop();
  });
  EXPECT_EQ(end_of_call(client, stop), Kind::kCancelled);
}

TEST_P(CancellationTest, AStopEndsACoroutine) {
  const Client client{obstacle_->config()};
  std::stop_source stop;
  auto done = start(client, GetParam().watches, {.stop = stop.get_token()});
  obstacle_->wait_until_reached();
  stop.request_stop();
  EXPECT_EQ(kind_thrown([&] { done.get(); }), Kind::kCancelled);
}

TEST_P(CancellationTest, AStopBeforeTheCallPreventsTheRequest) {
  const Client client{obstacle_->config()};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(end_of_call(client, stop), Kind::kCancelled);
}

TEST_P(CancellationTest, ADeadlineEndsTheCall) {
  const Client client{obstacle_->config()};
  const auto error = thrown<rest::TransportError>([&] {
    call_blocking(client, GetParam().watches, {.timeout = std::chrono::milliseconds(150)});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), GetParam().when_late) << error->what();
  EXPECT_TRUE(rest::is_transient(*error));
}

TEST_P(CancellationTest, TheConfiguredTimeoutAppliesToAllButWatches) {
  if (GetParam().watches) return;
  rest::Config config = obstacle_->config();
  config.timeout = std::chrono::milliseconds(150);
  EXPECT_EQ(kind_thrown([&] { call_blocking(Client{config}, false, {}); }), GetParam().when_late);
}

TEST_P(CancellationTest, DestroyingTheClientEndsTheCall) {
  auto client = std::make_unique<Client>(obstacle_->config());
  auto done = start(*client, GetParam().watches);
  obstacle_->wait_until_reached();
  client.reset();
  const auto error = thrown<rest::TransportError>([&] { done.get(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kCancelled) << error->what();
}

// The request has been sent, so the error must not be kUnreachable.
TEST(KeptConnectionTest, ADeadlineEndsTheWaitForTheResponse) {
  HttpServer server([](HttpConnection& c) {
    while (const auto request = c.read_request()) {
      if (request->target == "/hang") c.wait_for_close();
      c.respond({});
    }
  });
  const Client client{config_for(server)};
  client.get_raw("/");
  EXPECT_EQ(
      kind_thrown([&] { client.get_raw("/hang", {.timeout = std::chrono::milliseconds(100)}); }),
      Kind::kTimeout);
  EXPECT_EQ(server.connections(), 1);
}

// Only one of the calls runs the plugin.
TEST(CredentialCancellationTest, AStopEndsACallThatWaitsForAnotherCallsCredential) {
  Thinking obstacle;
  const Client client{obstacle.config()};
  std::stop_source stop_first;
  auto first = start(client, false, {.stop = stop_first.get_token()});
  obstacle.wait_until_reached();
  std::stop_source stop;
  auto stopped = start(client, false, {.stop = stop.get_token()});
  auto late = start(client, false, {.timeout = std::chrono::milliseconds(100)});
  stop.request_stop();
  EXPECT_EQ(stopped.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(late.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_NE(first.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  stop_first.request_stop();
  EXPECT_EQ(kind_thrown([&] { stopped.get(); }), Kind::kCancelled);
  EXPECT_EQ(kind_thrown([&] { late.get(); }), Kind::kTimeout);
  EXPECT_EQ(kind_thrown([&] { first.get(); }), Kind::kCancelled);
}

TEST(CancellationMessageTest, NamesTheRequestAndTheReason) {
  Scripted obstacle([](HttpConnection&) {});
  const Client client{obstacle.config()};
  const auto late = thrown<rest::TransportError>([&] {
    client.resource<Pod>("shop").get("web", {}, {.timeout = std::chrono::milliseconds(50)});
  });
  ASSERT_TRUE(late);
  EXPECT_THAT(late->what(), HasSubstr("/api/v1/namespaces/shop/pods/web"));
  EXPECT_THAT(late->what(), HasSubstr("timed out"));
}

}  // namespace
}  // namespace lookout::test
