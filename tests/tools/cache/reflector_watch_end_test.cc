// The reflector continues only after the tasks of its last watch have ended.
#include <gtest/gtest.h>

#include <boost/asio/this_coro.hpp>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lookout/base/async_event.h"
#include "tests/support/matchers.h"
#include "tests/tools/cache/reflector_fixture.h"

namespace lookout::cache {
namespace {

/// A source whose watches end on command.
class LingeringSource : public ListerWatcher {
 public:
  explicit LingeringSource(std::shared_ptr<ListerWatcher> inner) : inner_(std::move(inner)) {}

  bool supports_watch_list() const override { return inner_->supports_watch_list(); }
  Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                 std::stop_token stop) override {
    return inner_->list(std::move(on_item), std::move(options), std::move(stop));
  }
  Awaitable<std::unique_ptr<Watcher>> watch(rest::ListOptions options,
                                            std::stop_token stop) override {
    auto inner = co_await inner_->watch(std::move(options), std::move(stop));
    co_return std::make_unique<LingeringWatcher>(*this, std::move(inner));
  }

  /// True while a watch ends.
  bool ending() const { return ring_ != nullptr; }
  void let_end() {
    if (ring_) std::exchange(ring_, nullptr)();
  }
  int ended() const { return ended_; }

 private:
  class LingeringWatcher : public Watcher {
   public:
    LingeringWatcher(LingeringSource& source, std::unique_ptr<Watcher> inner)
        : source_(source), inner_(std::move(inner)) {}
    Awaitable<bool> next(std::vector<api::WatchEvent>& events) override {
      return inner_->next(events);
    }
    Awaitable<void> end() override {
      AsyncEvent event(co_await boost::asio::this_coro::executor);
      source_.ring_ = [event] { event.ring(); };
      while (source_.ring_) co_await event.wait();
      ++source_.ended_;
    }

   private:
    LingeringSource& source_;
    const std::unique_ptr<Watcher> inner_;
  };

  const std::shared_ptr<ListerWatcher> inner_;
  std::function<void()> ring_;
  int ended_ = 0;
};

class ReflectorWatchEndTest : public ReflectorTest {
 protected:
  void start_lingering() { start(store_, lingering_); }
  void begin_lingering() {
    start_lingering();
    list({{}, "10"});
    open_watch();
  }
  void TearDown() override {
    stop_.request_stop();
    settle();
    lingering_->let_end();
    settle();
    EXPECT_TRUE(done_);
    EXPECT_FALSE(lingering_->ending());
  }
  /// Expects the reflector to wait for the end of its watch, and to do nothing before.
  void expect_to_wait(bool is_live_meanwhile = false) {
    EXPECT_TRUE(lingering_->ending());
    EXPECT_EQ(source_->open_watchers(), 1u);
    EXPECT_EQ(reflector_->live(), is_live_meanwhile);
    const auto before = lists() + watches();
    advance(1h);
    EXPECT_EQ(lists() + watches(), before);
    EXPECT_FALSE(done_);
    const int ended = lingering_->ended();
    lingering_->let_end();
    settle();
    EXPECT_EQ(lingering_->ended(), ended + 1);
    EXPECT_FALSE(lingering_->ending());
    EXPECT_EQ(source_->open_watchers(), 0u);
  }

