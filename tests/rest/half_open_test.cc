// A server that disappears without closing its connections: the network to it is cut.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>

#include "lookout/base/pinned.h"
#include "tests/rest/client_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/process.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Pod;
using rest::Client;
using std::chrono::steady_clock;

/// A second network namespace, joined to this one by a pair of virtual devices. It exists as long
/// as a thread of this program, so nothing remains when the test ends.
class SecondNetwork : public base::Pinned {
 public:
  SecondNetwork() {
    if (find_program("ip").empty()) {
      obstacle_ = "the program ip is not installed (Debian: iproute2)";
      return;
    }
    pid_t thread = 0;
    inside([&] {
      if (unshare(CLONE_NEWNET) != 0) obstacle_ = std::string("unshare: ") + std::strerror(errno);
      thread = static_cast<pid_t>(syscall(SYS_gettid));
    });
    ip({"link", "add", near_, "type", "veth", "peer", "name", far_, "netns",
        std::to_string(thread)});
    ip({"address", "add", address_of(1) + "/30", "dev", near_});
    ip({"link", "set", near_, "up"});
    inside([this] { ip({"address", "add", address_of(2) + "/30", "dev", far_}); });
    connect(true);
  }
  ~SecondNetwork() {
    obstacle_.clear();
    inside([this] { ip({"link", "delete", far_}); });
    inside_.join();
  }

  /// The reason why it could not be created; empty if it was.
  const std::string& obstacle() const { return obstacle_; }
  std::string address() const { return address_of(2); }

  /// Runs a task in the other network: its sockets belong there.
  void inside(const std::function<void()>& task) {
    boost::asio::post(inside_, boost::asio::use_future(task)).get();
  }

  /// Joins the networks, or takes the far end down: all packets are lost.
  void connect(bool yes) {
    inside([this, yes] { ip({"link", "set", far_, yes ? "up" : "down"}); });
  }

 private:
  static std::string address_of(int end) {
    // RFC 2544 keeps 198.18.0.0/15 for such tests.
    const int number = getpid() % 16000;
    return "198.18." + std::to_string(number / 64) + "." + std::to_string(number % 64 * 4 + end);
  }

  void ip(std::vector<std::string> arguments) {
    if (!obstacle_.empty()) return;
    arguments.insert(arguments.begin(), "ip");
    const auto result = run_command(arguments, true);
    if (result.status == 0) return;
    obstacle_ = "ip " + arguments[1] + ": " + result.output;
    // Any other reason is an error of this test.
    EXPECT_NE(obstacle_.find("not permitted"), std::string::npos) << obstacle_;
  }

  const std::string near_ = "lkt" + std::to_string(getpid()) + "a";
  const std::string far_ = "lkt" + std::to_string(getpid()) + "b";
  std::string obstacle_;
  boost::asio::thread_pool inside_{1};
};

/// Requests a stop after a time, so that a test that would hang for hours fails.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds time)
      : thread_([this, time](const std::stop_token& ended) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any never;
          never.wait_for(lock, ended, time, [] { return false; });
          if (!ended.stop_requested()) stop_.request_stop();
        }) {}
  std::stop_token stop() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::jthread thread_;
};

struct Silence {
  const char* name;
  rest::KeepAlive keepalive;
  std::chrono::seconds at_most;
};
void PrintTo(const Silence& silence, std::ostream* out) { *out << silence.name; }

class HalfOpenTest : public testing::TestWithParam<Silence> {};

INSTANTIATE_TEST_SUITE_P(KeepAlive, HalfOpenTest,
                         testing::Values(Silence{"Short",
                                                 {std::chrono::seconds(1), std::chrono::seconds(1),
                                                  std::chrono::milliseconds(2000)},
                                                 std::chrono::seconds(15)},
                                         Silence{"Default", {}, std::chrono::seconds(45)}),
                         [](const auto& test) { return test.param.name; });

TEST_P(HalfOpenTest, AWatchOfADisconnectedServerBreaksInTime) {
  SecondNetwork network;
  if (!network.obstacle().empty()) {
    GTEST_SKIP() << "no second network, so half-open connections are NOT TESTED: "
                 << network.obstacle();
  }
  std::unique_ptr<HttpServer> server;
  network.inside([&] {
    server = std::make_unique<HttpServer>(
        [](HttpConnection& c) {
          c.read_request();
          c.begin_chunks();
          c.chunk(event_json("ADDED", "web"));
          c.wait_for_close();
        },
        std::nullopt, network.address());
  });
  rest::Config config = config_for(*server);
  config.keepalive = GetParam().keepalive;
  const Client client{config};
  auto watch = client.resource<Pod>("shop").dynamic().watch();
  ASSERT_TRUE(watch.next());

  network.connect(false);
  const auto begin = steady_clock::now();
  const Watchdog watchdog(std::chrono::seconds(90));
  EXPECT_EQ(kind_thrown([&] { watch.next(watchdog.stop()); }), Kind::kBroken);
  const auto took = steady_clock::now() - begin;
  EXPECT_LE(took, GetParam().at_most);
  // A short delay of the network does not break the watch.
  EXPECT_GE(took, GetParam().keepalive.idle);
  RecordProperty("seconds",
                 static_cast<int>(std::chrono::round<std::chrono::seconds>(took).count()));

  network.connect(true);
  // It takes a moment until the link carries packets again.
  EXPECT_TRUE(eventually([&] {
    try {
      auto again = client.resource<Pod>("shop").dynamic().watch({}, {}, {.stop = watchdog.stop()});
      return again.next(watchdog.stop()).has_value();
    } catch (const rest::TransportError&) {
      return false;
    }
  }));
}

}  // namespace
}  // namespace lookout::test
