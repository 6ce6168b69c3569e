// The client's rate limit.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "rest/rate_limiter.h"
#include "tests/rest/client_testing.h"
#include "tests/support/eventually.h"

namespace lookout::test {
namespace {

using namespace std::chrono_literals;
using rest::detail::RateLimiter;

TEST(RateLimiterTest, AllowsABurstThenLimitsTheRate) {
  RateLimiter limiter(10, 2);
  RateLimiter::Time now{1h};
  EXPECT_LE(limiter.reserve(now), 0ns);
  EXPECT_LE(limiter.reserve(now), 0ns);
  EXPECT_EQ(limiter.reserve(now), 100ms);
  EXPECT_EQ(limiter.reserve(now), 200ms);
  now += 200ms;
  EXPECT_EQ(limiter.reserve(now), 100ms);
  limiter.give_back();
  EXPECT_EQ(limiter.reserve(now), 100ms);
  now += 1h;
  EXPECT_LE(limiter.reserve(now), 0ns);
  EXPECT_LE(limiter.reserve(now), 0ns);
  EXPECT_GT(limiter.reserve(now), 0ns) << "more than a burst was saved";
}

TEST(RateLimiterTest, WaitsAtMostAnHour) {
  RateLimiter limiter(1e-300, 1);
  EXPECT_LE(limiter.reserve(RateLimiter::Time{1h}), 0ns);
  EXPECT_EQ(limiter.reserve(RateLimiter::Time{1h}), 1h);
}

class RateLimitTest : public testing::Test {
 protected:
  rest::Client client(double qps, int burst) const {
    rest::Config config = config_for(server_);
    config.qps = qps;
    config.burst = burst;
    return rest::Client{config};
  }

  std::atomic<int> requests_{0};
  HttpServer server_{HttpServer::answering([this](const HttpRequest&) -> HttpResponse {
    ++requests_;
    return {.body = "ok", .content_type = "text/plain"};
  })};
};

TEST_F(RateLimitTest, RequestsWaitForTheirTurn) {
  const auto begin = std::chrono::steady_clock::now();
  const rest::Client limited = client(50, 1);
  for (int i = 0; i < 6; ++i) limited.get_raw("/version");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 99ms);
  EXPECT_EQ(requests_, 6);
}

TEST_F(RateLimitTest, AnUnreachableDeadlineFailsAtOnceWithoutAReservation) {
  const rest::Client limited = client(0.001, 1);
  limited.get_raw("/version");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(kind_thrown([&] { limited.get_raw("/version", {.timeout = 30s}); }), Kind::kTimeout);
  EXPECT_EQ(requests_, 1);
}

TEST_F(RateLimitTest, AStopEndsTheWait) {
  const rest::Client limited = client(0.001, 1);
  limited.get_raw("/version");
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(kind_thrown([&] {
              limited.get_raw("/version", {.stop = stop.get_token(), .timeout = rest::kNoTimeout});
            }),
            Kind::kCancelled);
  EXPECT_EQ(requests_, 1);
}

TEST_F(RateLimitTest, WatchesAreNotLimited) {
  const rest::Client limited = client(0.001, 1);
  limited.get_raw("/version");
  const auto pods = limited.resource<k8s::core::v1::Pod>("shop").dynamic();
  // (The response is not a watch.)
  EXPECT_THROW(pods.watch({}, {}, {.timeout = 30s}), api::DecodeError);
  EXPECT_EQ(requests_, 2);
}

}  // namespace
}  // namespace lookout::test