  const std::shared_ptr<LingeringSource> lingering_ = std::make_shared<LingeringSource>(source_);
};

TEST_F(ReflectorWatchEndTest, AStopInAWatch) {
  begin_lingering();
  stop_.request_stop();
  settle();
  expect_to_wait(true);
  EXPECT_TRUE(done_);
}

TEST_F(ReflectorWatchEndTest, AStopWhileABatchIsApplied) {
  begin_lingering();
  bool stopped = false;
  source_->send({{EventType::kAdded, pod("a/x", 11)}});
  store_.on_told = [&] {
    stopped = true;
    stop_.request_stop();
  };
  settle();
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(source_->watching()) << "it does not ask for more";
  expect_to_wait(true);
  EXPECT_TRUE(done_);
}

TEST_F(ReflectorWatchEndTest, AStopWhileAStreamedStateIsApplied) {
  source_->support_watch_list();
  start_lingering();
  open_watch();
  store_.on_told = [&] { stop_.request_stop(); };
  send({{EventType::kBookmark,
         api::Object::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"10",
             "annotations":{"k8s.io/initial-events-end":"true"}}})")}});
  expect_to_wait(true);
  EXPECT_TRUE(done_);
}

TEST_F(ReflectorWatchEndTest, AStopInAStream) {
  source_->support_watch_list();
  start_lingering();
  open_watch();
  send({{EventType::kAdded, pod("a/x", 1)}});
  stop_.request_stop();
  settle();
  expect_to_wait();
  EXPECT_TRUE(done_);
}

TEST_F(ReflectorWatchEndTest, ATruncatedStream) {
  source_->support_watch_list();
  start_lingering();
  open_watch();
  send({{EventType::kAdded, pod("a/x", 1)}});
  source_->close_watch();
  settle();
  expect_to_wait();
  EXPECT_EQ(watches(), 2u) << "once more";
}

TEST_F(ReflectorWatchEndTest, AStreamThatFailsInTheMiddle) {
  source_->support_watch_list();
  start_lingering();
  open_watch();
  send({{EventType::kError, StatusError::bad_request("no").status().to_object()}});
  expect_to_wait();
  EXPECT_EQ(lists(), 1u) << "instead";
}

TEST_F(ReflectorWatchEndTest, AStreamThatBreaks) {
  source_->support_watch_list();
  start_lingering();
  open_watch();
  fail_watch(transport_error(Kind::kBroken));
  expect_to_wait();
  EXPECT_TRUE(back_off());
  EXPECT_EQ(watches(), 2u);
}

TEST_F(ReflectorWatchEndTest, AWatchThatEndsRegularly) {
  begin_lingering();
  bookmark("11");
  source_->close_watch();
  settle();
  expect_to_wait(true);
  EXPECT_EQ(watches(), 2u);
}

TEST_F(ReflectorWatchEndTest, AWatchThatBreaks) {
  begin_lingering();
  bookmark("11");
  fail_watch(transport_error(Kind::kBroken));
  expect_to_wait();
  EXPECT_EQ(watches(), 2u);
}

TEST_F(ReflectorWatchEndTest, AWatchThatExpires) {
  begin_lingering();
  send({{EventType::kError, StatusError::expired("too old").status().to_object()}});
  expect_to_wait();
  EXPECT_TRUE(back_off());
  EXPECT_EQ(lists(), 2u);
}

TEST_F(ReflectorWatchEndTest, ABusyServerDuringAWatch) {
  begin_lingering();
  send({{EventType::kError, StatusError::too_many_requests("later", 1).status().to_object()}});
  expect_to_wait();
  EXPECT_TRUE(back_off());
  EXPECT_EQ(watches(), 2u);
}

TEST_F(ReflectorWatchEndTest, AStoreThatThrows) {
  begin_lingering();
  store_.throw_once();
  send({{EventType::kAdded, pod("a/x", 11)}});
  expect_to_wait();
  EXPECT_TRUE(back_off());
  EXPECT_EQ(lists(), 2u);
}

TEST_F(ReflectorWatchEndTest, AWatchReplacedByARelist) {
  start_lingering();
  list({{}, "10", {}, 1});  // one item cannot be read
  open_watch();
  const auto next_list = clock_->next_wake();
  ASSERT_TRUE(next_list);
  advance(*next_list);
  EXPECT_EQ(lists(), 1u);
  expect_to_wait();
  EXPECT_EQ(lists(), 2u);
}

}  // namespace
}  // namespace lookout::cache
