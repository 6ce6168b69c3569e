#include "lookout/informer/handler_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <thread>

#include "lookout/base/error.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/own_resources.h"

namespace lookout::informer {
namespace {

using namespace std::chrono_literals;
using lookout::test::eventually;

class HandlerPoolTest : public testing::Test {
 protected:
  HandlerPool& make(unsigned threads, unsigned max_threads = 0) {
    options_.threads = threads;
    if (max_threads != 0) options_.max_threads = max_threads;
    pool_ = std::make_unique<HandlerPool>(loop_, options_);
    return *pool_;
  }

  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(1);
  HandlerPoolOptions options_;
  std::unique_ptr<HandlerPool> pool_;
};

TEST_F(HandlerPoolTest, RunsEveryTaskOnce) {
  auto& pool = make(2);
  std::latch done(1000);
  std::atomic<int> runs{0};
  for (int i = 0; i < 500; ++i) {
    pool.post([&] {
      ++runs;
      pool.post([&] {
        ++runs;
        done.count_down();
      });
      done.count_down();
    });
  }
  lookout::test::wait_for(done);
  EXPECT_EQ(runs, 1000);
}

/// No thread can be started while it exists: there is no memory for such a large stack.
class NoNewThreads {
 public:
  NoNewThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(pthread_attr_init(&huge), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST_F(HandlerPoolTest, ATaskWaitsUntilAThreadCanBeStarted) {
  options_.grow_after = 1h;
  auto& pool = make(2);
  std::latch done(3);
  {
    const NoNewThreads none;
    for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(pool.post([&] { done.count_down(); }));
    EXPECT_EQ(pool.threads(), 0u);
  }
  lookout::test::wait_for(done);
}

TEST_F(HandlerPoolTest, ATaskDoesNotWaitForABlockedOneWhenASecondThreadCanBeStarted) {
  options_.grow_after = 1h;
  auto& pool = make(2);
  std::promise<void> go_on;
  const std::shared_future<void> gate = go_on.get_future().share();
  std::promise<void> begun;
  std::promise<void> second;
  pool.post([&begun, gate] {
    begun.set_value();
    lookout::test::wait_for(gate);
  });
  lookout::test::wait_for(begun.get_future());
  {
    const NoNewThreads none;
    pool.post([&] { second.set_value(); });
    EXPECT_EQ(pool.threads(), 1u);
  }
  lookout::test::wait_for(second.get_future());
  go_on.set_value();
}

TEST_F(HandlerPoolTest, AnEmptyTaskIsRefused) { EXPECT_THROW(make(1).post({}), InvalidArgument); }

/// Two pools with one thread, which differ in a time: infinite and short. Each has three tasks, which
/// wait until they may go on.
class InfiniteAndShort {
 public:
  InfiniteAndShort(const std::shared_ptr<EventLoop>& loop, HandlerPoolOptions options,
                   std::chrono::milliseconds HandlerPoolOptions::*time,
                   std::chrono::milliseconds value) {
    options.threads = 1;
    options.*time = std::chrono::milliseconds::max();
    infinite_.emplace(loop, options);
    options.*time = value;
    short_.emplace(loop, options);
    const auto gate = go_on_.get_future().share();
    for (int i = 0; i < 3; ++i) {
      infinite_->post([gate] { lookout::test::wait_for(gate); });
      short_->post([gate] { lookout::test::wait_for(gate); });
    }
  }
  unsigned with_infinite() const { return infinite_->threads(); }
  unsigned with_short() const { return short_->threads(); }
  void go_on() { go_on_.set_value(); }

 private:
  std::promise<void> go_on_;
  std::optional<HandlerPool> infinite_;
  std::optional<HandlerPool> short_;
};

TEST_F(HandlerPoolTest, NeverGrowsWithAnInfiniteGrowDelay) {
  InfiniteAndShort pools(loop_, options_, &HandlerPoolOptions::grow_after, 20ms);
  // Its timer runs on the same loop, and expires after one that has overflowed.
  EXPECT_TRUE(eventually([&] { return pools.with_short() == 3; }));
  EXPECT_EQ(pools.with_infinite(), 1u);
  pools.go_on();
}

TEST_F(HandlerPoolTest, NeverShrinksWithAnInfiniteIdleTime) {
  InfiniteAndShort pools(loop_, options_, &HandlerPoolOptions::shrink_after, 50ms);
  EXPECT_TRUE(eventually([&] { return pools.with_infinite() == 3 && pools.with_short() == 3; }));
  pools.go_on();
  EXPECT_TRUE(eventually([&] { return pools.with_short() == 1; }));
  EXPECT_EQ(pools.with_infinite(), 3u);
}

TEST_F(HandlerPoolTest, AFewThreadsServeManyTasks) {
  options_.grow_after = 1h;
  auto& pool = make(2);
  EXPECT_EQ(pool.threads(), 0u) << "no thread before there is something to do";
  std::latch done(1000);
  for (int i = 0; i < 1000; ++i) pool.post([&] { done.count_down(); });
  lookout::test::wait_for(done);
  EXPECT_LE(pool.threads(), 2u);
}

TEST_F(HandlerPoolTest, GrowsWhileTasksBlock) {
  options_.shrink_after = 1h;
  auto& pool = make(1);
  std::latch together(5);
  std::latch done(5);
  for (int i = 0; i < 5; ++i) {
    pool.post([&] {
      together.count_down();
      lookout::test::wait_for(together);  // continues when all five have arrived
      EXPECT_EQ(pool.threads(), 5u);
      done.count_down();
    });
  }
  lookout::test::wait_for(done);
}

TEST_F(HandlerPoolTest, ABlockedTaskDoesNotDelayOthers) {
  auto& pool = make(2);
  for (int round = 0; round < 300; ++round) {
    std::promise<void> second;
    std::promise<void> first;
    pool.post([&] {
      lookout::test::wait_for(second.get_future());
      first.set_value();
    });
    pool.post([&] { second.set_value(); });
    lookout::test::wait_for(first.get_future());
  }
}

// A handler has one task at a time: it makes progress even while many others block.
TEST_F(HandlerPoolTest, HandlersRunWhileManyOthersBlock) {
  constexpr int kBlocked = 150;
  options_.grow_after = 1ms;
  auto& pool = make(2);
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::latch blocked(kBlocked);
  std::latch left(kBlocked);
  for (int i = 0; i < kBlocked; ++i) {
    pool.post([&] {
      blocked.count_down();
      lookout::test::wait_for(gone);
      left.count_down();
    });
  }
  std::promise<void> another;
  pool.post([&] { another.set_value(); });
  lookout::test::wait_for(another.get_future());
  lookout::test::wait_for(blocked);
  EXPECT_GE(pool.threads(), static_cast<unsigned>(kBlocked));
  go.set_value();
  lookout::test::wait_for(left);
}

TEST_F(HandlerPoolTest, GrowsUpToALimit) {
  auto& pool = make(1, 3);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::latch done(8);
  for (int i = 0; i < 8; ++i) {
    pool.post([&] {
      const int now = ++inside;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
      lookout::test::wait_for(gone);
      --inside;
      done.count_down();
    });
  }
  EXPECT_TRUE(eventually([&] { return inside == 3; }));
  EXPECT_EQ(pool.threads(), 3u);
  go.set_value();
  lookout::test::wait_for(done);
  EXPECT_EQ(most, 3);
}

TEST_F(HandlerPoolTest, ShrinksWhenIdle) {
  options_.shrink_after = 1ms;
  auto& pool = make(1);
  for (int round = 0; round < 3; ++round) {
    const auto together = std::make_shared<std::latch>(4);
    for (int i = 0; i < 4; ++i)
      pool.post([together] {
        together->count_down();
        lookout::test::wait_for(*together);
      });
    lookout::test::wait_for(*together);
    EXPECT_TRUE(eventually([&] { return pool.threads() == 1; }));
  }
  const auto threads = lookout::test::thread_count();
  pool_.reset();
  EXPECT_LE(lookout::test::thread_count(), threads - 1) << "its last thread has ended";
}

/// Records the release of a task's captures.
class Dropped {
 public:
  explicit Dropped(std::function<void()> told) : told_(std::move(told)) {}
  ~Dropped() { told_(); }

 private:
  std::function<void()> told_;
};

TEST_F(HandlerPoolTest, TheDestructorWaitsForRunningTasksAndDropsQueuedOnes) {
  auto& pool = make(1, 1);
  std::promise<void> begun;
  std::promise<void> dropped;
  std::atomic<bool> finished{false};
  std::atomic<bool> ran{false};
  pool.post([&] {
    begun.set_value();
    lookout::test::wait_for(dropped.get_future());
    finished = true;
  });
  lookout::test::wait_for(begun.get_future());
  auto held = std::make_shared<Dropped>([&] {
    EXPECT_LE(pool.threads(), 1u);  // threads() may be called from a task
    dropped.set_value();
  });
  pool.post([&, held] { ran = true; });
  held.reset();
  pool_.reset();
  EXPECT_TRUE(finished);
  EXPECT_FALSE(ran);
}

TEST_F(HandlerPoolTest, ATaskMayHoldTheLastReference) {
  for (int round = 0; round < 20; ++round) {
    auto pool = std::make_shared<HandlerPool>(loop_);
    std::promise<void> let_go;
    std::promise<void> ended;
    auto held = std::make_shared<Dropped>([&] { ended.set_value(); });
    pool->post([pool, held, &let_go] { lookout::test::wait_for(let_go.get_future()); });
    held.reset();
    pool.reset();
    let_go.set_value();
    lookout::test::wait_for(ended.get_future());
  }
}

}  // namespace
}  // namespace lookout::informer
