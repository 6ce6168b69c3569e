// An informer of a real kube-apiserver that is killed and restarted under writes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/support/eventually.h"
#include "tests/support/realistic_pods.h"

namespace lookout {
namespace {

using k8s::core::v1::Pod;

constexpr std::size_t kPods = 5000;
constexpr int kChanges = 2000;
constexpr int kWriters = 4;

/// Records a handler's notifications and the errors in them.
class Witness {
 public:
  informer::EventHandler<Pod> handler(std::string name) {
    informer::EventHandler<Pod> out;
    out.name = std::move(name);
    out.on_add = [this](const Pod& pod) { add(pod); };
    out.on_update = [this](const Pod& before, const Pod& after) { update(before, after); };
    out.on_delete = [this](const Pod& last, informer::FinalState state) { remove(last, state); };
    return out;
  }

  std::map<std::string, std::string> versions() const {
    const std::lock_guard lock(mutex_);
    return versions_;
  }
  std::vector<std::string> complaints() const {
    const std::lock_guard lock(mutex_);
    return complaints_;
  }

 private:
  static std::uint64_t number(std::string_view version) {
    return std::stoull(std::string(version));
  }

  void complain(std::string text) {
    if (complaints_.size() < 20) complaints_.push_back(std::move(text));
  }

  void add(const Pod& pod) {
    const std::lock_guard lock(mutex_);
    const auto [it, inserted] = versions_.emplace(pod.key(), pod.resource_version());
    if (!inserted) complain("added twice: " + pod.key());
  }

  void update(const Pod& before, const Pod& after) {
    const std::lock_guard lock(mutex_);
    const auto it = versions_.find(after.key());
    if (it == versions_.end()) return complain("updated before it was added: " + after.key());
    if (it->second != before.resource_version()) complain("a version was left out: " + after.key());
    if (number(after.resource_version()) < number(it->second))
      complain("went back: " + after.key());
    it->second = after.resource_version();
  }

  void remove(const Pod& last, informer::FinalState state) {
    const std::lock_guard lock(mutex_);
    const auto it = versions_.find(last.key());
    if (it == versions_.end()) return complain("deleted before it was added: " + last.key());
    if (state == informer::FinalState::kKnown &&
        number(last.resource_version()) < number(it->second)) {
      complain("the deletion went back: " + last.key());
    }
    versions_.erase(it);
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::string> versions_;
  std::vector<std::string> complaints_;
};

/// Retries a request until the server is available.
template <class F>
void persistently(F request) {
  for (;;) {
    try {
      request();
      return;
    } catch (const std::exception& e) {
      // A killed server may have executed it, or there was a concurrent write.
      if (api::is_not_found(e) || api::is_already_exists(e) || api::is_conflict(e)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

class RealServerTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto program = test::KubeApiserver::find_program();
    if (!program) {
      GTEST_SKIP() << "*** no kube-apiserver or no etcd: run scripts/build-kube-apiserver.sh and "
                      "install etcd-server to run this test ***";
    }
    server_.emplace(*program);
  }

  static void create_pods(const rest::Client& client, std::size_t count) {
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.emplace_back([&] {
        const auto pods = client.resource<Pod>("default");
        for (std::size_t n = 0; (n = next++) < count;) {
          pods.create(api::Object::parse(test::realistic_pod(n)));
        }
      });
    }
  }

  /// One random change: a label, a status, a deletion or a new pod.
  static void change_something(const rest::TypedClient<Pod>& pods, std::mt19937& random,
                               std::size_t fresh) {
    const std::size_t which = random() % kPods;
    const std::string name(Pod(api::Object::parse(test::realistic_pod(which))).name());
    switch (random() % 4) {
      case 0:
        return persistently([&] {
          pods.patch(name, rest::PatchType::kMerge,
                     fmt::format(R"({{"metadata":{{"labels":{{"turn":"{}"}}}}}})", random()));
        });
      case 1:
        return persistently([&] {
          pods.patch(name, rest::PatchType::kMerge, test::realistic_pod_status(which), {},
                     "status");
        });
      case 2:
        return persistently([&] {
          rest::DeleteOptions options;
          options.grace_period_seconds = 0;
          pods.remove(name, options);
        });
      default:
        return persistently(
            [&] { pods.create(api::Object::parse(test::realistic_pod(kPods + fresh))); });
    }
  }

  /// Writes to the server, disturbs it twice during the writes, and compares the cache and the
  /// handlers' states with the server's final state.
  void compare_under_writes(const std::function<void()>& disturb);

  std::optional<test::KubeApiserver> server_;
  std::uint64_t watches_ = 0;
};

void RealServerTest::compare_under_writes(const std::function<void()>& disturb) {
  const rest::Client client{server_->config()};
  create_pods(client, kPods);

  informer::SharedInformerFactory factory(client);
  const auto informer = factory.informer<Pod>();
  informer.add_index("node", [](const Pod& pod) { return pod.spec().node_name(); });
  Witness first;
  Witness second;
  informer.add_handler(first.handler("first")).release();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_GE(informer.untyped_informer().store().size(), kPods);
  informer.add_handler(second.handler("second"))
      .release();  // a late handler: receives all existing objects first

  std::atomic<int> done{0};
  std::vector<std::jthread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      const auto pods = client.resource<Pod>("default");
      for (int n = 0; (n = done++) < kChanges;)
        change_something(pods, random, static_cast<std::size_t>(n));
    });
  }
  for (const int at : {kChanges / 3, kChanges * 2 / 3}) {
    ASSERT_TRUE(test::eventually([&] { return done >= at; }, std::chrono::minutes(5)));
    disturb();
  }
  for (auto& writer : writers) writer.join();

