#include "lookout/testing/sim/explore.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lookout/k8s/core/v1_draft.h"
#include "lookout/testing/sim/gtest.h"
#include "testing/sim/ended.h"
#include "testing/sim/forked_call.h"

// AddressSanitizer's allocator quarantines freed memory, so the order of addresses cannot be
// changed.
#if defined(__SANITIZE_ADDRESS__)
#define LOOKOUT_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOOKOUT_SANITIZED
#endif
#endif

namespace lookout::sim {
namespace {

using namespace std::chrono_literals;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::Pod;
using testing::HasSubstr;
using testing::StartsWith;

void await_stop(const std::stop_token& stop) {
  while (!stop.stop_requested()) std::this_thread::sleep_for(100ms);
}

/// Two jobs, so that no world runs in the test's own process.
ExploreOptions two() {
  ExploreOptions out;
  out.seeds = 2;
  return out;
}

std::string violation_of(const Scenario& scenario, const ExploreOptions& options = two()) {
  const Outcome outcome = explore("Scenario", scenario, options);
  EXPECT_EQ(outcome.passed, outcome.violation.empty());
  return outcome.violation;
}

// A world runs in a process of its own: failures stay there.
TEST(ExploreTest, AFailedAssertionIsAViolation) {
  EXPECT_THAT(violation_of([](World& world) {
                world.run(1s);
                EXPECT_EQ(1, 2) << "never";
              }),
              HasSubstr("an assertion has failed"));
  const auto in_process = [](World& world) {
    world.start("p", [](Process& p) {
      ADD_FAILURE() << "of the process";
      await_stop(p.stop());
    });
    world.run(1s);
  };
  EXPECT_THAT(violation_of(in_process), HasSubstr("of the process"));
  EXPECT_THAT(violation_of([](World&) { GTEST_SKIP(); }), HasSubstr("cannot be skipped"));
  const auto for_one_seed = [](World& world) {
    world.run(1s);
    EXPECT_NE(world.seed(), 2u);
  };
  EXPECT_THAT(explore("OneSeed", for_one_seed, two()).report, StartsWith("OneSeed: seed 2: "));
  EXPECT_TRUE(replay(for_one_seed, 2, {}));
  EXPECT_FALSE(replay(for_one_seed, 3, {}));
}

TEST(ExploreTest, AFailureIsReportedWheneverItHappens) {
  EXPECT_EQ(violation_of([](World& world) {
              world.run(1s);
              world.fail("behind run()");
            }),
            "behind run()");
  const auto at_end = [](World& world) {
    world.start("p", [&world](Process& p) {
      await_stop(p.stop());
      world.fail("while it ends");
    });
    world.run(1s);
  };
  EXPECT_EQ(violation_of(at_end), "while it ends");
  const auto in_check = [](World& world) {
    world.eventually("it says so", [&] {
      world.fail("in a check");
      return true;
    });
    world.run(1s);
  };
  EXPECT_EQ(violation_of(in_check), "in a check");
  EXPECT_EQ(violation_of([](World&) { throw 42; }),
            "the scenario threw something that is not a std::exception");
}

TEST(ExploreTest, AWorldWithoutChecksIsAViolation) {
  EXPECT_THAT(violation_of([](World& world) { world.eventually("it is so", [] { return true; }); }),
              HasSubstr("it is so: the scenario does not call run()"));
  const auto never_written = [](World& world) {
    world.always("it is so", [] { return false; });
    world.run(1s);
  };
  EXPECT_EQ(violation_of(never_written), "must always hold: it is so: it does not");
}

// The server deletes the pod at the end of its grace period, without a request.
TEST(ExploreTest, InvariantsAreCheckedAfterWritesOfTheServer) {
  World world(1);
  const auto pods = world.admin().resource<Pod>("default");
  const auto pod = Pod::draft("web", "default");
  pod.spec().set_node_name("node").set_termination_grace_period_seconds(10);
  pod.spec().containers().append("web").set_image("web:1");
  pods.create(pod);
  world.always("the pod is there", [&] { return static_cast<bool>(pods.find("web")); });
  world.at(5s, [&] { pods.remove("web"); });
  EXPECT_THROW(world.run(1min), Violation);
  EXPECT_GE(world.now(), 15s);
  EXPECT_LT(world.now(), 20s);
}

TEST(ExploreTest, FaultsInsideAScenarioAreRejected) {
  EXPECT_THAT(violation_of([](World& world) {
                world.faults(Plan{{.kind = FaultKind::kCrash, .process = "p", .at = 500}});
                world.run(1s);
              }),
              HasSubstr("ExploreOptions::faults"));
  EXPECT_THAT(violation_of([](World& world) { world.faults(only({FaultKind::kCrash})); }),
              HasSubstr("ExploreOptions::faults"));
}

/// Makes one request.
void asks_once(World& world) {
  world.start("p", [](Process& p) {
    p.client().resource<ConfigMap>("default").find("map");
    await_stop(p.stop());
  });
  world.run(5s);
}

TEST(ExploreTest, AReplayFailsIfItsFaultsDoNotOccur) {
  EXPECT_FALSE(
      replay(asks_once, 1, {{.kind = FaultKind::kDelay, .process = "p", .at = 1, .duration = 1s}}));
  const std::vector<Fault> wrong{{.kind = FaultKind::kCrashBefore, .process = "p", .at = 100},
                                 {.kind = FaultKind::kCrashAfter, .process = "p", .at = 1},
                                 {.kind = FaultKind::kCrash, .process = "other", .at = 1000}};
  for (const Fault& fault : wrong)
    EXPECT_THAT(replay(asks_once, 1, {fault}).value_or(""), HasSubstr(describe(fault)));
}

TEST(ExploreTest, AReplayReportsAFailureWithoutFaults) {
  const auto fails_without = [](World& world) {
    world.run(1s);
    if (world.seed() == 0) world.fail("it is seed 0");
  };
  EXPECT_THAT(replay(fails_without, 1, {}).value_or(""),
              StartsWith("without any fault: it is seed 0"));
}

TEST(ExploreTest, ARunWithoutWorldsIsAFailure) {
  EXPECT_THROW(explore_each("Crashes", asks_once, {FaultKind::kCrash}, two()), InvalidArgument);
  const Outcome none = explore_each("Writes", asks_once, {FaultKind::kFailAfter}, two());
  EXPECT_FALSE(none.passed);
  EXPECT_THAT(none.report, StartsWith("Writes: these faults"));
  ExploreOptions options;
  options.seeds = 0;
  EXPECT_THROW(explore("None", asks_once, options), InvalidArgument);
  options.first_seed = std::numeric_limits<std::uint64_t>::max();
  options.seeds = 5;
  EXPECT_EQ(explore("Last", asks_once, options).worlds, 1u);
}

/// Ends the program in the third life of the process.
void ends_in_third_life(World& world, void (*end)()) {
  world.start("p", [end](Process& p) {
    if (p.life() == 3) end();
    await_stop(p.stop());
  });
  world.run(1min);
}

TEST(ExploreTest, FaultsOfACrashedWorldAreReported) {
  ExploreOptions options;
  options.seeds = 20;
  options.faults = only({FaultKind::kCrash, FaultKind::kFreeze});
  options.faults.per_minute = 6;
  const auto explore_until = [&](void (*end)()) {
    return explore(
        "Dies", [end](World& world) { ends_in_third_life(world, end); }, options);
  };
  for (const Outcome& outcome :
       {explore_until([] { std::abort(); }), explore_until([] { std::exit(0); })}) {
    EXPECT_FALSE(outcome.passed);
    EXPECT_EQ(outcome.plan.size(), 2u) << outcome.report;
    EXPECT_THAT(outcome.report, HasSubstr("last output is above"));
  }
}

TEST(ExploreTest, ACrashLoopIsAViolation) {
  const auto throws = [](World& world) {
    world.start("p", [](Process& p) { p.client().resource<ConfigMap>("default").get("settings"); });
    world.run(5s);
  };
  EXPECT_THAT(violation_of(throws), StartsWith("p does not stay up"));
  ExploreOptions options = two();
  options.world.may_throw_at_rest = true;
  EXPECT_EQ(violation_of(throws, options), "");
}

TEST(ExploreTest, TwoRunsDetectOrderByAddress) {
  ExploreOptions options = two();
  options.twice = true;
  options.stable = false;
  EXPECT_EQ(violation_of(asks_once, options), "");
#ifndef LOOKOUT_SANITIZED
  const auto sorts = [](World& world) {
    world.start("p", [](Process& p) {
      std::vector<std::unique_ptr<std::string>> names;
      std::set<std::string*> sorted;
      for (int i = 0; i < 64; ++i) {
        names.push_back(std::make_unique<std::string>("map-" + std::to_string(i)));
        sorted.insert(names.back().get());
      }
      for (const auto* name : sorted) p.client().resource<ConfigMap>("default").find(*name);
      await_stop(p.stop());
    });
    world.run(1s);
  };
  EXPECT_THAT(violation_of(sorts, options), HasSubstr("GET /api/v1/namespaces/default/configmaps"));
#endif
}

/// The order of the addresses of several allocations.
std::string order_of_memory() {
  std::vector<std::unique_ptr<char[]>> pieces;
  for (std::size_t i = 0; i < 40; ++i) pieces.push_back(std::make_unique<char[]>(16 + 16 * i));
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](std::size_t i) { return pieces[i].get(); });
  return fmt::format("{}\n", fmt::join(order, " "));
}

