// Reading the logs of pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/rest/client.h"
#include "tests/rest/client_testing.h"
#include "tests/support/eventually.h"

namespace lookout::test {
namespace {

using namespace std::chrono_literals;
using k8s::core::v1::Pod;
using testing::ElementsAre;
using testing::HasSubstr;

/// Answers log requests with a test's pieces, and records the request target.
class LogStreamTest : public testing::Test {
 protected:
  using Script = std::function<void(HttpConnection&)>;

  rest::TypedClient<Pod> pods(Script script) {
    script_ = std::move(script);
    clients_.emplace_back(config_for(server_));
    return clients_.back().resource<Pod>("shop");
  }
  /// A whole log in these pieces.
  rest::TypedClient<Pod> pods(std::vector<std::string> pieces) {
    return pods([pieces = std::move(pieces)](HttpConnection& c) {
      c.begin_chunks(200, "text/plain");
      for (const auto& piece : pieces) c.chunk(piece);
      c.end_chunks();
    });
  }

  /// A plus sign marks a line that continues.
  static std::vector<std::string> lines(rest::LogStream log) {
    std::vector<std::string> out;
    for (const auto& line : log) out.push_back(line.text + (line.continued ? "+" : ""));
    return out;
  }

  Script script_;
  std::vector<rest::Client> clients_;  // a log ends with its client
  std::string target_;
  HttpServer server_{[this](HttpConnection& c) {
    while (const auto request = c.read_request()) {
      target_ = request->target;
      script_(c);
    }
  }};
};

TEST_F(LogStreamTest, LinesDoNotDependOnThePieces) {
  EXPECT_THAT(lines(pods({"one\ntw", "o", "\n", "\nfour\nfi", "ve"}).logs("web")),
              ElementsAre("one", "two", "", "four", "five"));
  EXPECT_THAT(lines(pods(std::vector<std::string>{}).logs("web")), ElementsAre());
  EXPECT_THAT(lines(pods({"\n"}).logs("web")), ElementsAre(""));
  EXPECT_THAT(lines(pods({"\xff\r\n"}).logs("web")), ElementsAre("\xff\r"));
}

TEST_F(LogStreamTest, SplitsLongLines) {
  const rest::LogOptions of_four{.max_line_bytes = 4};
  EXPECT_THAT(lines(pods({"abcdefghij\nk\n"}).logs("web", of_four)),
              ElementsAre("abcd+", "efgh+", "ij", "k"));
  EXPECT_THAT(lines(pods({"ab", "cd", "ef\n"}).logs("web", of_four)), ElementsAre("abcd+", "ef"));
  EXPECT_THAT(lines(pods({"abcd\n", "abcd", "\n", "abcd"}).logs("web", of_four)),
              ElementsAre("abcd", "abcd", "abcd"));
  EXPECT_THROW(pods(std::vector<std::string>{}).logs("web", {.max_line_bytes = 0}),
               InvalidArgument);
}

TEST_F(LogStreamTest, OptionsBecomeParameters) {
  lines(pods({"x\n"}).logs("web", {.container = "main",
                                   .follow = true,
                                   .previous = true,
                                   .timestamps = true,
                                   .since = 60s,
                                   .tail_lines = 0,
                                   .limit_bytes = 1000}));
  EXPECT_EQ(target_,
            "/api/v1/namespaces/shop/pods/web/log?container=main&follow=true&previous=true&"
            "timestamps=true&sinceSeconds=60&tailLines=0&limitBytes=1000");
  lines(pods({"x\n"}).dynamic().logs("web"));
  EXPECT_EQ(target_, "/api/v1/namespaces/shop/pods/web/log");
}

TEST_F(LogStreamTest, ALineArrivesWhileTheLogIsOpen) {
  Gate more;
  auto log = pods([&](HttpConnection& c) {
               c.begin_chunks(200, "text/plain");
               c.chunk("one\n");
               EXPECT_TRUE(more.wait());
               c.chunk("two\n");
               c.end_chunks();
             }).logs("web", {.follow = true}, {.timeout = 30s});
  EXPECT_EQ(log.next().value_or(rest::LogLine{}).text, "one");
  more.open();
  EXPECT_EQ(log.next().value_or(rest::LogLine{}).text, "two");
  EXPECT_FALSE(log.next());
  EXPECT_FALSE(log.next()) << "it stays at its end";
}

TEST_F(LogStreamTest, AStopEndsTheWait) {
  constexpr std::size_t kMoreThanBuffers = 32'000'000;
  std::stop_source stop;
  auto log = pods([&](HttpConnection& c) {
               c.begin_chunks(200, "text/plain");
               // Unless next() waits, this blocks. The line does not end, so next() waits on.
               c.chunk(std::string(kMoreThanBuffers, 'x'));
               stop.request_stop();
               c.wait_for_close();
             }).logs("web", {.follow = true, .max_line_bytes = 2 * kMoreThanBuffers});
  EXPECT_EQ(kind_thrown([&] { log.next(stop.get_token()); }), Kind::kCancelled);
  EXPECT_EQ(kind_thrown([&] { log.next(); }), Kind::kCancelled);
}

TEST_F(LogStreamTest, TheStopOfAClientEndsItAndItsDeadlineDoesNot) {
  std::stop_source stop;
  auto log = pods([](HttpConnection& c) {
               c.begin_chunks(200, "text/plain");
               std::this_thread::sleep_for(100ms);
               c.chunk("late\n");
               c.wait_for_close();
             })
                 .with({.stop = stop.get_token(), .timeout = 50ms})
                 .logs("web", {.follow = true});
  EXPECT_EQ(log.next().value_or(rest::LogLine{}).text, "late");
  stop.request_stop();
  EXPECT_EQ(kind_thrown([&] { log.next(); }), Kind::kCancelled);
}

TEST_F(LogStreamTest, ABrokenConnectionIsAnError) {
  auto log = pods([](HttpConnection& c) {
               c.begin_chunks(200, "text/plain");
               c.chunk("one\ntw");
               c.close();
             }).logs("web");
  EXPECT_EQ(log.next().value_or(rest::LogLine{}).text, "one");
  EXPECT_EQ(log.next().value_or(rest::LogLine{}).text, "tw") << "as much as came";
  EXPECT_EQ(kind_thrown([&] { log.next(); }), Kind::kBroken);
  EXPECT_EQ(kind_thrown([&] { log.next(); }), Kind::kBroken);
}

TEST_F(LogStreamTest, ARejectionIsAStatusError) {
  const auto client = pods([](HttpConnection& c) {
    c.respond({400, status_json(400, "BadRequest", "container \"x\" is not valid for pod web")});
  });
  const auto error = thrown<api::StatusError>([&] { client.logs("web", {.container = "x"}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), 400);
  EXPECT_THAT(error->what(), HasSubstr("is not valid"));
}

TEST_F(LogStreamTest, RetryAfterIsHonoured) {
  std::atomic<int> requests{0};
  const auto client = pods([&](HttpConnection& c) {
    if (++requests < 3) {
      c.respond({.status = 429,
                 .body = status_json(429, "TooManyRequests", "later"),
                 .headers = {"Retry-After: 0"}});
      return;
    }
    c.begin_chunks(200, "text/plain");
    c.chunk("one\n");
    c.end_chunks();
  });
  EXPECT_THAT(lines(client.logs("web")), ElementsAre("one"));
  EXPECT_EQ(requests, 3);
}

TEST_F(LogStreamTest, AnUnreadLogHasBackPressure) {
  std::atomic<HttpConnection*> connection{nullptr};
  auto log = pods([&](HttpConnection& c) {
               c.begin_chunks(200, "text/plain");
               connection = &c;
               const std::string line = std::string(100'000, 'x') + "\n";
               while (c.chunk(line)) {
               }
             }).logs("web", {.follow = true});
  EXPECT_TRUE(eventually([&] {
    const HttpConnection* const c = connection;
    return c != nullptr && c->stalled();
  }));
  EXPECT_EQ(log.next().value_or(rest::LogLine{}).text.size(), 100'000u);
  log.cancel();
}

TEST_F(LogStreamTest, AnEmptyStreamSaysSo) {
  rest::LogStream log;
  EXPECT_THROW(log.next(), InvalidArgument);
  EXPECT_THROW(static_cast<void>(log.async_next()), InvalidArgument);
  EXPECT_THROW(log.begin(), InvalidArgument);
  log.cancel();
}

TEST_F(LogStreamTest, HasACoroutineForm) {
  const auto client = pods({"one\ntwo\n"});
  const auto read = [&]() -> Awaitable<std::vector<std::string>> {
    auto log = co_await client.async_logs("web", {.container = "main", .follow = true});
    std::vector<std::string> out;
    for (;;) {
      const auto line = co_await log.async_next();
      if (!line) break;
      out.push_back(line->text);
    }
    co_return out;
  };
  EXPECT_THAT(client.dynamic().loop().run(read()), ElementsAre("one", "two"));
}

}  // namespace
}  // namespace lookout::test
