// An informer over a small cluster.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "lookout/base/clock.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/testing/fake_clock.h"
#include "tests/informer/recorder.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_source.h"
#include "tests/support/gate.h"

namespace lookout::informer::test {

using lookout::test::FakeClock;
using lookout::test::FakeSource;

/// A clock whose sleeps fail, with an exception of a strange type.
class BrokenClock : public Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::hours(1000)); }
  Awaitable<bool> sleep(Duration, std::stop_token) override { throw 7; }
};

class InformerTest : public testing::Test {
 protected:
  InformerTest() {
    options_.reflector.name = "pods";
    options_.reflector.expected_api_version = "v1";
    options_.reflector.expected_kind = "Pod";
    options_.reflector.clock = clock_;
    // No backoff delays.
    options_.reflector.backoff.max = std::chrono::seconds(4);
    clock_->skip_sleeps_below(std::chrono::seconds(9));
  }

  /// Shuts down before the members of derived fixtures, which handlers use, are destroyed.
  void TearDown() override {
    if (informer_) informer_->shutdown();
  }

  static std::map<std::string, api::Object> contents(const cache::Indexer& store) {
    std::map<std::string, api::Object> out;
    for (const auto& object : store.snapshot()) out[object.key()] = object;
    return out;
  }

  /// Creates the informer with the current options.
  SharedIndexInformer& make() {
    informer_ = std::make_unique<SharedIndexInformer>(source_, options_, loop_, pool_);
    return *informer_;
  }
  /// Creates and starts the informer, and waits until it watches.
  SharedIndexInformer& run() {
    make().start();
    settle();
    return *informer_;
  }
  /// Waits until the informer has processed everything.
  void settle() { ASSERT_TRUE(source_->wait_until_watched()); }
  /// Runs a function while the connection is down and the history is compacted.
  template <class F>
  void while_away(F changes) {
    source_->pause();
    source_->break_connections();
    ASSERT_TRUE(source_->wait_until_held_up());
    changes();
    source_->forget();
    source_->resume();
    settle();
  }

  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  const std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>();
  InformerOptions options_;
  std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(2);
  std::shared_ptr<HandlerPool> pool_ = std::make_shared<HandlerPool>(loop_);
  std::unique_ptr<SharedIndexInformer> informer_;
};

/// An InformerTest with a handler that blocks.
class SlowHandlerTest : public InformerTest {
 protected:
  /// A handler whose first call opens begun_ and waits for go_on_.
  EventHandler<api::Object> slow() {
    return {.on_add = [this](const api::Object&) {
      begun_.open();
      EXPECT_TRUE(go_on_.wait());
      ++calls_;
    }};
  }

  lookout::test::Gate begun_;
  lookout::test::Gate go_on_;
  std::atomic<int> calls_{0};
};

}  // namespace lookout::informer::test

namespace lookout::informer {

// The names that tests of informers use.
using namespace std::chrono_literals;
using lookout::test::eventually;
using test::Recorder;

}  // namespace lookout::informer
