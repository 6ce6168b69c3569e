// Many services and watchers in a cluster that changes all the time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "lookout/apiserver/storage/memory.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/registry/kratos/registry.h"
#include "registry/kratos/pod_reader.h"
#include "registry/pod_state.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/own_resources.h"
#include "tests/support/realistic_pods.h"
#include "tests/support/sanitizers.h"

namespace lookout::registry::kratos {
namespace {

using namespace registry::test;
using lookout::test::kSanitized;

/// With LOOKOUT_FULL_SCALE in the environment, the tests have the full size that the registry must
/// support, and take minutes.
const bool kFullScale = std::getenv("LOOKOUT_FULL_SCALE") != nullptr;

const int kServices = kFullScale ? 1000 : kSanitized ? 40 : 200;
const int kPods = kFullScale ? 20'000 : kSanitized ? 400 : 2000;
const int kWatchers = kFullScale ? 500 : 100;
const int kChanges = kFullScale ? 30'000 : kSanitized ? 1500 : 8000;

std::string service_name(int n) { return fmt::format("service-{}", n); }
std::string pod_name(int n) { return fmt::format("pod-{}", n); }

/// The text of an instance in these tests: "pod ip version metadata".
using Seen = std::set<std::string>;

Seen seen(const InstanceSet& set) {
  Seen out;
  for (const auto& instance : set) {
    const auto mark = instance.metadata.find("mark");
    out.insert(fmt::format("{} {} {} {}", instance.origin, instance.endpoints.at(0).text(),
                           instance.id, mark == instance.metadata.end() ? "" : mark->second));
  }
  return out;
}

/// The expected result, computed from the server's pods without the registry.
std::map<std::string, Seen> truth(const Cluster& cluster) {
  std::map<std::string, Seen> out;
  for (const auto& item : cluster.pods().list().items) {
    const k8s::core::v1::Pod pod(item);
    if (pod.status().phase() != "Running" || !detail::pod_is_ready(item)) continue;
    if (!item["metadata"]["deletionTimestamp"].as_string().empty()) continue;
    const std::string service(item.labels()["kratos-service-app"].as_string());
    if (service.empty()) continue;
    // {"mark":"..."}
    std::string mark(item.annotations()["kratos-service-metadata"].as_string());
    if (!mark.empty()) mark = mark.substr(9, mark.size() - 11);
    out[service].insert(fmt::format("{} http://{}:80 {} {}", item.key(), pod.status().pod_ip(),
                                    item.labels()["kratos-service-id"].as_string(), mark));
  }
  return out;
}

/// Pods with one service each, and threads that change them.
class ScaleTest : public testing::Test {
 protected:
  explicit ScaleTest(apiserver::ServerOptions options = {}) : cluster_(std::move(options)) {}

  void create(int n) {
    cluster_.create_pod(pod_name(n), kratos_pod(service_name(n % kServices), std::to_string(n),
                                                fmt::format("10.{}.{}.1", n / 250, n % 250)));
  }
  void create_all(int pods) {
    std::vector<std::jthread> makers;
    for (int m = 0; m < 4; ++m) {
      makers.emplace_back([&, m] {
        for (int n = m; n < pods; n += 4) create(n);
      });
    }
  }

