#include "lookout/tools/watch/retry_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lookout/api/error.h"
#include "lookout/rest/config.h"
#include "tests/tools/watch/watch_fixture.h"

namespace lookout::watch {
namespace {

using testing::ElementsAre;

class RetryWatcherTest : public test::WatchTest {
 protected:
  void start(std::string resource_version = "5") {
    RetryWatcherOptions retrying;
    retrying.clock = clock_;
    watcher_ = std::make_unique<RetryWatcher>(source_, std::move(resource_version),
                                              stop_.get_token(), retrying);
    read_ = begin(read_all(*watcher_, told_));
  }
  void TearDown() override {
    stop_.request_stop();
    settle();
    if (read_) {
      EXPECT_FALSE(read_->pending()) << "a stop ends it";
    }
    watcher_.reset();
    WatchTest::TearDown();
  }

  /// The start versions of the watches.
  std::vector<std::string> begun() const {
    std::vector<std::string> out;
    for (const auto& options : source_->watches()) {
      EXPECT_TRUE(options.allow_watch_bookmarks);
      out.push_back(options.resource_version);
    }
    return out;
  }
  bool ended() const { return read_->value.has_value(); }

  std::vector<std::string> told_;
  std::unique_ptr<RetryWatcher> watcher_;
  std::shared_ptr<Outcome<bool>> read_;

