#include "lookout/testing/sim/world.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/base/detail/log.h"
#include "lookout/base/pinned.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/testing/sim/explore.h"
#include "testing/sim/world_impl.h"
#include "tests/support/thrown.h"

namespace lookout::sim {
namespace {

using namespace std::chrono_literals;
using k8s::core::v1::ConfigMap;

void wait_for(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, stop, [] { return false; });
}

void write_map(const rest::Client& client, const std::string& name) {
  auto map = ConfigMap::draft(name, "default");
  client.resource<ConfigMap>("default").create(map);
}

TEST(WorldTest, AProcessWritesThroughTheNetwork) {
  World world(1);
  world.start("writer", [](Process& p) {
    write_map(p.client(), "found");
    wait_for(p.stop());
  });
  world.sleep(1min);
  EXPECT_TRUE(world.admin().resource<ConfigMap>("default").find("found"));
  EXPECT_EQ(world.now(), 1min);
  EXPECT_NE(world.story().find("POST /api/v1/namespaces/default/configmaps"), std::string::npos)
      << world.story();
}

TEST(WorldTest, HoursPassWhileAllThreadsWait) {
  World world(1);
  std::vector<std::string> heard;
  std::jthread sleeper([&] {
    std::this_thread::sleep_for(4h);
    heard.emplace_back("four hours");
  });
  world.sleep(3h);
  EXPECT_TRUE(heard.empty());
  world.sleep(2h);
  EXPECT_EQ(heard, std::vector<std::string>{"four hours"});
}

TEST(WorldTest, EveryKindOfSleepIsVirtual) {
  World world(1);
  ::sleep(3600);
  ::usleep(500'000);
  std::this_thread::sleep_until(std::chrono::system_clock::now() + 1h);
  std::this_thread::sleep_until(std::chrono::steady_clock::now() + 1h);
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  EXPECT_EQ(changed.wait_for(lock, 1h), std::cv_status::timeout);
  EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::now() + 1h),
            std::cv_status::timeout);
  std::timed_mutex timed;
  timed.lock();
  std::jthread other([&] { EXPECT_FALSE(timed.try_lock_for(1h)); });
  other.join();
  std::binary_semaphore semaphore(0);
  EXPECT_FALSE(semaphore.try_acquire_for(1h));
  std::promise<void> promise;
  EXPECT_EQ(promise.get_future().wait_for(1h), std::future_status::timeout);
  // Some functions of the standard library round up.
  EXPECT_GE(world.now(), 8h + 500ms);
  EXPECT_LT(world.now(), 8h + 10s);
}

TEST(WorldTest, ACrashedProcessIsCutOffAndRestarts) {
  World world(1);
  world.start("writer", [](Process& p) {
    const auto name = "life-" + std::to_string(p.life());
    wait_for(p.stop());
    // The crashed first life still runs.
    EXPECT_THROW(write_map(p.client(), name), std::exception);
  });
  world.sleep(1s);
  world.crash("writer");
  world.sleep(10s);
  EXPECT_NE(world.story().find("begins life 2"), std::string::npos) << world.story();
  EXPECT_FALSE(world.admin().resource<ConfigMap>("default").find("life-1"));
}

TEST(WorldTest, AFrozenProcessWakesLater) {
  World world(1);
  Time woke{};
  world.start("sleeper", [&](Process& p) {
    std::this_thread::sleep_for(5s);
    if (woke == Time{}) woke = world.now();
    wait_for(p.stop());
  });
  world.sleep(1s);
  world.freeze("sleeper", 1min);
  world.sleep(2min);
  EXPECT_GE(woke, 61s);
}

TEST(WorldTest, APartitionEndsCalls) {
  World world(1);
  std::string why;
  world.start("writer", [&](Process& p) {
    std::this_thread::sleep_for(2s);
    why = test::refusal<std::exception>([&] { write_map(p.client(), "late"); });
    wait_for(p.stop());
  });
  world.sleep(1s);
  world.partition("writer", 5min);
  world.sleep(4min);
  EXPECT_FALSE(why.empty());
}

