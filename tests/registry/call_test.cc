// Calls with failover, on a thread, on several threads and in coroutines.
#include "lookout/registry/call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <future>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lookout/base/event_loop.h"
#include "lookout/registry/balancer.h"
#include "registry/retry_budget.h"
#include "tests/registry/cluster.h"
#include "tests/registry/fixed_discovery.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::FixedDiscovery;
using test::numbered;

class CallTest : public testing::Test {
 protected:
  CallTest() { discovery_.publish(numbered(3)); }

  Balancer balancer(const BalancerPolicy& policy = round_robin()) {
    return {discovery_, "web", policy.with_seed(0)};
  }
  /// The exception of a call.
  template <class Call>
  static std::optional<CallError> error_of(Call call) {
    try {
      call();
    } catch (const CallError& e) {
      return e;
    }
    ADD_FAILURE() << "the call did not fail";
    return std::nullopt;
  }

  /// Announces an instance after a moment, for calls that wait for one.
  void announce_one_soon() {
    std::this_thread::sleep_for(30ms);
    discovery_.publish(numbered(1));
  }

  FixedDiscovery discovery_;
};

TEST_F(CallTest, ReturnsTheResult) {
  const auto web = balancer();
  const std::string answer =
      web.call({.scheme = "http"}, [](const Endpoint& e) { return e.url("/hello"); });
  EXPECT_EQ(answer, "http://host-1:80/hello");
  bool called = false;
  web.call({}, [&](const Endpoint&) { called = true; });
  EXPECT_TRUE(called);
  const auto moved = web.call({}, [](const Endpoint&) { return std::make_unique<int>(7); });
  EXPECT_EQ(*moved, 7);
}

TEST_F(CallTest, ARetryUsesAnotherInstance) {
  const auto web = balancer();
  std::vector<std::string> hosts;
  std::vector<int> numbers;
  const auto answer = web.call({}, [&](const Endpoint& e, const Attempt& attempt) {
    hosts.emplace_back(e.host());
    numbers.push_back(attempt.number);
    EXPECT_EQ("host-" + attempt.instance->id, e.host());
    if (hosts.size() < 3) throw std::runtime_error("refused");
    return hosts.size();
  });
  EXPECT_EQ(answer, 3u);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
  EXPECT_EQ(std::set<std::string>(hosts.begin(), hosts.end()).size(), 3u);
}