  const auto listed = client.resource<Pod>().list();
  // The cache has caught up when it equals the list.
  const auto difference = [&]() -> std::string {
    const auto cache = informer.untyped_informer().store().snapshot();
    if (cache.size() != listed.items.size()) {
      return fmt::format("{} cached, {} listed", cache.size(), listed.items.size());
    }
    for (const auto& pod : listed.items) {
      const auto cached = cache.get(pod.ns(), pod.name());
      if (!cached) return pod.key() + " is not cached";
      if (cached != pod)
        return pod.key() + " differs: " + cached.to_json() + " and " + pod.to_json();
    }
    return "";
  };
  EXPECT_TRUE(test::eventually([&] { return difference().empty(); }, std::chrono::minutes(2)))
      << difference();

  std::map<std::string, std::string> expected;
  std::map<std::string, std::size_t> by_node;
  for (const auto& pod : listed.items) {
    expected.emplace(pod.key(), pod.resource_version());
    ++by_node[std::string(pod.spec().node_name())];
  }
  for (const Witness* witness : {&first, &second}) {
    EXPECT_TRUE(test::eventually([&] { return witness->versions() == expected; }));
    EXPECT_EQ(witness->complaints(), std::vector<std::string>{});
  }
  for (const auto& [node, count] : by_node)
    EXPECT_EQ(informer.by_index("node", node).size(), count) << node;
  watches_ = informer.untyped_informer().stats().watches;
}

TEST_F(RealServerTest, TheCacheEqualsTheServerAfterRestartsUnderWrites) {
  compare_under_writes([&] {
    server_->kill();
    server_->start();
  });
  EXPECT_GE(watches_, 3u) << "the server was restarted twice";
}

// After 75 s, the default of Keepalive::stream_silence, the informer reconnects.
TEST_F(RealServerTest, TheCacheEqualsTheServerAfterItWasFrozenUnderWrites) {
  const char* seconds = std::getenv("LOOKOUT_FREEZE_SECONDS");
  const std::chrono::seconds time(seconds != nullptr ? std::atoi(seconds) : 5);
  compare_under_writes([&] {
    server_->freeze();
    std::this_thread::sleep_for(time);
    server_->thaw();
  });
}

}  // namespace
}  // namespace lookout
