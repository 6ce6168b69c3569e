// Servers that keep connections open but do not respond.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "tests/rest/client_testing.h"
#include "tests/rest/http2_peer.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Pod;
using rest::Client;
using namespace std::chrono_literals;

/// Requests a stop after a time, so that a hanging test fails.
class Watchdog {
 public:
  Watchdog()
      : thread_([this](const std::stop_token& ended) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any never;
          never.wait_for(lock, ended, 60s, [] { return false; });
          if (!ended.stop_requested()) stop_.request_stop();
        }) {}
  std::stop_token stop() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::jthread thread_;
};

/// HTTP/1.1: every watch starts with one event, and sends another one when the gate opens; logs do
/// the same with lines. A stopped server (SIGSTOP) still accepts data, through its kernel, and
/// answers nothing.
class SilenceTest : public testing::TestWithParam<bool> {
 protected:
  SilenceTest()
      : authority_(GetParam() ? std::make_unique<CertificateAuthority>() : nullptr),
        server_([this](HttpConnection& c) { serve(c); },
                authority_ ? std::optional(tls_of(authority_->issue_local())) : std::nullopt) {}
  ~SilenceTest() override { go_on_.open(); }

  rest::Config config() {
    rest::Config out = config_for(server_, authority_.get());
    out.keepalive.probe_after = 200ms;
    out.keepalive.probe_timeout = 2s;
    out.keepalive.stream_silence = 0ms;
    return out;
  }
  rest::WatchStream watch(const Client& client, rest::ListOptions options = {}) {
    return client.resource<Pod>("shop").dynamic().watch(options, {}, {.stop = watchdog_.stop()});
  }
  std::optional<rest::TransportError> error_of(rest::WatchStream& watch) {
    return thrown<rest::TransportError>([&] { watch.next(watchdog_.stop()); });
  }

  Watchdog watchdog_;
  Gate go_on_;
  std::atomic<bool> answers_{true};
  std::atomic<int> probes_{0};

 private:
  void serve(HttpConnection& c) {
    while (const auto request = c.read_request()) {
      if (!answers_) return c.wait_for_close();
      if (request->target.find("/log") != std::string::npos) {
        c.begin_chunks(200, "text/plain");
        c.chunk("one\n");
        if (!go_on_.wait()) return;
        c.chunk("two\n");
        return c.wait_for_close();
      }
      if (request->target.find("watch=true") == std::string::npos) {
        EXPECT_EQ(request->target, "/version");
        ++probes_;
        c.respond({.body = "{}"});
        continue;
      }
      c.begin_chunks();
      c.chunk(event_json("ADDED", "web"));
      if (!go_on_.wait()) return;
      c.chunk(event_json("DELETED", "web"));
      return c.wait_for_close();
    }
  }

  const std::unique_ptr<CertificateAuthority> authority_;

 protected:
  HttpServer server_;
};

INSTANTIATE_TEST_SUITE_P(, SilenceTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tls" : "Plain"; });

TEST_P(SilenceTest, AStoppedServerIsNoticed) {
  const Client client{config()};
  auto first = watch(client);
  auto second = watch(client);
  ASSERT_TRUE(first.next());
  ASSERT_TRUE(second.next());
  answers_ = false;
  for (auto* lost : {&first, &second}) {
    const auto error = error_of(*lost);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), Kind::kBroken);
    EXPECT_THAT(error->what(), HasSubstr("the connection was lost"));
  }
  answers_ = true;
  auto again = watch(client);
  EXPECT_TRUE(again.next(watchdog_.stop())) << "it is there again";
}

TEST_P(SilenceTest, AServerThatNeverRespondsIsNoticed) {
  rest::Config impatient = config();
  impatient.keepalive.probe_timeout = 300ms;
  const Client client{impatient};
  answers_ = false;
  // (A read would be retried for seconds.)
  const auto error = thrown<rest::TransportError>([&] {
    client.resource<Pod>("shop").remove("web", {},
                                        {.stop = watchdog_.stop(), .timeout = rest::kNoTimeout});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kBroken);
}

TEST_P(SilenceTest, AQuietWatchContinues) {
  const Client client{config()};
  auto quiet = watch(client);
  ASSERT_TRUE(quiet.next());
  ASSERT_TRUE(eventually([&] { return probes_ > 5; }));
  go_on_.open();
  const auto event = quiet.next(watchdog_.stop());
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, api::EventType::kDeleted);
  EXPECT_LE(server_.connections(), 2) << "one for the watch, one for all questions";
}

/// A proxy has lost the server's end of one connection, and still opens others.
TEST_P(SilenceTest, ASingleLostWatchEnds) {
  rest::Config one = config();
  one.keepalive.stream_silence = 2s;
  const Client client{one};
  auto alone = watch(client);
  ASSERT_TRUE(alone.next());
  const auto error = error_of(alone);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kBroken);
  EXPECT_THAT(error->what(), HasSubstr("answers on others"));
  EXPECT_GE(probes_, 1);
}

TEST_P(SilenceTest, AProbeDoesNotDelayTheEndOfALostWatch) {
  rest::Config one = config();
  one.keepalive.probe_after = 3s;
  one.keepalive.stream_silence = 3500ms;
  const Client client{one};
  auto alone = watch(client);
  ASSERT_TRUE(alone.next());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(error_of(alone));
  // With the timer of the probe, it would take six seconds.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5500ms);
}

