// An API server that is killed and restarted: the embedded one, and a real one if there is one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "lookout/k8s/core/v1.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"

namespace lookout::registry {
namespace {

using namespace registry::test;

/// The duration of the outage: $LOOKOUT_OUTAGE_SECONDS, or a moment.
std::chrono::seconds outage() {
  const char* given = std::getenv("LOOKOUT_OUTAGE_SECONDS");
  return std::chrono::seconds(given == nullptr ? 1 : std::atoi(given));
}

struct EmbeddedServer {
  static bool available() { return true; }
  rest::Client client() const { return cluster.client(); }
  void kill() { cluster.stop_server(); }
  void start() { cluster.start_server(); }

  Cluster cluster;
};

struct RealServer {
  static bool available() { return lookout::test::KubeApiserver::find_program().has_value(); }
  rest::Client client() const { return rest::Client(server.config()); }
  void kill() { server.kill(); }
  void start() { server.start(); }

  lookout::test::KubeApiserver server{*lookout::test::KubeApiserver::find_program()};
};

template <class Server>
class OutageTest : public testing::Test {
 protected:
  static constexpr int kPods = 300;
  static constexpr int kServices = 30;

  void SetUp() override {
    if (!Server::available()) GTEST_SKIP() << "there is no kube-apiserver to run";
    server_.emplace();
    client_.emplace(server_->client());
    for (int n = 0; n < kPods; ++n) create_pod(n);
  }

  rest::ResourceClient pods() const {
    return client_->resource(k8s::core::v1::Pod::kResource, "default");
  }
  static std::string service(int n) { return fmt::format("service-{}", n % kServices); }
  static std::string pod_name(int n) { return fmt::format("pod-{}", n); }
  void create_pod(int n) const {
    pods().create(api::Object::parse(fmt::format(
        R"({{"metadata":{{"name":"{}","labels":{{"kratos-service-app":"{}","kratos-service-id":"{}"}},
             "annotations":{{"kratos-service-metadata":"{{\"mark\":\"before\"}}"}}}},
             "spec":{{"containers":[{{"name":"c","image":"i","ports":[{{"containerPort":80}}]}}]}}}})",
        pod_name(n), service(n), n)));
    pods().patch(pod_name(n), rest::PatchType::kMerge,
                 fmt::format(R"({{"status":{{"phase":"Running","podIP":"10.0.{}.{}",
                                 "conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                             n / 250, n % 250),
                 {}, "status");
  }
  /// Moves each pod to the next service.
  void change_all() const {
    for (int n = 0; n < kPods; ++n) {
      pods().patch(pod_name(n), rest::PatchType::kMerge,
                   fmt::format(
                       R"({{"metadata":{{"labels":{{"kratos-service-app":"{}"}},
                   "annotations":{{"kratos-service-metadata":"{{\"mark\":\"after\"}}"}}}}}})",
                       service(n + 1)));
    }
  }
  static bool all_are(const InstanceSet& set, const std::string& mark) {
    if (set.size() != kPods / kServices) return false;
    return std::ranges::all_of(set, [&](const auto& i) { return i.metadata.at("mark") == mark; });
  }

  std::optional<Server> server_;
  std::optional<rest::Client> client_;
};

using Servers = testing::Types<EmbeddedServer, RealServer>;
TYPED_TEST_SUITE(OutageTest, Servers);

TYPED_TEST(OutageTest, TheLastSetsAreServedAndMarkedUntilTheServerIsBack) {
  Options options;
  options.backoff = {.initial = 10ms, .max = 200ms};
  kratos::Registry registry(*this->client_, options);
  std::vector<Watcher> watchers;
  InstanceSetPtr first;
  for (int s = 0; s < this->kServices; ++s) {
    watchers.push_back(registry.watch(this->service(s)));
    const auto set =
        next_that(watchers.back(), [&](const auto& now) { return this->all_are(now, "before"); });
    ASSERT_TRUE(set);
    if (s == 0) first = set;
  }
  ASSERT_TRUE(eventually([&] { return registry.freshness().live; }));

  this->server_->kill();
  ASSERT_TRUE(eventually([&] { return !registry.freshness().live; }));
  const auto stale_since = registry.freshness().since;
  const auto end = std::chrono::steady_clock::now() + outage();
  do {
    // During the outage: the last known sets, stale since the same moment, and no notifications.
    for (int s = 0; s < this->kServices; ++s) {
      const auto set = registry.get_service(this->service(s));
      ASSERT_TRUE(this->all_are(*set, "before"));
      ASSERT_FALSE(set->freshness().live);
      ASSERT_LT(std::chrono::abs(set->freshness().since - stale_since), 1s);
      ASSERT_EQ(watchers[static_cast<std::size_t>(s)].next_for(0ms).outcome(),
                NextOutcome::kTimedOut);
    }
    std::this_thread::sleep_for(50ms);
  } while (std::chrono::steady_clock::now() < end);

  this->server_->start();
  ASSERT_TRUE(eventually([&] { return registry.freshness().live; }));
  EXPECT_TRUE(first->freshness().live) << "a set says how things are now";
  this->change_all();
  for (auto& watcher : watchers) {
    EXPECT_TRUE(next_that(watcher, [&](const auto& set) { return this->all_are(set, "after"); }));
  }
  EXPECT_TRUE(this->all_are(*first, "before")) << "what somebody holds does not change";
}

}  // namespace
}  // namespace lookout::registry