/// OpenSSL draws random numbers for a key: from the world's seed.
void new_key() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                &EVP_PKEY_free);
  unsigned char byte = 0;
  RAND_bytes(&byte, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(byte));
}

std::string story_of_a_minute(World& world) {
  world.run(1min);
  return world.story(10'000) + std::to_string(world.digest());
}

template <class Story>
void expect_a_story_for_each_seed(const Story& story) {
  const std::string first = story(7);
  EXPECT_EQ(first, story(7));
  EXPECT_NE(first, story(8));
}

TEST(WorldTest, ASeedDeterminesTheRun) {
  const auto story = [](std::uint64_t seed) {
    World world(seed);
    world.faults(all_faults());
    world.start("writer", [](Process& p) {
      std::random_device random;
      for (int i = 0; i < 40 && !p.stop().stop_requested(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1000));
        try {
          write_map(p.client(), "map-" + std::to_string(random() % 1000));
          new_key();
        } catch (const std::exception&) {
          // As it happens.
        }
      }
      wait_for(p.stop());
    });
    return story_of_a_minute(world);
  };
  expect_a_story_for_each_seed(story);
}

/// Restores a logger's sinks.
class OtherSinks : public base::Pinned {
 public:
  explicit OtherSinks(std::vector<spdlog::sink_ptr> sinks)
      : before_(std::exchange(spdlog::default_logger_raw()->sinks(), std::move(sinks))) {}
  ~OtherSinks() { spdlog::default_logger_raw()->sinks() = before_; }

 private:
  const std::vector<spdlog::sink_ptr> before_;
};

// The sinks lock a mutex for each line. Without care, LOOKOUT_SIM_SEED, which prints, would run a
// different schedule.
TEST(WorldTest, PrintedLinesDoNotChangeTheRun) {
  const auto digest = [](const std::vector<spdlog::sink_ptr>& sinks) {
    const OtherSinks other(sinks);
    World world(1);
    for (const char* name : {"one", "two", "three"}) {
      world.start(name, [](Process& p) {
        for (int i = 0; i < 300; ++i) {
          log::warn("line {}", i);
          if (i % 10 == 0) std::this_thread::sleep_for(1ms);
        }
        write_map(p.client(), p.name());
        wait_for(p.stop());
      });
    }
    world.sleep(10s);
    return world.digest();
  };
  const auto printed = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(1000);
  EXPECT_EQ(digest({printed}), digest({}));
  EXPECT_GE(printed->last_raw().size(), 900u) << "they are printed";
}

// The order of objects in a store depends on their hashes.
TEST(WorldTest, HashesAreTheSameInEveryProcess) {
  EXPECT_EQ(api::key_hash("default", "web"), 2135099698u);
  EXPECT_EQ(api::key_hash("", "node"), 979413311u);
}

TEST(WorldTest, AProcessSeesASimulatedMachine) {
  World world(1);
  std::array<char, 64> host{};
  bool limited = true;
  world.start("writer", [&](Process& p) {
    EXPECT_EQ(gethostname(host.data(), host.size()), 0);
    limited = static_cast<bool>(std::ifstream("/proc/self/cgroup"));
    wait_for(p.stop());
  });
  world.sleep(1s);
  EXPECT_STREQ(host.data(), "writer");
  EXPECT_FALSE(limited);
}

// A notify of an atomic may or may not wake a thread.
TEST(WorldTest, ANotifyWithoutWaiterChangesNothing) {
  const auto digest = [](int wakes) {
    World world(1);
    std::atomic<int> word{0};
    for (int i = 0; i < wakes; ++i)
      syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    world.start("writer", [](Process& p) {
      write_map(p.client(), "map");
      wait_for(p.stop());
    });
    world.sleep(10s);
    return world.digest();
  };
  EXPECT_EQ(digest(500), digest(0));
}

