// Clients, watches and event loops that are destroyed while a call waits for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "tests/rest/black_hole.h"
#include "tests/rest/client_testing.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/own_resources.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Pod;
using rest::Client;
using Events = std::vector<api::WatchEvent>;

/// Every test checks that it leaks no threads and no descriptors.
class ClientLifetimeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { set_up_what_clients_share(); }

  void TearDown() override {
    server_.reset();
    resources_.expect_return();
  }

  rest::Config config() const { return config_for(*server_); }

  /// Waits for an event, which the server sends when the gate opens.
  static std::future<bool> wait_for_event(const Client& client, rest::WatchStream& watch,
                                          Events& events) {
    return boost::asio::co_spawn(client.loop().context(), watch.async_next(events),
                                 boost::asio::use_future);
  }

  const ResourceMark resources_;
  Gate more_;
  /// Watches start with one event and continue with another.
  std::unique_ptr<HttpServer> server_ = std::make_unique<HttpServer>([this](HttpConnection& c) {
    while (const auto request = c.read_request()) {
      if (request->target.find("watch=true") == std::string::npos) {
        c.respond({.body = pod_json("web")});
        continue;
      }
      c.begin_chunks();
      c.chunk(event_json("ADDED", "first"));
      // (The end of one connection must not affect the others.)
      const std::jthread writer([&](const std::stop_token& closed) {
        EXPECT_TRUE(eventually([&] { return closed.stop_requested() || more_.is_open(); }));
        if (more_.is_open()) c.chunk(event_json("MODIFIED", "second"));
      });
      c.wait_for_close();
    }
  });
};

TEST_F(ClientLifetimeTest, AnUnusedClientOpensNothing) {
  const Client client{config()};
  EXPECT_EQ(server_->connections(), 0);
}

TEST_F(ClientLifetimeTest, TheEndOfAClientEndsItsWatches) {
  constexpr std::size_t kMany = 20;
  std::vector<rest::WatchStream> watches;
  std::vector<Events> events(kMany);
  std::vector<std::future<bool>> waiting;
  {
    const Client client{config()};
    for (std::size_t i = 0; i < kMany; ++i) {
      watches.push_back(client.resource<Pod>("shop").dynamic().watch());
      ASSERT_TRUE(watches.back().next());
      waiting.push_back(wait_for_event(client, watches.back(), events[i]));
    }
  }
  for (auto& each : waiting) EXPECT_EQ(kind_thrown([&] { test::get(each); }), Kind::kCancelled);
  EXPECT_TRUE(eventually([&] { return server_->open_connections() == 0; }));
  for (auto& watch : watches) EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kCancelled);
}

TEST_F(ClientLifetimeTest, AResourceClientKeepsTheClientOpen) {
  const auto pods = Client{config()}.resource<Pod>("shop");
  EXPECT_EQ(pods.get("web").name(), "web");
  auto watch = pods.watch();
  EXPECT_TRUE(watch.next());
}

TEST_F(ClientLifetimeTest, AClientMayEndOnItsOwnLoop) {
  // Shared: the loop may still be inside set_value() when the test continues.
  auto gone = std::make_shared<std::promise<void>>();
  // co_spawn() uses the loop until it has returned, so the client may end only after that.
  Gate spawned;
  {
    auto client = std::make_unique<Client>(config());
    auto call = client->resource<Pod>("shop").dynamic().async_watch();
    auto& context = client->loop().context();
    boost::asio::co_spawn(
        context,
        [](std::unique_ptr<Client> last, Awaitable<rest::WatchStream> opening, Gate& others_left,
           std::shared_ptr<std::promise<void>> done) -> Awaitable<void> {
          auto watch = co_await std::move(opening);
          Events events;
          co_await watch.async_next(events);
          EXPECT_TRUE(others_left.wait());
          last.reset();
          bool cancelled = false;
          try {
            co_await watch.async_next(events);
          } catch (const rest::TransportError& e) {
            cancelled = rest::is_cancelled(e);
          }
          EXPECT_TRUE(cancelled);
          done->set_value();
        }(std::move(client), std::move(call), spawned, gone),
        boost::asio::detached);
  }
  spawned.open();
  test::get(gone->get_future());
}