/// Logs have no bookmarks.
TEST_P(SilenceTest, AQuietLogContinues) {
  rest::Config one = config();
  one.keepalive.stream_silence = 1s;
  const Client client{one};
  auto log = client.resource<Pod>("shop").logs("web", {.follow = true}, {.stop = watchdog_.stop()});
  const auto first = log.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text, "one");
  // The log has been silent longer than this watch.
  auto alone = watch(client);
  ASSERT_TRUE(alone.next());
  ASSERT_TRUE(error_of(alone));
  go_on_.open();
  const auto second = log.next(watchdog_.stop());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->text, "two");
}

TEST_P(SilenceTest, AWatchEndsWhenItsTimeIsOver) {
  const Client client{config()};
  auto endless = watch(client, {.timeout = 1s});
  ASSERT_TRUE(endless.next());
  const auto error = error_of(endless);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kTimeout) << "the server went on and on";
}

/// A slow reader receives nothing; that is not the server's silence.
TEST_P(SilenceTest, ASlowReaderLosesNothing) {
  rest::Config one = config();
  one.keepalive.stream_silence = 1s;
  constexpr std::size_t kEvents = 3000;
  HttpServer busy([&](HttpConnection& c) {
    while (const auto request = c.read_request()) {
      if (request->target.find("watch=true") == std::string::npos) {
        c.respond({.body = "{}"});
        continue;
      }
      c.begin_chunks();
      const std::string padding(2000, ' ');
      for (std::size_t i = 0; i < kEvents; ++i)
        if (!c.chunk(event_json("ADDED", std::to_string(i)) + padding)) return;
      c.end_chunks();
    }
  });
  one.server = busy.url();
  const Client client{one};
  auto slow = watch(client);
  for (std::size_t i = 0; i < kEvents; ++i) {
    if (i == 10) std::this_thread::sleep_for(2s);  // like a slow handler
    const auto event = slow.next(watchdog_.stop());
    ASSERT_TRUE(event);
    ASSERT_EQ(event->object.name(), std::to_string(i));
  }
}

TEST_P(SilenceTest, AProxyWithALostServerIsNoticed) {
  std::atomic<bool> passes{true};
  HttpServer proxy([&](HttpConnection& c) {
    const auto request = c.read_request();
    if (!request) return;
    if (!passes) return c.wait_for_close();
    // (Without TLS there is no CONNECT: the proxy itself answers.)
    if (request->method != "CONNECT") {
      c.begin_chunks();
      c.chunk(event_json("ADDED", "web"));
      return c.wait_for_close();
    }
    c.write("HTTP/1.1 200 OK\r\n\r\n");
    c.tunnel_to(server_.port());
  });
  rest::Config through = config();
  through.proxy_url = proxy.url();
  const Client client{through};
  auto lost = watch(client);
  ASSERT_TRUE(lost.next());
  passes = false;
  const auto error = error_of(lost);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kBroken);
}

/// Over HTTP/2 the probe uses the same connection. The peer acknowledges pings.
class Http2SilenceTest : public testing::Test {
 protected:
  rest::Config config() {
    rest::Config out;
    out.server = "https://127.0.0.1:" + std::to_string(peer_.port());
    out.ca_data = authority_.certificate();
    out.keepalive.probe_after = 200ms;
    out.keepalive.probe_timeout = 2s;
    return out;
  }

  Watchdog watchdog_;
  std::atomic<bool> answers_{true};
  std::atomic<int> answered_{0};
  std::atomic<int> connections_{0};
  const CertificateAuthority authority_;
  // The first request of a connection is a watch, which gets only its head.
  Http2Peer peer_{authority_.issue_local(),
                  [this](Http2Peer::Connection& c, const Http2Peer::Request& r) {
                    connections_ = std::max(connections_.load(), r.connection + 1);
                    if (!answers_) return;
                    if (r.stream == 1) return c.begin(r.stream, event_json("ADDED", "web"));
                    ++answered_;
                    c.respond(r.stream, "{}");
                  }};
};

TEST_F(Http2SilenceTest, APeerThatOnlyAcknowledgesPingsIsNoticed) {
  const Client client{config()};
  auto watch = client.resource<Pod>("shop").dynamic().watch({}, {}, {.stop = watchdog_.stop()});
  ASSERT_TRUE(watch.next());
  ASSERT_TRUE(eventually([&] { return answered_ > 3; })) << "it is left alone while it answers";
  EXPECT_EQ(connections_, 1) << "the question takes the connection of the watch";
  answers_ = false;
  const auto error = thrown<rest::TransportError>([&] { watch.next(watchdog_.stop()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kBroken);
  EXPECT_THAT(error->what(), HasSubstr("the connection was lost"));
  answers_ = true;
  auto again = client.resource<Pod>("shop").dynamic().watch({}, {}, {.stop = watchdog_.stop()});
  EXPECT_TRUE(again.next(watchdog_.stop()));
  // On a busy machine a late response to a probe may cost another connection.
  EXPECT_GE(connections_, 2) << "the lost connection is not used again";
}

}  // namespace
}  // namespace lookout::test
