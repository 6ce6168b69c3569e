// Clients that are bound to a stop and a deadline.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include "rest/request.h"
#include "tests/rest/client_testing.h"
#include "tests/support/eventually.h"

namespace lookout::test {
namespace {

using namespace std::chrono_literals;
using k8s::core::v1::Pod;
using rest::Client;

/// Sends one event to watches, and never answers other requests.
class ClientBindingTest : public testing::Test {
 protected:
  /// Requests a stop once the server has got a request.
  std::jthread stop_when_reached(std::stop_source& stop) {
    return std::jthread([this, &stop] {
      EXPECT_TRUE(eventually([&] { return requests_ > 0; }));
      stop.request_stop();
    });
  }

  std::atomic<int> requests_{0};
  HttpServer server_{[this](HttpConnection& c) { answer_watches(c, requests_); }};
  const Client client_{config_for(server_)};
};

TEST_F(ClientBindingTest, ItsStopEndsAWriteToAHangingServer) {
  std::stop_source stop;
  const Client bound = client_.with({.stop = stop.get_token()});
  const auto stopper = stop_when_reached(stop);
  EXPECT_EQ(
      kind_thrown([&] { bound.resource<Pod>("shop").create(api::Object::parse(pod_json("web"))); }),
      Kind::kCancelled);
  EXPECT_EQ(kind_thrown([&] { bound.get_raw("/version"); }), Kind::kCancelled);
  EXPECT_EQ(requests_, 1) << "nothing is sent after the stop";
}

TEST_F(ClientBindingTest, ItsStopEndsAWatchAndItsDeadlineDoesNot) {
  std::stop_source stop;
  const Client bound = client_.with({.stop = stop.get_token(), .timeout = 50ms});
  auto watch = bound.resource<Pod>("shop").dynamic().watch();
  ASSERT_TRUE(watch.next());
  std::jthread stopper([&] {
    // A request with this deadline has ended by then.
    EXPECT_EQ(kind_thrown([&] { bound.get_raw("/version"); }), Kind::kTimeout);
    stop.request_stop();
  });
  EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kCancelled);
}

TEST_F(ClientBindingTest, TheDeadlineOfACallOverridesTheClients) {
  std::stop_source stop;
  const Client bound = client_.with({.timeout = 50ms});
  const auto stopper = stop_when_reached(stop);
  EXPECT_EQ(kind_thrown([&] {
              bound.resource<Pod>("shop").get(
                  "web", {}, {.stop = stop.get_token(), .timeout = rest::kNoTimeout});
            }),
            Kind::kCancelled);
}

TEST_F(ClientBindingTest, ARejectedWriteIsNotSent) {
  const Client bound = client_.with({.may_send = [] { return false; }});
  const auto pods = bound.resource<Pod>("shop");
  EXPECT_EQ(kind_thrown([&] { pods.create(api::Object::parse(pod_json("web"))); }),
            Kind::kCancelled);
  EXPECT_EQ(kind_thrown([&] { pods.remove("web"); }), Kind::kCancelled);
  EXPECT_EQ(requests_, 0);
  // The check does not apply to reads.
  EXPECT_EQ(kind_thrown([&] { bound.get_raw("/version", {.timeout = 50ms}); }), Kind::kTimeout);
}

TEST_F(ClientBindingTest, AWriteIsCheckedUntilItsBodyIsSent) {
  std::atomic<int> asked{0};
  const Client bound = client_.with({.may_send = [&asked] { return ++asked == 1; }});
  EXPECT_EQ(
      kind_thrown([&] { bound.resource<Pod>("shop").create(api::Object::parse(pod_json("web"))); }),
      Kind::kCancelled);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(requests_, 0) << "the server has got the body, too";
}

TEST_F(ClientBindingTest, AStopAtTheStartOfARequestEndsIt) {
  std::stop_source stop;
  // The request is being started, so there is nothing to cancel yet.
  // (The copy keeps the state while request_stop() runs, which ends the test's call.)
  const Client bound = client_.with({.stop = stop.get_token(), .timeout = 20s, .may_send = [stop] {
                                       stop.request_stop();
                                       return true;
                                     }});
  EXPECT_EQ(
      kind_thrown([&] { bound.resource<Pod>("shop").create(api::Object::parse(pod_json("web"))); }),
      Kind::kCancelled);
}

TEST_F(ClientBindingTest, AWriteIsNotSentIfItsCheckThrows) {
  for (const int failing : {1, 2}) {
    std::atomic<int> asked{0};
    const Client bound = client_.with({.timeout = 20s, .may_send = [&asked, failing] {
                                         if (++asked == failing) throw std::runtime_error("no");
                                         return true;
                                       }});
    EXPECT_EQ(kind_thrown(
                  [&] { bound.resource<Pod>("shop").create(api::Object::parse(pod_json("web"))); }),
              Kind::kCancelled);
    EXPECT_EQ(asked, failing);
  }
  EXPECT_EQ(requests_, 0);
}

TEST_F(ClientBindingTest, EveryStopEndsTheCall) {
  for (const bool first : {true, false}) {
    requests_ = 0;
    std::stop_source one;
    std::stop_source two;
    const auto pods = client_.with({.stop = one.get_token()})
                          .resource<Pod>("shop")
                          .with({.stop = two.get_token(), .timeout = 30s});
    const auto stopper = stop_when_reached(first ? one : two);
    EXPECT_EQ(kind_thrown([&] { pods.get("web"); }), Kind::kCancelled);
  }
}

TEST_F(ClientBindingTest, TheOriginalClientIsNotBound) {
  std::stop_source stop;
  const Client bound = client_.with({.stop = stop.get_token()});
  stop.request_stop();
  EXPECT_EQ(kind_thrown([&] { client_.get_raw("/version", {.timeout = 50ms}); }), Kind::kTimeout);
  EXPECT_EQ(requests_, 1);
}

TEST(DefaultTimeoutTest, IsHalfAMinuteForCallsThatEnd) {
  EXPECT_EQ(rest::Config{}.timeout, 30s);
  for (const char* path : {"/api/v1/pods?watch=true", "/api/v1/pods?limit=1&watch=1",
                           "/api/v1/namespaces/shop/pods/web/log?follow=true",
                           "/api/v1/namespaces/shop/services/web/proxy/slow"}) {
    EXPECT_TRUE(rest::detail::is_long_running(path)) << path;
  }
  for (const char* path : {"/api/v1/pods", "/api/v1/pods?watch=false", "/readyz?verbose", "/?"})
    EXPECT_FALSE(rest::detail::is_long_running(path)) << path;
}

}  // namespace
}  // namespace lookout::test