// A thread that ends frees its memory. That must not happen concurrently with the threads of the
// world.
TEST(ExploreTest, MemoryIsTheSameInEachRunWhenThreadsEnd) {
  // The result is so short that it does not change this process's own memory.
  const auto run = [] {
    World world(1);
    std::string out;
    for (int i = 0; i < 20; ++i) {
      std::thread([] { order_of_memory(); }).detach();
      world.sleep(1ms);
      out += order_of_memory();
    }
    return std::to_string(std::hash<std::string>()(out) % 1'000'000'000);
  };
  const std::string first = ForkedCall(run).result();
  EXPECT_FALSE(first.empty());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(ForkedCall(run).result(), first);
}

TEST(ExploreTest, AWorldRestoresTheProcessorAffinity) {
  const auto processors = [] {
    cpu_set_t out;
    CPU_ZERO(&out);
    sched_getaffinity(0, sizeof out, &out);
    return CPU_COUNT(&out);
  };
  const int before = processors();
  World(1).sleep(1s);
  EXPECT_EQ(processors(), before);
}

TEST(ForkedCallTest, DoesNotWaitForGrandchildren) {
  const auto begin = std::chrono::steady_clock::now();
  const ForkedCall call([] { return std::to_string(std::system("sleep 60 >/dev/null 2>&1 &")); });
  EXPECT_EQ(call.result(), "0");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST(ForkedCallTest, AChildEndsWithItsParent) {
  SharedText pid;
  const pid_t parent = fork();
  if (parent == 0) {
    const ForkedCall call([&] {
      pid.add(std::to_string(getpid()));
      for (;;) pause();
      return std::string();
    });
    _exit(0);
  }
  const auto last = std::chrono::steady_clock::now() + 30s;
  const auto wait_until = [&](auto done) {
    while (!done() && std::chrono::steady_clock::now() < last) std::this_thread::sleep_for(1ms);
    return done();
  };
  ASSERT_TRUE(wait_until([&] { return !pid.text().empty(); }));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  // The command line of a zombie is empty.
  const std::string file = fmt::format("/proc/{}/cmdline", pid.text());
  EXPECT_TRUE(wait_until([&] {
    std::string command;
    return !std::getline(std::ifstream(file), command);
  }));
}

TEST(ForkedCallTest, AnOversizedTextIsNotAdded) {
  SharedText text;
  text.add("first");
  text.add(std::string(1 << 20, 'x'));
  EXPECT_EQ(text.text(), "first");
}

TEST(EndedTest, SeveralFaultsAreSentInOrder) {
  const Plan plan{{.kind = FaultKind::kRefuse, .process = "p", .at = 3, .status = 500},
                  {.kind = FaultKind::kLag, .process = "etcd", .at = 7, .duration = 5s}};
  EXPECT_EQ(decode_faults(encode(plan[0]) + encode(plan[1])), plan);
}

// A stale read would make a server reject watches from every version.
TEST(ExploreTest, AStaleReadIsNotAppliedToWatches) {
  ExploreOptions options;
  options.seeds = 20;
  options.faults = only({FaultKind::kStaleRead});
  options.faults.per_request = 1;
  const auto watches = [](World& world) {
    world.start("p", [](Process& p) {
      auto watch = p.client().resource<ConfigMap>("default").watch({.resource_version = "0"});
      while (watch.next(p.stop())) {
      }
    });
    world.run(3s);
  };
  EXPECT_EQ(violation_of(watches, options), "");
}

}  // namespace
}  // namespace lookout::sim
