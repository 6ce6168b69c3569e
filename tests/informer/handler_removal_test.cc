#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "lookout/api/error.h"
#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::informer {
namespace {

class HandlerRemovalTest : public test::InformerTest {
 protected:
  /// A handler whose captured counter reveals calls after its removal.
  static std::function<void(const api::Object&)> counting(
      const std::shared_ptr<std::atomic<int>>& count) {
    return [count](const api::Object&) { ++*count; };
  }
};

TEST_F(HandlerRemovalTest, ARemovedHandlerReceivesNothing) {
  Recorder removed;
  Recorder kept;
  auto& informer = run();
  auto registration = informer.add_handler(removed.handler());
  informer.add_handler(kept.handler()).release();
  source_->put("a/x");
  removed.wait(1);
  registration.remove();
  source_->put("a/y");
  EXPECT_THAT(kept.wait(2), ElementsAre("+a/x@101", "+a/y@102"));
  EXPECT_THAT(removed.events(), ElementsAre("+a/x@101"));
  EXPECT_EQ(registration.backlog(), 0u);
}

TEST_F(HandlerRemovalTest, BeforeTheStart) {
  Recorder recorder;
  auto& informer = make();
  auto registration = informer.add_handler(recorder.handler());
  registration.remove();
  registration.remove();
  source_->put("a/x");
  informer.start();
  settle();
  EXPECT_FALSE(registration.has_synced());
  EXPECT_FALSE(registration.wait_for_sync()) << "it will never be";
  informer.shutdown();
  EXPECT_THAT(recorder.events(), IsEmpty());
}

TEST_F(HandlerRemovalTest, AfterTheEnd) {
  Recorder recorder;
  auto& informer = run();
  auto registration = informer.add_handler(recorder.handler());
  EXPECT_TRUE(registration.wait_for_sync());
  informer.shutdown();
  registration.remove();
  informer_.reset();
  registration.remove();
  EXPECT_TRUE(registration.has_synced());
  HandlerRegistration none;
  none.remove();
  EXPECT_FALSE(none.has_synced());
  EXPECT_FALSE(none.wait_for_sync());
  EXPECT_EQ(none.backlog() + none.exceptions(), 0u);
}

TEST_F(HandlerRemovalTest, WaitsForTheRunningCall) {
  auto& informer = run();
  std::promise<void> begun;
  std::promise<void> go;
  std::atomic<bool> finished{false};
  auto registration = informer.add_handler({.on_add = [&](const api::Object&) {
    begun.set_value();
    lookout::test::wait_for(go.get_future());
    finished = true;
  }});
  source_->put("a/x");
  lookout::test::wait_for(begun.get_future());
  std::thread remover([&] {
    registration.remove();
    EXPECT_TRUE(finished);
  });
  // Removal empties the queue first, then waits.
  EXPECT_TRUE(lookout::test::eventually([&] { return registration.backlog() == 0; }));
  go.set_value();
  remover.join();
}

TEST_F(HandlerRemovalTest, FromTheHandlerItself) {
  auto& informer = run();
  std::promise<HandlerRegistration> given;
  std::promise<void> removed;
  std::atomic<int> calls{0};
  auto registration = informer.add_handler({.on_add = [&](const api::Object&) {
    ++calls;
    lookout::test::get(given.get_future()).remove();
    removed.set_value();
  }});
  given.set_value(std::move(registration));
  Recorder other;
  informer.add_handler(other.handler()).release();
  source_->put("a/x");
  lookout::test::wait_for(removed.get_future());
  source_->put("a/y");
  other.wait(2);
  EXPECT_EQ(calls, 1);
}

TEST_F(HandlerRemovalTest, OfAnotherHandlerFromAHandler) {
  auto& informer = run();
  Recorder victim;
  auto registration = informer.add_handler(victim.handler());
  source_->put("a/x");
  victim.wait(1);
  std::promise<void> removed;
  informer
      .add_handler({.on_add =
                        [&, first = true](const api::Object&) mutable {
                          if (!std::exchange(first, false)) return;
                          registration.remove();
                          removed.set_value();
                        }})
      .release();
  lookout::test::wait_for(removed.get_future());
  Recorder last;
  informer.add_handler(last.handler()).release();
  source_->put("a/y");
  last.wait_for("+a/y@102");
  EXPECT_THAT(victim.events(), ElementsAre("+a/x@101"));
}

TEST_F(HandlerRemovalTest, InABurst) {
  auto& informer = run();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    // No faster than the informer processes the events.
    for (int i = 0; !done; ++i) {
      source_->put("a/" + std::to_string(i % 5));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  std::vector<std::pair<std::shared_ptr<std::atomic<int>>, int>> removed;
  for (int round = 0; round < 200; ++round) {
    auto count = std::make_shared<std::atomic<int>>(0);
    auto registration = informer.add_handler({.on_add = counting(count)});
    if (round % 2 == 0) {
      EXPECT_TRUE(registration.wait_for_sync());
    }
    registration.remove();
    removed.emplace_back(count, *count);
  }
  done = true;
  writer.join();
  settle();
  for (const auto& [count, calls] : removed) EXPECT_EQ(*count, calls) << "called after removal";
}

TEST_F(HandlerRemovalTest, OneOfTwoEqualHandlers) {
  Recorder recorder;
  const auto handler = recorder.handler();
  auto& informer = run();
  auto first = informer.add_handler(handler);
  auto second = informer.add_handler(handler);
  source_->put("a/x");
  EXPECT_THAT(recorder.wait(2), ElementsAre("+a/x@101", "+a/x@101"));
  first.remove();
  source_->put("a/y");
  settle();
  second.drain();
  EXPECT_THAT(recorder.events(), ElementsAre("+a/x@101", "+a/x@101", "+a/y@102"));
}

TEST_F(HandlerRemovalTest, FromManyThreadsDuringTheShutdown) {
  auto& informer = run();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&informer, t] {
      std::vector<HandlerRegistration> mine;
      try {
        for (unsigned i = t;; ++i) {
          if (mine.size() < 3 || i % 3 != 0) {
            mine.push_back(informer.add_handler({.on_add = [](const api::Object&) {}}));
          } else {
            // Remove each handler in one of three ways.
            auto& one = mine[i % mine.size()];
            i % 2 == 0 ? one.remove() : one.drain();
            mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i % mine.size()));
          }
          if (mine.size() > 20) {
            mine.front().detach();
            mine.erase(mine.begin());
          }
          std::this_thread::yield();
        }
      } catch (const InvalidArgument&) {
        // The informer has stopped, and removes the rest.
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    const std::string key = "a/" + std::to_string(i % 7);
    i % 3 == 2 ? source_->remove(key) : static_cast<void>(source_->put(key));
    std::this_thread::yield();
  }
  settle();
  Recorder last;
  const auto registration = informer.add_handler(last.handler());
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_EQ(last.events().size(), source_->contents().size());
  informer.shutdown();
  for (auto& thread : threads) thread.join();
}