/// Watches maps in "default" and notes the events.
void note_events(Process& p, std::vector<std::string>& out) {
  const auto maps = p.client().resource<ConfigMap>("default");
  auto watch = maps.watch({.resource_version = "1001"});
  while (const auto event = watch.next(p.stop())) {
    if (event->object.name() != "kube-root-ca.crt")
      out.push_back(std::string(event->object.name()));
  }
}

TEST(WorldTest, EventsAreDelayedOrRepeated) {
  for (const FaultKind kind : {FaultKind::kLateEvents, FaultKind::kRepeatEvents}) {
    World world(1);
    Plan plan(1);
    plan[0] = {.kind = kind, .process = "watcher", .at = 1, .duration = 10s};
    world.faults(plan);
    std::vector<std::string> heard;
    world.start("watcher", [&](Process& p) { note_events(p, heard); });
    world.sleep(1s);
    std::vector<std::string> made;
    for (int i = 0; i < 9; ++i) {
      made.push_back("map-" + std::to_string(i));
      write_map(world.admin(), made.back());
    }
    world.sleep(9s);
    if (kind == FaultKind::kLateEvents) {
      EXPECT_TRUE(heard.empty());
      world.sleep(2s);
      EXPECT_EQ(heard, made);
    } else {
      EXPECT_GT(heard.size(), made.size());
      heard.erase(std::unique(heard.begin(), heard.end()), heard.end());
      EXPECT_EQ(heard, made);
    }
    EXPECT_EQ(world.struck(), plan);
  }
}

TEST(WorldTest, AUserEditsBetweenTwoRequests) {
  World world(1);
  Plan plan(1);
  plan[0] = {.kind = FaultKind::kEdit, .process = "writer", .at = 2};
  world.faults(plan);
  world.edit("makes the second one", [&] { write_map(world.admin(), "second"); });
  std::string why;
  world.start("writer", [&](Process& p) {
    write_map(p.client(), "first");
    why = test::refusal<api::StatusError>([&] { write_map(p.client(), "second"); });
    wait_for(p.stop());
  });
  world.sleep(1s);
  EXPECT_NE(why.find("already exists"), std::string::npos) << why;
  EXPECT_NE(world.story().find("(makes the second one)"), std::string::npos) << world.story();
}

TEST(WorldTest, NoPlannedFaultOccursAfterTheFaultPeriod) {
  World world(1);
  Plan plan(1);
  plan[0] = {.kind = FaultKind::kRefuse, .process = "writer", .at = 2, .status = 500};
  world.faults(plan);
  world.start("writer", [&](Process& p) {
    write_map(p.client(), "first");
    world.sleep(2s);
    write_map(p.client(), "second");
    wait_for(p.stop());
  });
  world.run(1s);
  EXPECT_TRUE(world.struck().empty());
  EXPECT_TRUE(world.admin().resource<ConfigMap>("default").find("second"));
}