 private:
  static Awaitable<bool> read_all(RetryWatcher& watcher, std::vector<std::string>& told) {
    std::vector<api::WatchEvent> events;
    for (;;) {
      const bool more = co_await watcher.next(events);
      if (!more) break;
      for (const auto& event : events) told.push_back(test::text(event));
    }
    co_return true;
  }
};

TEST_F(RetryWatcherTest, RequiresAStartVersion) {
  EXPECT_THROW(RetryWatcher(source_, ""), InvalidArgument);
  EXPECT_THROW(RetryWatcher(source_, "0"), InvalidArgument);
}

TEST_F(RetryWatcherTest, ContinuesAfterTheLastVersionWhenAWatchEnds) {
  for (int i = 0; i < 3; ++i) source_->watch_opens();
  start("5");
  send({added("a/x", 6), modified("a/x", 8)});
  source_->close_watch();
  settle();
  send({deleted("a/x", 11)});
  source_->break_watch(rest::TransportError(rest::TransportError::Kind::kBroken, "gone"));
  settle();
  EXPECT_THAT(told_, ElementsAre("ADDED a/x@6", "MODIFIED a/x@8", "DELETED a/x@11"));
  EXPECT_THAT(begun(), ElementsAre("5", "8", "11"));
  EXPECT_EQ(watcher_->last_resource_version(), "11");
  EXPECT_TRUE(read_->pending());
}

TEST_F(RetryWatcherTest, BookmarksOnlyAdvanceTheVersion) {
  source_->watch_opens();
  source_->watch_opens();
  start("5");
  send({bookmark(20)});
  source_->close_watch();
  settle();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(begun(), ElementsAre("5", "20"));
}

TEST_F(RetryWatcherTest, RetriesFailedAttempts) {
  source_->watch_throws(rest::TransportError(rest::TransportError::Kind::kRefused, "no"));
  source_->watch_throws(api::StatusError::internal_error("no"));
  source_->watch_throws(api::StatusError::too_many_requests("no", 1));
  source_->watch_throws(rest::ConfigError("the credential plugin failed"));
  source_->watch_throws(api::DecodeError("<html>"));
  source_->watch_throws(std::runtime_error("whatever"));
  source_->watch_opens();
  start("5");
  send({added("a/x", 6)});
  EXPECT_THAT(told_, ElementsAre("ADDED a/x@6"));
  EXPECT_THAT(begun(), ElementsAre("5", "5", "5", "5", "5", "5", "5"));
}

TEST_F(RetryWatcherTest, EndsWhenTheVersionHasExpired) {
  source_->watch_opens();
  start("5");
  send({added("a/x", 6), error(api::StatusError::gone("too old")), added("a/y", 7)});
  EXPECT_THAT(told_, ElementsAre("ADDED a/x@6", "ERROR 410"));
  EXPECT_TRUE(ended());
  EXPECT_THAT(begun(), ElementsAre("5"));
}

TEST_F(RetryWatcherTest, EndsWhenAnAttemptReportsAnExpiredVersion) {
  source_->watch_throws(api::StatusError::expired("too old"));
  start("5");
  EXPECT_THAT(told_, ElementsAre("ERROR 410"));
  EXPECT_TRUE(ended());
}

TEST_F(RetryWatcherTest, EndsAfterARejection) {
  source_->watch_throws(api::StatusError::forbidden("", "pods", "", "no"));
  start("5");
  EXPECT_THAT(told_, ElementsAre("ERROR 403"));
  EXPECT_TRUE(ended());
  told_.clear();
  source_->watch_throws(api::StatusError::unauthorized());
  start("5");
  EXPECT_THAT(told_, ElementsAre("ERROR 401"));
  EXPECT_TRUE(ended());
}

TEST_F(RetryWatcherTest, RetriesOtherErrors) {
  const std::vector<api::WatchEvent> errors = {
      error(api::StatusError::timeout("", 0)),
      error(api::StatusError::internal_error("")),
      {api::EventType::kError,
       api::Object::parse(R"({"kind":"Status","apiVersion":"v1","code":666})")},
      {api::EventType::kError, test::pod("a/odd", 1)}};
  for (std::size_t i = 0; i <= errors.size(); ++i) source_->watch_opens();
  start("5");
  std::size_t version = 6;
  for (const auto& one : errors) {
    send({added("a/x", version), one, added("a/lost", version + 1)});
    ++version;
  }
  EXPECT_THAT(told_, ElementsAre("ADDED a/x@6", "ADDED a/x@7", "ADDED a/x@8", "ADDED a/x@9"));
  EXPECT_THAT(begun(), ElementsAre("5", "6", "7", "8", "9"));
}

TEST_F(RetryWatcherTest, AnEventWithoutAVersionEndsIt) {
  source_->watch_opens();
  start("5");
  send({added("a/x", 6), {api::EventType::kModified, test::pod("a/x", "")}});
  EXPECT_THAT(told_, ElementsAre("ADDED a/x@6", "ERROR 500"));
  EXPECT_TRUE(ended());
}

TEST_F(RetryWatcherTest, AnUndecodableEventIsThrown) {
  source_->watch_opens();
  start("5");
  source_->break_watch(api::DecodeError("not JSON"));
  settle();
  EXPECT_THROW(read_->get(), api::DecodeError);
  // The change is lost, so the watch cannot continue.
  std::vector<api::WatchEvent> events;
  EXPECT_FALSE(begin(watcher_->next(events))->get());
  EXPECT_THAT(begun(), ElementsAre("5"));
}

TEST_F(RetryWatcherTest, AttemptsHaveAMinimumInterval) {
  clock_->skip_sleeps_below(0s);
  source_->watch_opens();
  source_->watch_opens();
  start("5");
  source_->close_watch();
  settle();
  EXPECT_EQ(begun().size(), 1u) << "it lasted less than a second";
  advance(1s);
  EXPECT_EQ(begun().size(), 2u);
  clock_->advance(10min);
  send({error(api::StatusError::timeout("", 7))});
  advance(6s);
  EXPECT_EQ(begun().size(), 2u) << "the server asked for 7 s";
  advance(1s);
  EXPECT_EQ(begun().size(), 3u);
}

TEST_F(RetryWatcherTest, AFailedAttemptIsFollowedByAPause) {
  clock_->skip_sleeps_below(0s);
  source_->watch_throws(api::StatusError::internal_error("no"));
  source_->watch_throws(rest::TransportError(rest::TransportError::Kind::kRefused, "no"));
  source_->watch_opens();
  start("5");
  for (std::size_t attempts = 1; attempts < 3; ++attempts) {
    advance(1s - 1ms);
    EXPECT_EQ(begun().size(), attempts);
    advance(1ms);
    EXPECT_EQ(begun().size(), attempts + 1);
  }
}

TEST_F(RetryWatcherTest, HonoursRetryAfterUpToALimit) {
  clock_->skip_sleeps_below(0s);
  source_->watch_throws(api::StatusError::too_many_requests("no", 7));
  source_->watch_throws(api::StatusError::too_many_requests("no", 100'000));
  source_->watch_opens();
  start("5");
  advance(6s);
  EXPECT_EQ(begun().size(), 1u);
  advance(1s);
  EXPECT_EQ(begun().size(), 2u);
  advance(2min - 1ms);
  EXPECT_EQ(begun().size(), 2u);
  advance(1ms);
  EXPECT_EQ(begun().size(), 3u);
}

TEST_F(RetryWatcherTest, AStopEndsEveryWait) {
  clock_->skip_sleeps_below(0s);
  const auto expect_to_stop = [this] {
    EXPECT_TRUE(read_->pending());
    stop_.request_stop();
    settle();
    try {
      read_->get();
      ADD_FAILURE();
    } catch (const rest::TransportError& e) {
      EXPECT_EQ(e.kind(), rest::TransportError::Kind::kCancelled);
    }
    stop_ = {};
  };
  start("5");  // a pending attempt
  expect_to_stop();
  source_->watch_opens();
  start("5");  // an open watch
  expect_to_stop();
  source_->watch_throws(api::StatusError::internal_error("no"));
  start("5");  // a pause
  expect_to_stop();
  source_->watch_throws(rest::ConfigError("the credential plugin failed"));
  start("5");
  expect_to_stop();
}

}  // namespace
}  // namespace lookout::watch
