// Channels: servers that are silent, and certificates that are renewed.
#include "apiserver/grpc/channel.h"

#include <atomic>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "tests/apiserver/grpc/grpc_server.h"
#include "tests/apiserver/grpc/read_all.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout::apiserver::grpc {
namespace {

using std::chrono::milliseconds;

/// A channel whose calls wait for their ends.
class Asker {
 public:
  Asker(const std::string& url, milliseconds ping_after) : Asker(server(url, ping_after)) {}
  explicit Asker(Server server)
      : channel_(std::make_shared<Channel>(loop_.context(), std::move(server))) {}
  ~Asker() { channel_->shutdown(); }

  std::string ask(std::shared_ptr<const rest::Credential> certificate = nullptr,
                  std::string message = {}) {
    return loop_.run(answer(std::move(certificate), std::move(message)));
  }
  /// The failure of a call that must fail.
  rest::TransportError failure() {
    return test::thrown<rest::TransportError>([&] { ask(); }).value();
  }
  void expect_failure(rest::TransportError::Kind kind, const char* message) {
    const rest::TransportError error = failure();
    EXPECT_EQ(error.kind(), kind);
    EXPECT_THAT(error.what(), HasSubstr(message));
  }

 private:
  static Server server(const std::string& url, milliseconds ping_after) {
    Server out;
    out.url = url;
    out.ping_after = ping_after;
    out.ping_timeout = milliseconds(500);
    return out;
  }
  Awaitable<std::string> answer(std::shared_ptr<const rest::Credential> certificate,
                                std::string message) {
    const auto executor = co_await boost::asio::this_coro::executor;
    CallRequest request;
    request.path = "/a.B/C";
    request.certificate = std::move(certificate);
    request.message = std::move(message);
    const auto call = channel_->start(std::move(request), executor);
    co_return co_await test::read_all(call);
  }

  EventLoop loop_{1};
  const std::shared_ptr<Channel> channel_;
};

TEST(ChannelTest, ASilentServerIsNoticed) {
  test::HttpServer mute([](test::HttpConnection& connection) {
    // Sends settings, then hangs.
    connection.write(std::string("\0\0\0\4\0\0\0\0\0", 9));
    connection.wait_for_close();
  });
  Asker asker(mute.url(), milliseconds(20));
  asker.expect_failure(rest::TransportError::Kind::kBroken, "the server is silent");
}

TEST(ChannelTest, ASlowServerThatAnswersPingsKeepsItsConnection) {
  test::GrpcServer slow([](test::GrpcCall& call) {
    std::this_thread::sleep_for(milliseconds(700));
    call.send("done");
  });
  Asker asker(slow.url(), milliseconds(20));
  EXPECT_EQ(asker.ask(), framed("done"));
  EXPECT_EQ(slow.connections(), 1);
}

TEST(ChannelTest, AServerThatRejectsPingsGetsFewer) {
  constexpr milliseconds kPingAfter(400);
  test::HttpServer strict([](test::HttpConnection& connection) {
    connection.write(std::string("\0\0\0\4\0\0\0\0\0", 9));
    if (connection.index() > 0) return connection.wait_for_close();
    // It sends a GOAWAY with ENHANCE_YOUR_CALM.
    connection.write(std::string("\0\0\x16\7\0\0\0\0\0\0\0\0\0\0\0\0\x0b", 17) + "too_many_pings");
    connection.wait_for_close();
  });
  Asker asker(strict.url(), kPingAfter);
  EXPECT_THROW(asker.ask(), rest::TransportError);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(asker.failure().what(), HasSubstr("the server is silent"));
  // (The ping timeout is 500 ms.)
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kPingAfter * 2 + milliseconds(500));
}

TEST(ChannelTest, ARenewedCertificateUsesANewConnection) {
  test::GrpcServer server([](test::GrpcCall& call) { call.send("done"); });
  Asker asker(server.url(), milliseconds(5000));
  const auto certificate = [](std::string text) {
    auto out = std::make_shared<rest::Credential>();
    out->client_certificate = std::move(text);
    return out;
  };
  // (It is not used without TLS.)
  for (const char* text : {"one", "one", "two", "two"})
    EXPECT_EQ(asker.ask(certificate(text)), framed("done"));
  EXPECT_EQ(server.connections(), 2) << "equal ones share it";
}

TEST(ChannelTest, RenewedAuthoritiesUseANewConnection) {
  test::GrpcServer server([](test::GrpcCall& call) { call.send("done"); });
  auto authorities = std::make_shared<const std::string>("one");
  Server options;
  options.url = server.url();
  // (They are not used without TLS.)
  options.ca = [&] { return authorities; };
  Asker asker(options);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(asker.ask(), framed("done"));
  EXPECT_EQ(server.connections(), 1);
  authorities = std::make_shared<const std::string>("two");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(asker.ask(), framed("done"));
  EXPECT_EQ(server.connections(), 2);
}

TEST(ChannelTest, AServerWithoutStreamsIsNotReconnectedInALoop) {
  std::atomic<int> connections{0};
  test::HttpServer full([&](test::HttpConnection& connection) {
    ++connections;
    // Settings: no concurrent streams.
    connection.write(std::string("\0\0\6\4\0\0\0\0\0\0\3\0\0\0\0", 15));
    connection.wait_for_close();
  });
  Asker asker(full.url(), milliseconds(5000));
  asker.expect_failure(rest::TransportError::Kind::kUnreachable, "the server accepts no calls");
  EXPECT_EQ(connections, 1);
}

TEST(ChannelTest, AnAddressWithAZoneIsRejectedWithTls) {
  // (A certificate cannot contain a zone. Without the comparison, any certificate would do.)
  Asker asker("https://[fe80::1%lo]:1", milliseconds(5000));
  asker.expect_failure(rest::TransportError::Kind::kTls, "cannot be compared");
}

TEST(ChannelTest, ALargeMessageArrivesThroughSmallWindows) {
  std::string large(3u << 20, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 8);
  std::promise<std::string> received;
  test::GrpcServer server([&](test::GrpcCall& call) {
    received.set_value(call.message().value_or(""));
    call.send("done");
  });
  Asker asker(server.url(), milliseconds(5000));
  EXPECT_EQ(asker.ask(nullptr, large), framed("done"));
  EXPECT_TRUE(test::get(received.get_future()) == large);
}

}  // namespace
}  // namespace lookout::apiserver::grpc