  /// A random change of a pod.
  void change(int n, std::minstd_rand& random) {
    const auto pick = [&](int below) {
      return static_cast<int>(random() % static_cast<unsigned>(below));
    };
    const std::string name = pod_name(n);
    const std::string ip = fmt::format("10.{}.{}.1", n / 250, n % 250);
    switch (pick(6)) {
      case 0:
        cluster_.label(name, "kratos-service-app", service_name(pick(kServices)));
        break;
      case 1:
        cluster_.set_status(name, ip, "Running", false);
        break;
      case 2:
        cluster_.set_status(name, ip, "Running", true);
        break;
      case 3:
        cluster_.annotate(name, "kratos-service-metadata",
                          fmt::format(R"({{"mark":"{}"}})", pick(1000)));
        break;
      case 4:
        cluster_.label(name, "kratos-service-app", "");
        break;
      default:
        cluster_.remove_pod(name);
        create(n);
        break;
    }
  }
  /// `rate`: changes per second; 0: no limit.
  void make_changes(int changes, int pods, int rate) {
    std::vector<std::jthread> changers;
    const auto begin = std::chrono::steady_clock::now();
    for (int c = 0; c < 4; ++c) {
      changers.emplace_back([&, c] {
        std::minstd_rand random(static_cast<unsigned>(c) + 1);
        // Each thread has its own pods, so that no other thread deletes them.
        for (int i = 0; i < changes / 4; ++i) {
          if (rate > 0) {
            std::this_thread::sleep_until(begin +
                                          std::chrono::microseconds(4'000'000ll * i / rate));
          }
          change(static_cast<int>(random() % static_cast<unsigned>(pods / 4)) * 4 + c, random);
        }
      });
    }
    changers.clear();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("{} changes, {:.0f} a second\n", changes, changes / took.count());
  }

  /// Writes the time into the metadata of a pod, directly in the server's storage: the next event
  /// of the server carries it. Pods from kPods on are for this.
  void stamp(int n) {
    auto& pods = cluster_.server().storage().resource("pods");
    cluster_.client().loop().run(
        pods.guaranteed_update("default/" + pod_name(n), false, {}, [](const api::Object& present) {
          rapidjson::Document pod = present.to_document();
          const std::string mark = fmt::format(R"({{"mark":"{}"}})", now_ns());
          auto& annotations = pod["metadata"]["annotations"];
          annotations.RemoveMember("kratos-service-metadata");
          annotations.AddMember("kratos-service-metadata",
                                rapidjson::Value(mark.c_str(), pod.GetAllocator()),
                                pod.GetAllocator());
          return api::Object::from(pod);
        }));
  }
  static std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  Cluster cluster_;
};

void print_latency(const char* what, std::vector<double> micros) {
  if (micros.empty()) return;
  std::ranges::sort(micros);
  fmt::print("{}: p50 {:.0f} us, p99 {:.0f} us, max {:.0f} us ({} samples)\n", what,
             micros[micros.size() / 2], micros[micros.size() * 99 / 100], micros.back(),
             micros.size());
}

TEST_F(ScaleTest, EveryWatcherEndsWithTheExactSet) {
  create_all(kPods);
  Registry registry(cluster_.client());
  auto lazy = registry.watch(service_name(0));

  // Half of the watchers block, half have callbacks.
  std::mutex mutex;
  std::map<int, Seen> last;
  const auto note = [&](int watcher, const InstanceSet& set) {
    Seen now = seen(set);
    const std::lock_guard lock(mutex);
    last[watcher] = std::move(now);
  };
  std::vector<Subscription> subscriptions;
  std::vector<std::jthread> threads;
  for (int w = 0; w < kWatchers; ++w) {
    const std::string service = service_name(w % (kServices / 2));
    if (w % 2 == 0) {
      subscriptions.push_back(
          registry.subscribe(service, [&, w](const InstanceSetPtr& set) { note(w, *set); }));
    } else {
      threads.emplace_back([&, w, watcher = registry.watch(service)](std::stop_token stop) mutable {
        while (const auto set = watcher.next(stop)) note(w, *set);
      });
    }
  }
  ASSERT_EQ(registry.stats().watchers, static_cast<std::size_t>(kWatchers) + 1);

  make_changes(kChanges, kPods, kFullScale ? 1000 : 0);
  const auto expected = truth(cluster_);
  const auto expected_of = [&](int w) {
    const auto it = expected.find(service_name(w % (kServices / 2)));
    return it == expected.end() ? Seen{} : it->second;
  };
  for (int w = 0; w < kWatchers; ++w) {
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return last[w] == expected_of(w);
    })) << "watcher "
        << w;
  }
  // The watcher that never read did not block others, and gets the latest set.
  const auto set = lazy.next_for(kLong);
  ASSERT_TRUE(set);
  EXPECT_EQ(seen(*set), expected_of(0));
  for (int s = 0; s < kServices; ++s) {
    const auto it = expected.find(service_name(s));
    EXPECT_EQ(seen(*registry.get_service(service_name(s))),
              it == expected.end() ? Seen{} : it->second);
  }
}

