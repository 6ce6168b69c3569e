// A server's addresses, and its shutdown: the requests that it waits for, and those that it aborts.
#include "lookout/base/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/error.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"

namespace lookout::http {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// A drain shorter than this did not wait for its timeout.
constexpr std::chrono::seconds kLongDrain{30};

/// A client that sends its text and then stays silent.
struct Client {
  std::string text = {};
  bool shakes_hands = true;
  std::atomic<bool> silent{false};  // the server waits for more
  std::mutex mutex;
  std::string answer;  // guarded by mutex

  std::string read() {
    const std::lock_guard lock(mutex);
    return answer;
  }
};

class ClientTransport : public Transport {
 public:
  ClientTransport(const asio::any_io_executor& executor, std::shared_ptr<Client> client)
      : bell_(executor), client_(std::move(client)) {}

  Awaitable<void> handshake() override {
    if (!client_->shakes_hands) co_await until_closed();
  }
  Awaitable<bool> read(std::string& input) override {
    if (sent_) co_await until_closed();
    sent_ = true;
    input += client_->text;
    co_return true;
  }
  Awaitable<void> write(std::span<const asio::const_buffer> buffers) override {
    const std::lock_guard lock(client_->mutex);
    for (const auto& buffer : buffers)
      client_->answer.append(static_cast<const char*>(buffer.data()), buffer.size());
    co_return;
  }
  Awaitable<void> shutdown() override { co_return; }
  void close() override {
    closed_ = true;
    bell_.ring_here();
  }
  std::string client_address() const override { return "test"; }

 private:
  Awaitable<void> until_closed() {
    client_->silent = true;
    while (!closed_) co_await bell_.wait();
    throw boost::system::system_error(asio::error::operation_aborted);
  }

  AsyncEvent bell_;
  const std::shared_ptr<Client> client_;
  bool sent_ = false;
  bool closed_ = false;
};

class ServerTest : public testing::Test {
 protected:
  /// Without sockets; no time limits except those that a test sets.
  static ServerOptions options() {
    ServerOptions out;
    out.listens = false;
    out.threads = 1;
    out.limits.header_timeout = 1h;
    out.limits.drain_header_timeout = 1h;
    out.limits.body_timeout = 1h;
    out.limits.idle_timeout = 1h;
    out.limits.write_timeout = 1h;
    return out;
  }

  static std::shared_ptr<Client> connect(Server& server, std::string text,
                                         bool shakes_hands = true) {
    auto client = std::make_shared<Client>();
    client->text = std::move(text);
    client->shakes_hands = shakes_hands;
    server.connect([client](const asio::any_io_executor& executor) {
      return std::make_unique<ClientTransport>(executor, client);
    });
    EXPECT_TRUE(test::eventually([&] { return client->silent.load(); }));
    return client;
  }