TEST_F(HandlerRemovalTest, DuringInitialEventsOfALateHandler) {
  for (int i = 0; i < 100; ++i) source_->put("a/" + std::to_string(i));
  auto& informer = run();
  std::promise<void> begun;
  std::promise<void> go;
  std::atomic<int> calls{0};
  auto registration = informer.add_handler({.on_add = [&](const api::Object&) {
    if (++calls > 1) return;
    begun.set_value();
    lookout::test::wait_for(go.get_future());
  }});
  lookout::test::wait_for(begun.get_future());
  std::thread remover([&] { registration.remove(); });
  EXPECT_TRUE(lookout::test::eventually([&] { return registration.backlog() == 0; }));
  go.set_value();
  remover.join();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(registration.has_synced());
}

TEST_F(HandlerRemovalTest, EndsWaitingForSync) {
  source_->pause();
  auto& informer = make();
  Recorder recorder;
  auto registration = informer.add_handler(recorder.handler());
  informer.start();
  auto synced = std::async(std::launch::async, [&] { return registration.wait_for_sync(); });
  // (The wait has almost always begun by then; a wait that begins later must end as well.)
  EXPECT_EQ(synced.wait_for(std::chrono::milliseconds(10)), std::future_status::timeout);
  registration.remove();
  EXPECT_FALSE(lookout::test::get(synced));
  EXPECT_FALSE(registration.wait_for_sync());
}

TEST_F(HandlerRemovalTest, EndsTheMetricsOfTheHandler) {
  auto& informer = run();
  const auto series = [&](const std::string& name) {
    std::vector<metrics::Sample> all;
    informer.collect(all);
    return std::count_if(all.begin(), all.end(), [&](const metrics::Sample& sample) {
      return sample.labels.back() == std::pair<std::string, std::string>("handler", name);
    });
  };
  auto removed = informer.add_handler({.name = "removed"});
  auto detached = informer.add_handler({.name = "detached"});
  const auto kept = informer.add_handler({.name = "kept"});
  EXPECT_TRUE(lookout::test::eventually([&] { return series("kept") > 0; }));
  EXPECT_GT(series("removed"), 0);
  removed.remove();
  detached.detach();
  EXPECT_TRUE(
      lookout::test::eventually([&] { return series("removed") == 0 && series("detached") == 0; }));
  EXPECT_GT(series("kept"), 0);
}

TEST_F(HandlerRemovalTest, ReleasesTheCapturesOfTheHandler) {
  auto count = std::make_shared<std::atomic<int>>(0);
  const std::weak_ptr<std::atomic<int>> watch = count;
  auto& informer = run();
  {
    auto registration = informer.add_handler({.on_add = counting(count)});
    count.reset();
    registration.remove();
  }
  // The informer releases it on its strand.
  EXPECT_TRUE(lookout::test::eventually([&] { return watch.expired(); }));
}

}  // namespace
}  // namespace lookout::informer