TEST_F(ScaleTest, WatchersReleaseEverything) {
  create_all(20);
  Registry registry(cluster_.client());
  registry.get_service(service_name(0));
  std::vector<std::jthread> threads;
  std::atomic<bool> done{false};
  threads.emplace_back([&] {
    for (int i = 0; !done; ++i) {
      cluster_.annotate(pod_name(i % 20), "kratos-service-metadata",
                        fmt::format(R"({{"mark":"{}"}})", i));
    }
  });
  const int kRounds = kSanitized && !kFullScale ? 10'000 : 100'000;
  std::size_t memory = 0;
  std::size_t thread_number = 0;
  for (int i = 0; i < kRounds; ++i) {
    if (i == kRounds / 10) {  // by now everything has been allocated once
      memory = lookout::test::resident_bytes();
      thread_number = lookout::test::thread_count();
    }
    const std::string service = service_name(i % 25);
    if (i % 3 == 0) {
      const Subscription subscription = registry.subscribe(service, [](const InstanceSetPtr&) {});
    } else {
      auto watcher = registry.watch(service);
      if (i % 3 == 1 && i % 25 < 20) {
        EXPECT_TRUE(watcher.next_for(kLong));
      }
    }
  }
  EXPECT_LT(lookout::test::thread_count(), thread_number + 10) << "a pool may still grow a little";
  // (A sanitizer quarantines freed memory, and finds leaks itself.)
  if (!kSanitized) {
    EXPECT_LT(lookout::test::resident_bytes(), memory + (16u << 20));
  }
  done = true;
  threads.clear();
  EXPECT_EQ(cluster_.server().stats().watches, 1) << "all watchers share one informer";
  // A running computation of a set keeps its service for a moment.
  EXPECT_TRUE(eventually([&] { return registry.stats().followed == 0; }));
  EXPECT_EQ(registry.stats().watchers, 0u);
}

TEST_F(ScaleTest, AFlappingPodEndsInItsFinalState) {
  create_all(3);
  const int kFlaps = kSanitized && !kFullScale ? 300 : 10'000;
  Registry registry(cluster_.client());
  auto watcher = registry.watch(service_name(1));
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 1; }));
  std::atomic<int> sets{0};
  std::jthread reader([&](std::stop_token stop) {
    auto other = registry.watch(service_name(1));
    while (const auto set = other.next(stop)) {
      EXPECT_LE(set->size(), 1u);
      ++sets;
    }
  });
  for (int i = 0; i < kFlaps; ++i) {
    cluster_.set_status(pod_name(1), "10.0.1.1", "Running", i % 2 != 0);
  }
  cluster_.annotate(pod_name(1), "kratos-service-metadata", R"({"mark":"end"})");
  ASSERT_TRUE(next_that(
      watcher, [](const auto& s) { return s.size() == 1 && s[0].metadata.contains("mark"); }));
  EXPECT_LE(sets, kFlaps + 3);
}

/// A server with a short history, so that disconnected clients must relist.
class ForgetfulServerTest : public ScaleTest {
 protected:
  ForgetfulServerTest() : ScaleTest(options()) {}

  static apiserver::ServerOptions options() {
    apiserver::ServerOptions out;
    apiserver::storage::MemoryOptions memory;
    memory.history = 16;
    out.storage = std::make_shared<apiserver::storage::MemoryBackend>(memory);
    return out;
  }
};

