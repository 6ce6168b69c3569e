#include "controller/write_barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "controller/cache_core.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/testing/fake_controller_source.h"
#include "tests/support/eventually.h"
#include "tests/support/objects.h"

namespace lookout::controller::detail {
namespace {

using test::eventually;
using test::FakeControllerSource;

/// A server that can be replaced by one with another history.
class ReplacedServer : public cache::ListerWatcher {
 public:
  FakeControllerSource& now() const { return *server(); }

  /// The new server has these pods. Its resourceVersions begin again.
  void replace(const std::vector<api::Object>& pods) {
    const auto next = std::make_shared<FakeControllerSource>();
    for (const api::Object& pod : pods) next->put(pod);
    {
      const std::lock_guard lock(mutex_);
      servers_.push_back(next);
    }
    servers_.front()->break_connections();
  }

  Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                 std::stop_token stop) override {
    return server()->list(std::move(on_item), std::move(options), std::move(stop));
  }
  Awaitable<std::unique_ptr<cache::Watcher>> watch(rest::ListOptions options,
                                                   std::stop_token stop) override {
    return server()->watch(std::move(options), std::move(stop));
  }

 private:
  std::shared_ptr<FakeControllerSource> server() const {
    const std::lock_guard lock(mutex_);
    return servers_.back();
  }

  mutable std::mutex mutex_;
  // All of them, because their requests may still run. Guarded by mutex_.
  std::vector<std::shared_ptr<FakeControllerSource>> servers_{
      std::make_shared<FakeControllerSource>()};
};

/// A cache of the pods p0 to p9, at version 110.
class CachedPods {
 public:
  explicit CachedPods(const std::shared_ptr<EventLoop>& loop) {
    for (int i = 0; i < 10; ++i) put(i);
    informer::InformerOptions options;
    options.reflector.expected_api_version = "v1";
    options.reflector.expected_kind = "Pod";
    options.reflector.backoff.initial = std::chrono::milliseconds(1);
    options.reflector.backoff.max = std::chrono::milliseconds(1);
    informer_ = std::make_shared<informer::SharedIndexInformer>(
        server_, options, loop, std::make_shared<informer::HandlerPool>(loop));
    kind_->resource = api::Resource("", "v1", "Pod", "pods", true);
    kind_->parts.push_back({"", "", informer_, std::make_shared<std::stop_source>()});
    informer_->start();
    EXPECT_TRUE(server_->now().wait_until_watched());
  }
  ~CachedPods() { informer_->shutdown(); }
  CachedPods(const CachedPods&) = delete;
  CachedPods& operator=(const CachedPods&) = delete;

  /// A write that the cache never sees.
  Write creation() const { return {kind_, Request("default", "lost"), "uid", "1000"}; }
  Write deletion() const { return {kind_, Request("default", "p0"), "", ""}; }
  ReplacedServer& server() const { return *server_; }
  std::string version() const { return informer_->last_sync_resource_version(); }

 private:
  void put(int number) const {
    server_->now().put(test::pod("default/p" + std::to_string(number)));
  }

  const std::shared_ptr<ReplacedServer> server_ = std::make_shared<ReplacedServer>();
  std::shared_ptr<informer::SharedIndexInformer> informer_;
  const std::shared_ptr<CachedKind> kind_ = std::make_shared<CachedKind>();
};

class WriteBarrierTest : public testing::Test {
 protected:
  WriteBarrierTest() { barrier_->begin(); }

  void wait(std::vector<Write> writes) {
    barrier_->wait(std::move(writes), std::chrono::hours(1), [this](bool seen) {
      EXPECT_TRUE(seen);
      ended_ = true;
    });
  }

  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(2u);
  std::atomic<bool> ended_{false};
  const CachedPods pods_{loop_};
  const CachedPods others_{loop_};
  const std::shared_ptr<WriteBarrier> barrier_ =
      std::make_shared<WriteBarrier>(loop_, Clock::real());
};

TEST_F(WriteBarrierTest, AWriteThatTheNewHistoryOfTheServerLacksIsNotAwaited) {
  wait({pods_.creation()});
  EXPECT_FALSE(ended_);
  pods_.server().replace({});
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
  EXPECT_EQ(barrier_->waiting(), 0u);
}

TEST_F(WriteBarrierTest, ADeletionThatTheNewHistoryOfTheServerLacksIsNotAwaited) {
  wait({pods_.deletion()});
  EXPECT_FALSE(ended_);
  pods_.server().replace({test::pod("default/p0")});
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
}

TEST_F(WriteBarrierTest, TheHistoryOfEveryAwaitedCacheIsFollowed) {
  wait({pods_.creation(), others_.creation()});
  // The barrier still waits for the first one.
  const std::string before = others_.version();
  others_.server().replace({});
  ASSERT_TRUE(eventually([&] { return others_.version() != before; }));
  EXPECT_FALSE(ended_);
  pods_.server().replace({});
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
}

TEST_F(WriteBarrierTest, AWriteIsAwaitedWhileTheHistoryAdvances) {
  wait({pods_.creation()});
  FakeControllerSource& server = pods_.server().now();
  server.break_connections();
  server.forget();
  server.put(test::pod("default/p0"));
  ASSERT_TRUE(eventually([&] { return pods_.version() == server.resource_version(); }));
  EXPECT_FALSE(ended_);
  while (std::stoull(server.resource_version()) < 1000) server.bookmark();
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
}

TEST_F(WriteBarrierTest, AChangeEndsTheWaitAtOnce) {
  // The clock stands still, so the caches are not checked periodically.
  const auto barrier = std::make_shared<WriteBarrier>(loop_, std::make_shared<test::FakeClock>());
  barrier->begin();
  Write first = pods_.creation();
  first.key = Request("default", "p0");
  first.resource_version = "111";
  Write second = first;
  second.key = Request("default", "p1");
  second.resource_version = "112";
  bool ended = false;
  barrier->wait({first, second}, std::chrono::hours(1), [&](bool seen) {
    EXPECT_TRUE(seen);
    ended = true;
  });
  const auto change = [&](const std::string& name) {
    const api::Object pod = pods_.server().now().put(test::pod("default/" + name));
    EXPECT_TRUE(eventually([&] { return pods_.version() == pod.resource_version(); }));
    barrier->on_change(first.kind.get(), pod);
  };
  change("p0");
  EXPECT_FALSE(ended);
  change("p1");
  EXPECT_TRUE(ended);
  EXPECT_EQ(barrier->waiting(), 0u);
}

}  // namespace
}  // namespace lookout::controller::detail