TEST_F(CallTest, ReportsEveryFailure) {
  const auto web = balancer();
  const auto error = error_of([&] {
    web.call({.attempts = 2}, [](const Endpoint&) { throw std::runtime_error("refused"); });
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->reason(), CallError::Reason::kAttempts);
  EXPECT_THAT(error->what(), HasSubstr("call of web: 2 of 2 attempts failed"));
  EXPECT_THAT(error->what(), HasSubstr("http://host-1:80 (1): refused"));
  EXPECT_THROW(std::rethrow_exception(error->cause()), std::runtime_error);
}

TEST_F(CallTest, RetriesTheOnlyInstance) {
  const auto web = balancer();
  int calls = 0;
  const auto error = error_of([&] {
    web.call({.attempts = 9}, [&](const Endpoint&) {
      ++calls;
      throw std::runtime_error("refused");
    });
  });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(error->reason(), CallError::Reason::kNoInstance);
}

TEST_F(CallTest, AResultMayBeAFailure) {
  const auto web = balancer();
  int calls = 0;
  const auto judge = [](int status) { return status >= 500 ? Outcome::kFailed : Outcome::kOk; };
  EXPECT_EQ(web.call(
                {}, [&](const Endpoint&) { return ++calls < 3 ? 503 : 200; }, judge),
            200);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(web.call(
                {}, [&](const Endpoint&) { return 503; }, judge),
            503)
      << "without a further attempt it is the answer";
  std::uint64_t failed = 0;
  for (const auto& instance : web.instances()) failed += instance.failed;
  EXPECT_EQ(failed, 5u);
}

TEST_F(CallTest, FinalErrorsAreNotRetried) {
  const auto web = balancer();
  int calls = 0;
  EXPECT_THROW(web.call({},
                        [&](const Endpoint&) {
                          ++calls;
                          throw FinalError("no such user");
                        }),
               FinalError);
  EXPECT_EQ(calls, 1);
  for (const auto& instance : web.instances()) EXPECT_EQ(instance.failed, 0u);
  CallPolicy policy;
  policy.retry_if = [](const std::exception& e) {
    return dynamic_cast<const std::logic_error*>(&e) == nullptr;
  };
  EXPECT_THROW(web.call(policy, [&](const Endpoint&) { throw std::logic_error("mine"); }),
               std::logic_error);
}

TEST_F(CallTest, AnAttemptMayHaveNoLimitOfItsOwn) {
  const auto web = balancer();
  web.call({.deadline = 60s, .per_try = std::chrono::milliseconds::max()},
           [](const Endpoint&, const Attempt& attempt) { EXPECT_GT(attempt.time, 30s); });
}

TEST_F(CallTest, AttemptsShareTheDeadline) {
  const auto web = balancer();
  std::vector<std::chrono::milliseconds> times;
  error_of([&] {
    web.call({.deadline = 30s}, [&](const Endpoint&, const Attempt& attempt) {
      times.push_back(attempt.time);
      throw std::runtime_error("refused");
    });
  });
  ASSERT_EQ(times.size(), 3u);
  EXPECT_LE(times[0], 10s);
  EXPECT_GT(times[1], 10s) << "the first has not used its part";
  EXPECT_GT(times[2], 20s);
  web.call({.deadline = 30s, .per_try = 2s},
           [&](const Endpoint&, const Attempt& attempt) { EXPECT_LE(attempt.time, 2s); });
  web.call({.deadline = 0s}, [&](const Endpoint&, const Attempt& attempt) {
    EXPECT_EQ(attempt.time, std::chrono::milliseconds::max());
  });
}

TEST_F(CallTest, NoAttemptStartsAfterTheDeadline) {
  const auto web = balancer();
  int calls = 0;
  const auto error = error_of([&] {
    web.call({.deadline = 20ms}, [&](const Endpoint&) {
      ++calls;
      std::this_thread::sleep_for(50ms);
      throw std::runtime_error("late");
    });
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(error->reason(), CallError::Reason::kDeadline);
}

TEST_F(CallTest, WaitsForTheFirstInstance) {
  discovery_.publish({});
  const auto web = balancer();
  const auto error = error_of([&] { web.call({.deadline = 50ms}, [](const Endpoint&) {}); });
  EXPECT_EQ(error->reason(), CallError::Reason::kDeadline);
  EXPECT_THAT(error->what(), HasSubstr("the deadline has passed; no instance is announced"));
  CallPolicy at_once;
  at_once.wait_for_instance = false;
  EXPECT_EQ(error_of([&] { web.call(at_once, [](const Endpoint&) {}); })->reason(),
            CallError::Reason::kNoInstance);

  std::jthread caller([&] {
    web.call({.deadline = 60s}, [](const Endpoint& e) { EXPECT_EQ(e.host(), "host-1"); });
  });
  announce_one_soon();
}

TEST_F(CallTest, WithoutADeadlineWaitsForAnInstanceOrAStop) {
  discovery_.publish({});
  const auto web = balancer();
  auto host = std::async(std::launch::async, [&] {
    return web.call({.deadline = 0s}, [](const Endpoint& e) { return std::string(e.host()); });
  });
  announce_one_soon();
  EXPECT_EQ(::lookout::test::get(host), "host-1");

  discovery_.publish({});
  std::stop_source stop;
  auto error = std::async(std::launch::async, [&] {
    return error_of(
        [&] { web.call({.deadline = 0s, .stop = stop.get_token()}, [](const Endpoint&) {}); });
  });
  std::this_thread::sleep_for(30ms);
  stop.request_stop();
  EXPECT_EQ(::lookout::test::get(error)->reason(), CallError::Reason::kStopped);
}

TEST_F(CallTest, AStopEndsTheCall) {
  const auto web = balancer();
  std::stop_source stop;
  const auto error = error_of([&] {
    web.call({.stop = stop.get_token()}, [&](const Endpoint&, const Attempt& attempt) {
      stop.request_stop();
      EXPECT_TRUE(attempt.stop.stop_requested());
      throw std::runtime_error("cancelled");
    });
  });
  EXPECT_EQ(error->reason(), CallError::Reason::kStopped);
  for (const auto& instance : web.instances()) EXPECT_EQ(instance.failed, 0u);
}

TEST_F(CallTest, RetriesHaveABudget) {
  BalancerPolicy policy = round_robin().never_eject();
  policy.retries = {.ratio = 0.1, .per_second = 0, .burst = 10};
  const auto web = balancer(policy);
  int attempts = 0;
  for (int i = 0; i < 1000; ++i) {
    error_of([&] {
      web.call({}, [&](const Endpoint&) {
        ++attempts;
        throw std::runtime_error("refused");
      });
    });
  }
  EXPECT_GE(attempts, 1100);
  EXPECT_LE(attempts, 1110);
  const auto last =
      error_of([&] { web.call({}, [](const Endpoint&) { throw std::runtime_error("refused"); }); });
  EXPECT_EQ(last->reason(), CallError::Reason::kBudget);
}

TEST(RetryAccountTest, FractionsBetweenFrequentRetriesAreKept) {
  detail::RetryAccount account({.ratio = 0, .per_second = 10, .burst = 1});
  detail::Nanos now = 1'000'000'000;
  EXPECT_TRUE(account.take(now));
  // A little more than a second, in steps that each earn a ten-thousandth of a retry.
  int taken = 0;
  for (int step = 0; step < 100'050; ++step) taken += account.take(now += 10'000) ? 1 : 0;
  EXPECT_EQ(taken, 10);
  // Unused time beyond the maximum is lost.
  EXPECT_TRUE(account.take(now += 3'600'000'000'000));
  EXPECT_FALSE(account.take(now));
  EXPECT_FALSE(account.take(now += 99'000'000));
  EXPECT_TRUE(account.take(now += 2'000'000));
}

TEST(RetryAccountTest, WithoutARateOnlyCallsEarnRetries) {
  detail::RetryAccount account({.ratio = 0.5, .per_second = 0, .burst = 1});
  EXPECT_TRUE(account.take(1));
  EXPECT_FALSE(account.take(3'600'000'000'000));
  account.call_begun();
  account.call_begun();
  EXPECT_TRUE(account.take(3'600'000'000'001));
}

TEST_F(CallTest, FailingInstancesAreAvoided) {
  const auto web = balancer(round_robin().eject_after(3));
  std::map<std::string, int> calls;
  for (int i = 0; i < 300; ++i) {
    web.call({}, [&](const Endpoint& e) {
      ++calls[std::string(e.host())];
      if (e.host() == "host-2") throw std::runtime_error("refused");
    });
  }
  EXPECT_EQ(calls["host-2"], 3);
}

// --------------------------------------------------------------------------------- hedging

TEST_F(CallTest, ASilentInstanceCostsOneAttempt) {
  const auto web = balancer();
  int silent = 0;
  for (int i = 0; i < 20; ++i) {
    web.call({.deadline = 60s, .per_try = 5ms}, [&](const Endpoint&, const Attempt& attempt) {
      if (attempt.instance->id != "2") return;
      ++silent;
      std::this_thread::sleep_for(attempt.time);
      throw std::runtime_error("no answer");
    });
  }
  EXPECT_EQ(silent, 1);
}

TEST_F(CallTest, ABackupRequestMayFinishFirst) {
  const auto web = balancer();
  std::atomic<int> stopped{0};
  const std::string answer = web.call(
      {.deadline = 60s, .hedge_after = 10ms}, [&](const Endpoint& e, const Attempt& attempt) {
        if (attempt.number == 1) {
          EXPECT_TRUE(eventually([&] { return attempt.stop.stop_requested(); }));
          ++stopped;
        }
        return std::string(e.host());
      });
  EXPECT_NE(answer, "host-1");
  EXPECT_EQ(stopped, 1) << "it is waited for";
  EXPECT_EQ(web.instances()[0].failed, 1u) << "it was too slow";
  for (const auto& instance : web.instances()) EXPECT_EQ(instance.in_flight, 0);
}

TEST_F(CallTest, NoBackupRequestWithoutAnotherInstance) {
  const auto web = balancer();
  std::atomic<int> calls{0};
  web.call({.deadline = 60s, .hedge_after = 50s}, [&](const Endpoint&) { ++calls; });
  EXPECT_EQ(calls, 1);
  const auto error = error_of([&] {
    web.call({.deadline = 60s, .hedge_after = 50s}, [&](const Endpoint&) {
      ++calls;
      throw std::runtime_error("refused");
    });
  });
  EXPECT_EQ(calls, 4) << "a failure does not wait for the time of a backup request";
  EXPECT_EQ(error->reason(), CallError::Reason::kAttempts);
}

// ------------------------------------------------------------------------------ coroutines

class AsyncCallTest : public CallTest {
 protected:
  static Awaitable<void> sleep(std::chrono::milliseconds time) {
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, time);
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
  EventLoop loop_{2};
};

TEST_F(AsyncCallTest, FailsOver) {
  const auto web = balancer();
  std::atomic<int> calls{0};
  const std::string host = loop_.run(
      web.async_call({.scheme = "http"}, [&](const Endpoint& e) -> Awaitable<std::string> {
        co_await sleep(1ms);
        if (++calls < 3) throw std::runtime_error("refused");
        co_return std::string(e.host());
      }));
  EXPECT_EQ(calls, 3);
  EXPECT_THAT(host, testing::StartsWith("host-"));
  bool done = false;
  loop_.run(web.async_call({}, [&](const Endpoint&) -> Awaitable<void> {
    co_await sleep(1ms);
    done = true;
  }));
  EXPECT_TRUE(done);
}

TEST_F(AsyncCallTest, AHangingAttemptIsCancelled) {
  const auto web = balancer();
  std::atomic<int> calls{0};
  const int number =
      loop_.run(web.async_call({.deadline = 60s, .per_try = 20ms},
                               [&](const Endpoint&, const Attempt& attempt) -> Awaitable<int> {
                                 ++calls;
                                 if (attempt.number == 1) co_await sleep(1h);
                                 co_return attempt.number;
                               }));
  EXPECT_EQ(number, 2);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(web.instances()[0].failed, 1u);
}

TEST_F(AsyncCallTest, ABackupRequestMayFinishFirst) {
  const auto web = balancer();
  const int number =
      loop_.run(web.async_call({.deadline = 60s, .hedge_after = 10ms},
                               [&](const Endpoint&, const Attempt& attempt) -> Awaitable<int> {
                                 if (attempt.number == 1) co_await sleep(1h);
                                 co_return attempt.number;
                               }));
  EXPECT_EQ(number, 2);
  for (const auto& instance : web.instances()) EXPECT_EQ(instance.in_flight, 0);
}

TEST_F(AsyncCallTest, AJudgeThatThrowsDoesNotOutliveTheOtherAttempts) {
  const auto web = balancer();
  std::atomic<int> running{0};
  struct Running {
    explicit Running(std::atomic<int>& number) : count(number) { ++count; }
    ~Running() { --count; }
    std::atomic<int>& count;
  };
  EXPECT_THROW(loop_.run(web.async_call(
                   {.deadline = 60s, .hedge_after = 1ms},
                   [&](const Endpoint&, const Attempt& attempt) -> Awaitable<int> {
                     const Running now(running);
                     if (attempt.number == 1) co_await sleep(1h);
                     co_return attempt.number;
                   },
                   [](int) -> Outcome { throw std::logic_error("no judgement"); })),
               std::logic_error);
  EXPECT_EQ(running, 0) << "the first attempt refers to the call";
  for (const auto& instance : web.instances()) EXPECT_EQ(instance.in_flight, 0);
}

TEST_F(AsyncCallTest, ReportsEveryFailure) {
  const auto web = balancer();
  const auto error = error_of([&] {
    loop_.run(web.async_call({.attempts = 2}, [&](const Endpoint&) -> Awaitable<int> {
      co_await sleep(1ms);
      throw std::runtime_error("refused");
    }));
  });
  EXPECT_EQ(error->reason(), CallError::Reason::kAttempts);
  EXPECT_THAT(error->what(), HasSubstr("2 of 2 attempts failed"));
}

TEST_F(AsyncCallTest, AResultMayBeAFailure) {
  const auto web = balancer();
  std::atomic<int> calls{0};
  const int status = loop_.run(web.async_call(
      {},
      [&](const Endpoint&) -> Awaitable<int> {
        ++calls;
        co_await sleep(1ms);
        co_return 503;
      },
      [](int code) { return code == 503 ? Outcome::kFailed : Outcome::kOk; }));
  EXPECT_EQ(status, 503);
  EXPECT_EQ(calls, 3);
}

TEST_F(AsyncCallTest, AStopCancels) {
  const auto web = balancer();
  std::stop_source stop;
  const auto error = error_of([&] {
    loop_.run(web.async_call({.deadline = 60s, .per_try = 60s, .stop = stop.get_token()},
                             [&](const Endpoint&, const Attempt&) -> Awaitable<int> {
                               stop.request_stop();
                               co_await sleep(1h);
                               co_return 1;
                             }));
  });
  EXPECT_EQ(error->reason(), CallError::Reason::kStopped);
}

TEST_F(AsyncCallTest, WithoutADeadlineWaitsForAnInstanceOrAStop) {
  discovery_.publish({});
  const auto web = balancer();
  auto host = std::async(std::launch::async, [&] {
    return loop_.run(web.async_call(
        {.deadline = 0s},
        [](const Endpoint& e) -> Awaitable<std::string> { co_return std::string(e.host()); }));
  });
  announce_one_soon();
  EXPECT_EQ(::lookout::test::get(host), "host-1");

  discovery_.publish({});
  std::stop_source stop;
  auto error = std::async(std::launch::async, [&] {
    return error_of([&] {
      loop_.run(web.async_call({.deadline = 0s, .stop = stop.get_token()},
                               [](const Endpoint&) -> Awaitable<void> { co_return; }));
    });
  });
  std::this_thread::sleep_for(30ms);
  stop.request_stop();
  EXPECT_EQ(::lookout::test::get(error)->reason(), CallError::Reason::kStopped);
}

/// The usual form: options in braces. The function is a named variable first: GCC 12 destroys the
/// captures of a lambda twice if the lambda is written within the co_await expression.
Awaitable<std::string> awaited(const Balancer& web) {
  const std::string path(100, 'x');
  const auto get = [path](const Endpoint& e) -> Awaitable<std::string> {
    std::string url = e.url(path);
    co_return url;
  };
  std::string answer = co_await web.async_call({.attempts = 2, .scheme = "http"}, get);
  co_return answer;
}

TEST_F(AsyncCallTest, CanBeAwaited) {
  const auto web = balancer();
  EXPECT_EQ(loop_.run(awaited(web)), "http://host-1:80/" + std::string(100, 'x'));
}

TEST_F(AsyncCallTest, ACallWithAnInstanceDoesNotSuspend) {
  const auto web = balancer();
  const auto begun = std::chrono::steady_clock::now();
  const int number =
      loop_.run(web.async_call({.deadline = 60s, .per_try = 10s},
                               [](const Endpoint&, const Attempt& attempt) -> Awaitable<int> {
                                 if (attempt.number < 3) throw std::runtime_error("refused");
                                 co_return attempt.number;
                               }));
  EXPECT_EQ(number, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s) << "an attempt's time limit";
}

TEST_F(AsyncCallTest, ManyAtOnce) {
  const Balancer web(discovery_, "web", p2c_ewma());
  std::atomic<int> done{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        loop_.run(web.async_call({.deadline = 60s, .hedge_after = 1ms},
                                 [&](const Endpoint&) -> Awaitable<void> {
                                   co_await sleep(1ms);
                                   ++done;
                                 }));
      }
    });
  }
  threads.clear();
  EXPECT_GE(done, 400);
  for (const auto& instance : web.instances()) EXPECT_EQ(instance.in_flight, 0);
}

}  // namespace
}  // namespace lookout::registry