  static Awaitable<Response> answer(Request) { co_return Response::text(200, "done"); }
  static Response refuse(int status, const std::string& message) {
    return Response::text(status, message);
  }
  /// The response of a server with this handler.
  static std::string answer_of(Handler handler) {
    Server server(options(), std::move(handler), &refuse);
    server.start();
    const auto client = connect(server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(test::eventually([&] { return !client->read().empty(); }));
    return client->read();
  }
};

TEST_F(ServerTest, ADrainDoesNotWaitForIncompleteHeads) {
  ServerOptions some = options();
  some.limits.drain_header_timeout = 10ms;
  Server server(some, &answer, &refuse);
  server.start();
  connect(server, "", false);
  connect(server, "");
  connect(server, "GET / HTTP/1.1\r\nHost: a\r\n");
  EXPECT_EQ(server.connections(), 3u);
  EXPECT_TRUE(server.drain(kLongDrain));
}

TEST_F(ServerTest, ADrainDisconnectsSlowClients) {
  ServerOptions some = options();
  some.limits.body_timeout = 2s;
  Server server(some, &answer, &refuse);
  server.start();
  connect(server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_TRUE(server.drain(kLongDrain));
}

TEST_F(ServerTest, ClientsMayHaveUnlimitedTime) {
  ServerOptions some = options();
  some.limits.header_timeout = std::chrono::milliseconds::max();
  some.limits.idle_timeout = std::chrono::milliseconds::max();
  Server server(some, &answer, &refuse);
  server.start();
  connect(server, "", false);
  connect(server, "");
  // The server checks the time limits twice a second.
  EXPECT_FALSE(test::eventually([&] { return server.connections() < 2; }, 2s));
}

TEST_F(ServerTest, ADrainWaitsForRunningRequests) {
  ServerOptions some = options();
  some.limits.drain_header_timeout = 0ms;
  std::atomic<bool> done{false};
  std::optional<AsyncEvent> event;
  const auto slow = [&](Request) -> Awaitable<Response> {
    while (!done) co_await event->wait();
    co_return Response::text(200, "done");
  };
  Server server(some, slow, &refuse);
  event.emplace(server.executor());
  server.start();
  const auto running = connect(server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  connect(server, "GET / HTTP/1.1\r\n");
  auto drained = std::async(std::launch::async, [&] { return server.drain(kLongDrain); });
  EXPECT_TRUE(test::eventually([&] { return server.connections() == 1; }));
  EXPECT_EQ(running->read(), "");
  done = true;
  event->ring();
  EXPECT_TRUE(test::get(drained));
  EXPECT_THAT(running->read(), testing::HasSubstr("200 OK"));
}

TEST_F(ServerTest, ARequestThatFailsIsAnswered) {
  const std::string text = answer_of([](Request) -> Awaitable<Response> {
    throw std::runtime_error("it broke");
    co_return Response();
  });
  EXPECT_THAT(text, testing::HasSubstr("500 Internal Server Error"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("it broke")));
}

TEST_F(ServerTest, ARequestThatThrowsNoStdExceptionIsAnswered) {
  EXPECT_THAT(answer_of([](Request) -> Awaitable<Response> {
                throw 1;
                co_return Response();
              }),
              testing::HasSubstr("500 Internal Server Error"));
}

TEST_F(ServerTest, ExpectContinueIsCaseInsensitive) {
  for (const char* word : {"100-continue", "100-Continue"}) {
    Server server(options(), &answer, &refuse);
    server.start();
    const auto client =
        connect(server, std::string("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: ") +
                            word + "\r\n\r\n");
    EXPECT_TRUE(test::eventually([&] { return !client->read().empty(); })) << word;
    EXPECT_THAT(client->read(), testing::StartsWith("HTTP/1.1 100 Continue"));
  }
}

TEST_F(ServerTest, AHeadIsCheckedUnlessItsBodyHasArrived) {
  const auto check = [](const Request&) { return std::optional(Response::text(403, "refused")); };
  Server server(options(), &answer, &refuse, check);
  server.start();
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
  for (const auto& [rest, response] :
       {std::pair("Content-Length: 2\r\n\r\n", "refused"),
        std::pair("Content-Length: 2\r\n\r\n{", "refused"),
        std::pair("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "refused"),
        std::pair("Content-Length: 2\r\n\r\n{}", "done"),
        std::pair("Content-Length: 2\r\n\r\n{}POST", "done")}) {
    const auto client = connect(server, head + rest);
    EXPECT_TRUE(test::eventually([&] { return client->read().ends_with(response); })) << rest;
  }
}

// Without the header, "ab -k" waits for the end of the connection.
TEST_F(ServerTest, Http10ClientsReceiveKeepAlive) {
  Server server(options(), &answer, &refuse);
  server.start();
  for (const auto& [kept, head] :
       {std::pair(true, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        std::pair(false, "GET / HTTP/1.0\r\n\r\n")}) {
    const auto client = connect(server, head);
    EXPECT_TRUE(test::eventually([&] { return client->read().ends_with("done"); })) << head;
    EXPECT_THAT(client->read(),
                testing::HasSubstr(kept ? "Connection: keep-alive\r\n" : "Connection: close\r\n"));
  }
}

TEST_F(ServerTest, HttpBefore11HasNoContinue) {
  Server server(options(), &answer, &refuse);
  server.start();
  const auto client =
      connect(server, "POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}");
  EXPECT_TRUE(test::eventually([&] { return client->read().ends_with("done"); }));
  EXPECT_THAT(client->read(), testing::StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, RejectsConnectionsAfterTheStop) {
  Server server(options(), &answer, &refuse);
  server.start();
  server.stop(0ms);
  server.connect([](const asio::any_io_executor&) -> std::unique_ptr<Transport> {
    ADD_FAILURE();
    return nullptr;
  });
  EXPECT_EQ(server.connections(), 0u);
}

/// The client address that a server on `address` sees when a client connects to `to`; "" if the
/// connection fails.
std::string seen_by(const std::string& address, const std::string& to) {
  ServerOptions some;
  some.address = address;
  const auto tell = [](Request request) -> Awaitable<Response> {
    co_return Response::text(200, request.client_address + "!");
  };
  Server server(some, tell, [](int status, const std::string& message) {
    return Response::text(status, message);
  });
  server.start();
  asio::io_context context;
  asio::ip::tcp::socket socket(context);
  boost::system::error_code error;
  socket.connect({asio::ip::make_address(to), server.port()}, error);
  if (error) return "";
  asio::write(socket, asio::buffer(std::string_view("GET / HTTP/1.1\r\nHost: a\r\n\r\n")));
  std::string answer;
  asio::read_until(socket, asio::dynamic_buffer(answer), '!');
  return answer.substr(answer.rfind('\n') + 1);
}

bool has_ipv6() {
  asio::io_context context;
  try {
    const asio::ip::tcp::acceptor probe(context, {asio::ip::make_address("::1"), 0});
    return true;
  } catch (const boost::system::system_error&) {
    return false;
  }
}

TEST(ListenTest, AllAddressesIncludeBothFamilies) {
  for (const char* all : {"0.0.0.0", "::"}) {
    // An IPv4 client has an IPv4 address, although the socket is an IPv6 one.
    EXPECT_EQ(seen_by(all, "127.0.0.1"), "127.0.0.1!") << all;
    EXPECT_EQ(seen_by(all, "::1"), has_ipv6() ? "::1!" : "") << all;
  }
  EXPECT_EQ(seen_by("127.0.0.1", "127.0.0.1"), "127.0.0.1!");
  EXPECT_EQ(seen_by("127.0.0.1", "::1"), "");
}

TEST(ListenTest, AHostNameIsResolved) {
  EXPECT_EQ(address_of_host(""), "0.0.0.0");
  EXPECT_EQ(address_of_host("10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(address_of_host("::1"), "::1");
  const std::string local = address_of_host("localhost");
  EXPECT_TRUE(local == "127.0.0.1" || local == "::1") << local;
  EXPECT_THROW(address_of_host("no host"), Error);
}

}  // namespace
}  // namespace lookout::http