TEST_F(ClientLifetimeTest, ClientsReleaseTheirResources) {
  for (int i = 0; i < 30; ++i) {
    const Client client{config(), std::make_shared<EventLoop>(1)};
    client.resource<Pod>("shop").get("web");
    auto watch = client.resource<Pod>("shop").dynamic().watch();
    EXPECT_TRUE(watch.next());
  }
}

TEST_F(ClientLifetimeTest, ClientsOfOneLoopShareItsThreads) {
  auto loop = std::make_shared<EventLoop>(1);
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(config(), loop);
  auto survivor = clients.back().resource<Pod>("shop").dynamic().watch();
  auto other = clients.front().resource<Pod>("shop").dynamic().watch();
  EXPECT_TRUE(survivor.next());
  EXPECT_TRUE(other.next());
  // The loop has one thread; the server has one that accepts, and up to two for each connection.
  EXPECT_LE(thread_count(), resources_.threads() + 2 + 2 * 2);
  clients.erase(clients.begin(), clients.end() - 1);
  EXPECT_EQ(kind_thrown([&] { other.next(); }), Kind::kCancelled);
  more_.open();
  EXPECT_TRUE(survivor.next());
}

// ----------------------------------------------------------------------------------------- Streams

TEST_F(ClientLifetimeTest, DestroyingAStreamEndsAWaitingCoroutine) {
  const Client client{config()};
  Events events;
  std::future<bool> waiting;
  {
    auto watch = client.resource<Pod>("shop").dynamic().watch();
    ASSERT_TRUE(watch.next());
    waiting = wait_for_event(client, watch, events);
  }
  EXPECT_EQ(kind_thrown([&] { test::get(waiting); }), Kind::kCancelled);
  EXPECT_TRUE(eventually([&] { return server_->open_connections() == 0; }));
}

TEST_F(ClientLifetimeTest, AStreamMayBeMovedWhileACoroutineWaits) {
  const Client client{config()};
  auto watch = std::make_unique<rest::WatchStream>(client.resource<Pod>("shop").dynamic().watch());
  ASSERT_TRUE(watch->next());
  Events events;
  auto waiting = wait_for_event(client, *watch, events);
  rest::WatchStream moved = std::move(*watch);
  watch.reset();
  more_.open();
  EXPECT_TRUE(test::get(waiting));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].object.name(), "second");
}

TEST_F(ClientLifetimeTest, AssigningAnotherWatchEndsThePreviousOne) {
  const Client client{config()};
  auto watch = client.resource<Pod>("shop").dynamic().watch();
  ASSERT_TRUE(watch.next());
  Events events;
  auto waiting = wait_for_event(client, watch, events);
  watch = client.resource<Pod>("shop").dynamic().watch();
  EXPECT_EQ(kind_thrown([&] { test::get(waiting); }), Kind::kCancelled);
  EXPECT_TRUE(watch.next());
  EXPECT_TRUE(eventually([&] { return server_->open_connections() == 1; }));
}

TEST_F(ClientLifetimeTest, CancelEndsCurrentAndLaterWaits) {
  const Client client{config()};
  auto watch = client.resource<Pod>("shop").dynamic().watch();
  ASSERT_TRUE(watch.next());
  {
    std::jthread canceller([&] { watch.cancel(); });
    EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kCancelled);
  }
  EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kCancelled);
  Events events;
  EXPECT_EQ(kind_thrown([&] { client.loop().run(watch.async_next(events)); }), Kind::kCancelled);
  watch.cancel();
}

TEST_F(ClientLifetimeTest, CancelPrecedesBufferedEvents) {
  const Client client{config()};
  auto watch = client.resource<Pod>("shop").dynamic().watch();
  watch.cancel();
  EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kCancelled);
}

TEST_F(ClientLifetimeTest, AStopEndsTheBlockingWaitForAnEvent) {
  const Client client{config()};
  auto watch = client.resource<Pod>("shop").dynamic().watch();
  ASSERT_TRUE(watch.next());
  std::jthread waiter([&](std::stop_token stop) {
    EXPECT_EQ(kind_thrown([&] { watch.next(stop); }), Kind::kCancelled);
  });
  waiter.request_stop();
}