TEST_F(ForgetfulServerTest, SeesAllChangesAfterADisconnect) {
  constexpr int kFew = 60;
  create_all(kFew);
  Options options;
  options.backoff = {.initial = std::chrono::milliseconds(1), .max = std::chrono::milliseconds(20)};
  Registry registry(cluster_.client(), options);
  std::vector<Watcher> watchers;
  for (int s = 0; s < kServices && s < kFew; ++s)
    watchers.push_back(registry.watch(service_name(s)));
  for (auto& watcher : watchers) ASSERT_TRUE(watcher.next_for(kLong));

  cluster_.stop_server();
  ASSERT_TRUE(eventually([&] { return !registry.freshness().live; }));
  {
    // Everything changes in the meantime.
    apiserver::ServerOptions elsewhere;
    elsewhere.storage = cluster_.storage();
    apiserver::Server server(elsewhere);
    const rest::Client client(server.client_config());
    const auto pods = client.resource(k8s::core::v1::Pod::kResource, "default");
    for (int n = 0; n < kFew; ++n) {
      pods.patch(
          pod_name(n), rest::PatchType::kMerge,
          fmt::format(
              R"({{"metadata":{{"annotations":{{"kratos-service-metadata":"{{\"mark\":\"new\"}}"}},
                             "labels":{{"kratos-service-app":"{}"}}}}}})",
              service_name((n + 1) % kServices)));
    }
  }
  cluster_.start_server();
  const auto expected = truth(cluster_);
  for (std::size_t s = 0; s < watchers.size(); ++s) {
    const auto it = expected.find(service_name(static_cast<int>(s)));
    const Seen wanted = it == expected.end() ? Seen{} : it->second;
    EXPECT_TRUE(next_that(watchers[s], [&](const auto& set) { return seen(set) == wanted; }))
        << service_name(static_cast<int>(s));
  }
  EXPECT_TRUE(eventually([&] { return registry.freshness().live; }));
}

// -------------------------------------------------------------------------------- what it costs

TEST(RegistryProjectionTest, KeepsLittleOfAPod) {
  const std::string created = lookout::test::realistic_pod(7);
  api::JsonDecoder everything;
  std::string all = created;
  const auto whole = everything.decode(all);
  api::JsonDecoder some(pod_projection());
  std::string again = created;
  const auto kept = some.decode(again);
  ASSERT_TRUE(whole) << everything.error();
  ASSERT_TRUE(kept) << some.error();
  EXPECT_LT(kept.memory_size(), 250u) << kept.to_json();
  EXPECT_LT(kept.memory_size() * 15, whole.memory_size() * 2);
}

TEST_F(ScaleTest, SetsArriveSoon) {
  // The time from the server's event until next() returns: printed, not asserted.
  create_all(kPods);
  Registry registry(cluster_.client());
  const int stamped = kPods;  // a pod with its own service
  cluster_.create_pod(pod_name(stamped), kratos_pod("stamped", "1"));
  auto watcher = registry.watch("stamped");
  ASSERT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 1; }));
  const auto one = [&] {
    stamp(stamped);
    const auto set = watcher.next_for(kLong);
    if (!set) throw std::runtime_error(to_string(set.outcome()));
    return static_cast<double>(now_ns() - std::stoll((*set)[0].metadata.at("mark"))) / 1000;
  };
  std::vector<double> quiet;
  for (int i = 0; i < 300; ++i) quiet.push_back(one());
  print_latency("from the server's event to next(), nothing else going on", quiet);

  std::atomic<int> told{0};
  std::vector<Subscription> others;  // destroyed before the objects that they use
  for (int w = 0; w < kWatchers; ++w) {
    others.push_back(
        registry.subscribe(service_name(w % kServices), [&](const InstanceSetPtr&) { ++told; }));
  }
  std::atomic<bool> done{false};
  std::jthread changer([&] {
    make_changes(kFullScale ? 20'000 : kSanitized ? 400 : 2000, kPods, 1000);
    done = true;
  });
  std::vector<double> busy;
  while (!done) {
    busy.push_back(one());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  print_latency(fmt::format("the same, {} watchers and 1,000 changes a second", kWatchers).c_str(),
                busy);
  EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace lookout::registry::kratos