TEST(WorldTest, FaultsOfItsEtcdCanBePlanned) {
  World world(1, {.etcd = true, .servers = 2, .settle = 10s, .rest = 10s});
  EtcdModel& etcd = *world.impl().etcd();
  Plan plan(3);
  plan[0] = {.kind = FaultKind::kNoLeader, .process = "etcd", .at = 1000, .duration = 4s};
  plan[1] = {.kind = FaultKind::kCompact, .process = "etcd", .at = 10'000};
  plan[2] = {.kind = FaultKind::kCrash, .process = "etcd", .at = 20'000};
  world.faults(plan);
  Time written{0};
  world.at(2s, [&] {
    write_map(world.admin(), "late");
    written = world.now();
  });
  const apiserver::storage::Revision before = etcd.compacted();
  world.eventually("the other server has it", [&] {
    return static_cast<bool>(world.admin(1).resource<ConfigMap>("default").find("late"));
  });
  world.run(30s);
  EXPECT_GE(written, 5s) << "not without a leader";
  EXPECT_GT(etcd.compacted(), before);
  EXPECT_EQ(world.struck(), plan);
  EXPECT_NE(world.story().find("(has no leader for 4.000 s)"), std::string::npos) << world.story();
}

TEST(WorldTest, ASeedDeterminesARunWithEtcd) {
  const auto story = [](std::uint64_t seed) {
    World world(seed, {.etcd = true, .servers = 2, .settle = 10s, .rest = 10s});
    world.start("writer", [](Process& p) {
      for (int i = 0; i < 30 && !p.stop().stop_requested(); ++i) {
        std::this_thread::sleep_for(1s);
        try {
          write_map(p.client(), "map-" + std::to_string(i));
        } catch (const std::exception&) {
          // As it happens.
        }
      }
      wait_for(p.stop());
    });
    world.faults(only({FaultKind::kNoLeader, FaultKind::kLoseAnswer, FaultKind::kStallStream}));
    return story_of_a_minute(world);
  };
  expect_a_story_for_each_seed(story);
}

TEST(WorldTest, SeveralServersNeedAnEtcd) {
  EXPECT_THROW(World(1, {.servers = 2}), InvalidArgument);
  World world(1, {.etcd = true});
  EXPECT_THROW(world.start("etcd", [](Process&) {}), InvalidArgument) << "its faults have the name";
}

TEST(WorldTest, InvariantsAreCheckedAfterEachWrite) {
  World world(1);
  world.always("there is no map called bad",
               [&] { return !world.admin().resource<ConfigMap>("default").find("bad"); });
  world.start("writer", [](Process& p) {
    std::this_thread::sleep_for(3s);
    write_map(p.client(), "bad");
    wait_for(p.stop());
  });
  try {
    world.run(1min);
    FAIL() << "nobody objected";
  } catch (const Violation& e) {
    EXPECT_STREQ(e.what(), "must always hold: there is no map called bad: it does not");
  }
  EXPECT_LT(world.now(), 10s);
}

TEST(WorldTest, TwoLeadersAtOnceAreAViolation) {
  World world(1);
  for (const char* name : {"one", "two"}) {
    world.start(name, [&world](Process& p) {
      world.enter("leader", p);
      wait_for(p.stop());
      world.leave("leader", p);
    });
  }
  EXPECT_THROW(world.run(1min), Violation);
}

TEST(WorldTest, WritesAtRestAreAHotLoop) {
  World world(1);
  world.start("busy", [](Process& p) {
    for (int i = 0; !p.stop().stop_requested(); ++i) {
      write_map(p.client(), "map-" + std::to_string(i));
      std::this_thread::sleep_for(1s);
    }
  });
  try {
    world.run(10s);
    FAIL() << "nobody objected";
  } catch (const Violation& e) {
    EXPECT_NE(std::string(e.what()).find("hot loop: busy has written"), std::string::npos);
  }
}

/// Runs one process for half a minute: it writes, and then waits for its end.
void run_writer(World& world, void (*write)(Process&)) {
  world.start("writer", [write](Process& p) {
    write(p);
    wait_for(p.stop());
  });
  world.run(30s);
}

/// Writes two maps once; after a crash in between, it forgets the second one.
void writes_two_once(World& world) {
  run_writer(world, [](Process& p) {
    const auto maps = p.client().resource<ConfigMap>("default");
    bool there = false;
    for (int i = 0; i < 10; ++i) {
      try {
        there = static_cast<bool>(maps.find("first"));
        if (!there) {
          write_map(p.client(), "first");
          write_map(p.client(), "second");
        }
        break;
      } catch (const rest::TransportError&) {
        if (p.stop().stop_requested()) return;
        std::this_thread::sleep_for(1s);
      } catch (const api::StatusError&) {
        std::this_thread::sleep_for(1s);
      }
    }
  });
}

TEST(ExploreTest, FindsTheCrashBetweenTwoWrites) {
  ExploreOptions options;
  options.seeds = 1000;
  options.faults = only({FaultKind::kCrashBefore, FaultKind::kDelay, FaultKind::kClockJump});
  options.faults.per_request = 0.2;
  const Outcome outcome = explore("TwoWrites", &writes_two_once, options);
  ASSERT_FALSE(outcome.passed);
  EXPECT_NE(outcome.violation.find("missing:   configmaps/default/second"), std::string::npos);
  ASSERT_EQ(outcome.plan.size(), 1u) << outcome.report;
  EXPECT_EQ(outcome.plan[0].kind, FaultKind::kCrashBefore);
  EXPECT_NE(outcome.report.find("LOOKOUT_SIM_SEED="), std::string::npos);
  EXPECT_TRUE(replay(&writes_two_once, outcome.seed, outcome.plan, options));
  EXPECT_FALSE(replay(&writes_two_once, outcome.seed, {}, options));
}

/// Each life records that it has begun, and writes the map later; except a second or later life
/// whose first request fails.
void gives_up_after_a_crash(World& world) {
  world.start("writer", [](Process& p) {
    const auto maps = p.client().resource<ConfigMap>("default");
    bool gives_up = false;
    try {
      write_map(p.client(), "life-" + std::to_string(p.life()));
    } catch (const rest::TransportError&) {
      gives_up = p.life() > 1;
    }
    for (int i = 0; i < 10 && !p.stop().stop_requested(); ++i) {
      maps.find("map");
      std::this_thread::sleep_for(2s);
    }
    if (!gives_up && !maps.find("map")) write_map(p.client(), "map");
    wait_for(p.stop());
  });
  world.eventually("the map is there", [&world] {
    return static_cast<bool>(world.admin().resource<ConfigMap>("default").find("map"));
  });
  world.run(30s);
}

// Each dropped crash changes the numbers of later requests.
TEST(ExploreTest, AFaultStaysWithItsRequestWhenEarlierFaultsAreDropped) {
  ExploreOptions options;
  options.stable = false;
  options.faults = only({FaultKind::kLoseAnswer, FaultKind::kCrash});
  options.faults.per_request = 0.5;
  options.faults.per_minute = 8;
  for (int i = 0; i < 5; ++i) {
    const Outcome outcome = explore("GivesUpAfterACrash", &gives_up_after_a_crash, options);
    ASSERT_FALSE(outcome.passed);
    EXPECT_EQ(outcome.plan.size(), 2u) << outcome.report;
    options.first_seed = outcome.seed + 1;
  }
}

/// A user creates ten ConfigMaps and retries each until it exists; one of them is not retried.
void gives_up_on_one(World& world) {
  const auto make = std::make_shared<std::function<void(std::string)>>();
  *make = [&world, make = std::weak_ptr(make)](const std::string& name) {
    try {
      const auto maps = world.admin().resource<ConfigMap>("default");
      if (!maps.find(name)) maps.create(ConfigMap::draft(name, "default"));
    } catch (const Error&) {
      if (name == "map-7") return;
      world.at(std::chrono::ceil<std::chrono::milliseconds>(world.now()) + 500ms,
               [make = make.lock(), name] { (*make)(name); });
    }
  };
  for (int i = 0; i < 10; ++i)
    world.at(1s + i * 2s, [make, name = "map-" + std::to_string(i)] { (*make)(name); });
  world.run(40s);
}

TEST(ExploreTest, FaultsOfEtcdKeepTheirTimesWithoutTheOthers) {
  ExploreOptions options;
  options.seeds = 200;
  options.world.etcd = true;
  options.world.settle = 15s;
  options.world.rest = 5s;
  options.faults = only({FaultKind::kLoseRequest, FaultKind::kRefuse, FaultKind::kDelay});
  options.faults.per_request = 0.2;
  const Outcome outcome = explore("GivesUpOnOne", &gives_up_on_one, options);
  ASSERT_FALSE(outcome.passed);
  EXPECT_NE(outcome.violation.find("missing:   configmaps/default/map-7"), std::string::npos)
      << outcome.violation;
  ASSERT_LE(outcome.plan.size(), 2u) << outcome.report;
  EXPECT_NE(outcome.plan.back().call.find("map-7"), std::string::npos) << outcome.report;
}

// Minimising needs it: the run with all drawn faults must fail again.
TEST(ExploreTest, APlanOfTheDrawnFaultsGivesTheSameRun) {
  const auto digest = [](const FaultOptions& drawn, const Plan& plan, Plan& struck) {
    World world(7, {.settle = 10s, .rest = 10s, .hot_loop = 1000});
    world.impl().have_only(drawn, plan);
    for (const char* name : {"one", "two"}) {
      world.start(name, [](Process& p) {
        for (int i = 0; !p.stop().stop_requested() && i < 30; ++i) {
          std::this_thread::sleep_for(700ms);
          try {
            write_map(p.client(), p.name() + std::to_string(i));
          } catch (const std::exception&) {
            // As it happens.
          }
        }
        wait_for(p.stop());
      });
    }
    world.run(1min);
    struck = world.struck();
    return world.digest();
  };
  FaultOptions many = all_faults();
  many.per_request = 0.1;
  many.per_minute = 6;
  Plan drawn;
  Plan planned;
  const std::uint64_t first = digest(many, {}, drawn);
  ASSERT_GT(drawn.size(), 5u);
  EXPECT_EQ(digest(no_faults(), drawn, planned), first);
  EXPECT_EQ(planned, drawn);
}

TEST(ExploreTest, TriesAFaultAtEachRequest) {
  ExploreOptions options;
  options.seeds = 1;
  const Outcome outcome =
      explore_each("TwoWrites", &writes_two_once, {FaultKind::kCrashAfter}, options);
  ASSERT_FALSE(outcome.passed);
  // The first write is the second request.
  ASSERT_EQ(outcome.plan.size(), 1u);
  EXPECT_EQ(outcome.plan[0].at, 2u) << outcome.report;
  EXPECT_TRUE(explore_each("TwoWrites", &writes_two_once, {FaultKind::kDelay}, options).passed);
}

/// Writes a map until a response arrives; forgets the other map after two failures.
void gives_up_at_the_second_failure(World& world) {
  run_writer(world, [](Process& p) {
    for (int failures = 0; failures < 2; ++failures) {
      try {
        write_map(p.client(), "map");
        break;
      } catch (const rest::TransportError&) {
        std::this_thread::sleep_for(1s);
      }
    }
  });
}

TEST(ExploreTest, TriesTwoFaultsIfOneChangesNothing) {
  ExploreOptions options;
  options.seeds = 1;
  const auto explore_to = [&](unsigned depth) {
    options.depth = depth;
    return explore_each("GivesUp", &gives_up_at_the_second_failure, {FaultKind::kLoseRequest},
                        options);
  };
  EXPECT_TRUE(explore_to(1).passed);
  const Outcome outcome = explore_to(2);
  ASSERT_FALSE(outcome.passed);
  ASSERT_EQ(outcome.plan.size(), 2u) << outcome.report;
  EXPECT_EQ(outcome.plan[0].at, 1u);
  EXPECT_EQ(outcome.plan[1].at, 2u);
  EXPECT_NE(outcome.violation.find("missing:   configmaps/default/map"), std::string::npos);
}

TEST(ExploreTest, ACrashedWorldFailsAlone) {
  ExploreOptions options;
  options.seeds = 2;
  const Outcome outcome = explore(
      "Dies",
      [](World& world) {
        world.run(1s);
        if (world.seed() == 2) std::abort();
      },
      options);
  EXPECT_FALSE(outcome.passed);
  EXPECT_EQ(outcome.seed, 2u);
  EXPECT_NE(outcome.violation.find("signal 6"), std::string::npos) << outcome.violation;
}

TEST(ExploreTest, ReportsAScenarioThatFailsWithoutFaults) {
  const Outcome outcome = explore("Fails", [](World& world) {
    world.eventually("pigs fly", [] { return false; });
    world.run(1s);
  });
  EXPECT_FALSE(outcome.passed);
  EXPECT_TRUE(outcome.report.starts_with("Fails: without any fault: must hold in the end"))
      << outcome.report;
}

}  // namespace
}  // namespace lookout::sim