// libcurl closes a socket that is not connected yet without a notification. Another connection on
// the same event loop may then get its descriptor number.
class GivenUpTest : public testing::TestWithParam<Kind> {};

TEST_P(GivenUpTest, AnAbandonedConnectionDoesNotAffectItsReusedDescriptor) {
  using boost::asio::posix::stream_descriptor;
  set_up_what_clients_share();
  BlackHole hole;
  const auto loop = std::make_shared<EventLoop>(1);
  rest::Config config;
  config.server = "http://127.0.0.1:" +
                  std::to_string(GetParam() == Kind::kRefused ? free_port() : hole.port());
  std::optional<Client> client(Client(config, loop));
  const ResourceMark resources;
  std::stop_source stop;
  auto call = std::async(std::launch::async, [&] {
    rest::CallOptions options;
    options.stop = stop.get_token();
    if (GetParam() == Kind::kUnreachable) options.timeout = std::chrono::milliseconds(100);
    return kind_thrown([&] { client->resource<Pod>("default").get("web", {}, options); });
  });
  if (GetParam() == Kind::kCancelled) {
    EXPECT_TRUE(eventually([&] { return hole.reached(); }));
    stop.request_stop();
  }
  EXPECT_EQ(get(std::move(call)), GetParam());
  resources.expect_return();

  std::atomic<int> rung{0};
  std::vector<stream_descriptor> others;
  for (int i = 0; i < 16; ++i) {
    others.emplace_back(loop->context(), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
        .async_wait(stream_descriptor::wait_read, [&rung](boost::system::error_code error) {
          if (!error) ++rung;
        });
  }
  client.reset();
  for (auto& other : others) eventfd_write(other.native_handle(), 1);
  EXPECT_TRUE(eventually([&] { return rung == 16; }, std::chrono::seconds(10)))
      << "only " << rung << " are still waited for";
}

INSTANTIATE_TEST_SUITE_P(, GivenUpTest,
                         testing::Values(Kind::kRefused, Kind::kCancelled, Kind::kUnreachable),
                         [](const auto& test) { return to_string(test.param); });

// A silent server loses its connections; other descriptors are not affected.
TEST(GivenUpSocket, ItsReusedDescriptorIsNotShutDown) {
  BlackHole hole;
  rest::Config config;
  config.server = "http://127.0.0.1:" + std::to_string(hole.port());
  config.keepalive.probe_after = std::chrono::milliseconds(100);
  config.keepalive.probe_timeout = std::chrono::milliseconds(100);
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor acceptor(context, {boost::asio::ip::address_v4::loopback(), 0});
  const Client client(config);
  std::stop_source stop;
  auto call = std::async(std::launch::async, [&] {
    return kind_thrown(
        [&] { client.resource<Pod>("default").get("web", {}, {.stop = stop.get_token()}); });
  });
  EXPECT_TRUE(eventually([&] { return hole.reached(); }));
  stop.request_stop();
  EXPECT_EQ(get(std::move(call)), Kind::kCancelled);

  std::vector<boost::asio::ip::tcp::socket> others;
  for (int i = 0; i < 8; ++i) {
    others.emplace_back(context).connect(acceptor.local_endpoint());
    others.push_back(acceptor.accept());
  }
  hole.let_one_in();
  // (The retry uses another connection, which is not established.)
  const rest::CallOptions options{.timeout = std::chrono::seconds(1)};
  EXPECT_NE(kind_thrown([&] { client.resource<Pod>("default").get("web", {}, options); }),
            std::nullopt);
  for (auto& other : others) {
    char byte = 0;
    EXPECT_EQ(recv(other.native_handle(), &byte, 1, MSG_DONTWAIT), -1) << "it was shut down";
  }
}

TEST_F(ClientLifetimeTest, AnEmptyStreamCanBeDestroyed) {
  rest::WatchStream nothing;
  nothing.cancel();
  rest::WatchStream moved = std::move(nothing);
  moved = rest::WatchStream();
}

}  // namespace
}  // namespace lookout::test
