// A reflector over time: backoff, resyncs, stops, errors, heartbeats.
#include <gtest/gtest.h>

#include <set>

#include "lookout/api/status.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/reflector.h"
#include "tests/support/matchers.h"
#include "tests/tools/cache/reflector_fixture.h"

namespace lookout::cache {
namespace {

// ------------------------------------------------------------------------------------ back-off

TEST_F(ReflectorTest, WaitsLongerAfterEachFailure) {
  start(store_);
  std::chrono::milliseconds expected = 800ms;
  std::set<Clock::Duration> waits;
  for (int i = 0; i < 12; ++i) {
    source_->list_throws(transport_error(Kind::kTimeout));
    settle();
    const auto wait = clock_->next_wake();
    ASSERT_TRUE(wait);
    EXPECT_THAT(*wait, AllOf(Ge(expected), Le(2 * expected))) << i;
    if (expected == 30s) waits.insert(*wait);
    expected = std::min<std::chrono::milliseconds>(2 * expected, 30s);
    EXPECT_EQ(lists(), static_cast<std::size_t>(i + 1));
    advance(*wait - 1ns);
    EXPECT_EQ(lists(), static_cast<std::size_t>(i + 1));
    advance(1ns);
    EXPECT_EQ(lists(), static_cast<std::size_t>(i + 2));
  }
  EXPECT_GT(waits.size(), 3u) << "there is chance in it";
}

TEST_F(ReflectorTest, BackoffResetsAfterTwoQuietMinutes) {
  start(store_);
  for (int i = 0; i < 6; ++i) {
    source_->list_throws(transport_error(Kind::kTimeout));
    settle();
    ASSERT_TRUE(back_off());
  }
  list({{}, "10"});
  open_watch();
  advance(121s);
  fail_watch(StatusError::internal_error("oops"));
  ASSERT_TRUE(clock_->next_wake());
  EXPECT_LE(*clock_->next_wake(), 1600ms);
}

TEST_F(ReflectorTest, ListAndWatchShareTheBackoff) {
  options_.backoff.jitter = 0;
  begin();
  bookmark("11");
  source_->close_watch();
  settle();
  for (const auto expected : {800ms, 1600ms, 3200ms}) {
    source_->watch_throws(transport_error(Kind::kBroken));
    settle();
    EXPECT_EQ(clock_->next_wake(), expected);
    back_off();
  }
  source_->watch_throws(StatusError::expired("too old"));
  settle();
  EXPECT_EQ(clock_->next_wake(), 6400ms);
}

/// A restarting server refuses connections for seconds. Refused connections cost it nothing, and
/// earlier failures of other kinds do not lengthen the pauses.
TEST_F(ReflectorTest, RefusedConnectionsAreRetriedAfterShortPauses) {
  options_.backoff.jitter = 0;
  const auto expect_short_pause = [&] {
    settle();
    EXPECT_EQ(clock_->next_wake(), 800ms);
    back_off();
  };
  begin();
  bookmark("11");
  for (int restart = 0; restart < 4; ++restart) {
    advance(5s);
    source_->break_watch(transport_error(Kind::kBroken));
    settle();
    for (int i = 0; i < 10; ++i) {
      source_->watch_throws(transport_error(Kind::kRefused));
      expect_short_pause();
    }
    open_watch();
  }
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(errors_, testing::SizeIs(44));
  source_->break_watch(StatusError::expired("too old"));
  settle();
  EXPECT_EQ(clock_->next_wake(), 800ms) << "the first failure of another kind";
  back_off();
  for (int i = 0; i < 10; ++i) {
    source_->list_throws(transport_error(Kind::kRefused));
    expect_short_pause();
  }
}

/// A server whose versions restart at 1.
TEST_F(ReflectorTest, ATooLargeResourceVersionLeadsToTheNewestState) {
  const auto too_large = [] { return StatusError::too_large_resource_version(10, 3, 1); };
  begin({pod("a/x", 10)});
  // As an event, as the response to a watch, as the response to a list.
  send({{EventType::kError, too_large().status().to_object()}});
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "");
  list({{pod("a/y", 3)}, "3"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/y@3"));
  advance(5s);
  source_->watch_throws(too_large());
  settle();
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "");
  list({{}, "2"});
  source_->watch_throws(StatusError::expired("too old"));
  settle();
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "2");
  source_->list_throws(too_large());
  settle();
  EXPECT_EQ(last_list().resource_version, "");
  list({{}, "1"});
  EXPECT_EQ(reflector_->last_sync_resource_version(), "1");
}

// ---------------------------------------------------------------------------------- resyncing

class ReflectorResyncTest : public ReflectorTest {
 protected:
  ReflectorResyncTest() { options_.resync_period = 10min; }
};

TEST_F(ReflectorResyncTest, ResyncsTheStorePeriodically) {
  begin();
  advance(10min - 1ns);
  EXPECT_THAT(store_.told(), IsEmpty());
  advance(1ns);
  EXPECT_THAT(store_.told(), ElementsAre("resync", "flush @10"));
  bookmark("20");
  advance(10min);
  EXPECT_THAT(store_.told(), ElementsAre("flush @20", "resync", "flush @20"));
  EXPECT_EQ(lists(), 1u) << "the server has nothing to do with it";
  EXPECT_EQ(watches(), 1u);
}

TEST_F(ReflectorResyncTest, DoesNotResyncBeforeTheFirstList) {
  start(store_);
  advance(10min);
  advance(10min);
  EXPECT_THAT(store_.told(), IsEmpty());
}

TEST_F(ReflectorResyncTest, ResyncsOnlyIfShouldResync) {
  bool wanted = false;
  int asked = 0;
  options_.should_resync = [&] { return ++asked, wanted; };
  begin();
  advance(10min);
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(store_.told(), IsEmpty());
  wanted = true;
  advance(10min);
  EXPECT_EQ(asked, 2);
  EXPECT_THAT(store_.told(), ElementsAre("resync", "flush @10"));
}

TEST_F(ReflectorResyncTest, AFailedResyncIsReportedAndTheNextOneRuns) {
  int asked = 0;
  options_.should_resync = [&] {
    if (++asked == 1) throw std::runtime_error("not now");
    if (asked == 2) throw 7;
    return true;
  };
  begin();
  advance(10min);
  EXPECT_THAT(errors_, ElementsAre("not now"));
  advance(10min);
  EXPECT_EQ(errors_.size(), 2u);
  store_.throw_once();
  advance(10min);
  EXPECT_EQ(errors_.size(), 3u);
  EXPECT_THAT(store_.told(), IsEmpty());
  advance(10min);
  EXPECT_THAT(store_.told(), ElementsAre("resync", "flush @10"));
}

TEST_F(ReflectorTest, DoesNotResyncByDefault) {
  begin();
  advance(24h);
  EXPECT_THAT(store_.told(), IsEmpty());
  EXPECT_EQ(clock_->sleepers(), 0u);
}

// ----------------------------------------------------------------------------------- stopping
// (TearDown() stops the reflector in the state that each test leaves.)

TEST_F(ReflectorTest, StopsBeforeItStarts) {
  stop_.request_stop();
  options_.resync_period = 1min;
  start(store_);
  EXPECT_EQ(lists(), 0u);
}
TEST_F(ReflectorTest, StopsInAList) {
  start(store_);
  expect_stop();
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_THAT(store_.told(), IsEmpty());
}
TEST_F(ReflectorTest, StopsBetweenPages) {
  start(store_);
  list({{pod("a/x")}, "10", "page-2"});
  expect_stop();
  EXPECT_THAT(store_.told(), IsEmpty()) << "half a list replaces nothing";
}
TEST_F(ReflectorTest, StopsWhileAWatchOpens) {
  start(store_);
  list({{}, "10"});
  expect_stop();
  EXPECT_THAT(errors_, IsEmpty());
}
TEST_F(ReflectorTest, StopsInAWatch) {
  begin();
  EXPECT_TRUE(source_->watching());
  expect_stop();
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(watches(), 1u);
}
TEST_F(ReflectorTest, StopsInTheBackOffOfAList) {
  start(store_);
  source_->list_throws(transport_error(Kind::kRefused));
  expect_stop_in_back_off();
  EXPECT_EQ(lists(), 1u);
}
TEST_F(ReflectorTest, StopsInTheBackOffOfAWatch) {
  begin();
  bookmark("11");
  source_->close_watch();
  source_->watch_throws(transport_error(Kind::kRefused));
  expect_stop_in_back_off();
  EXPECT_EQ(watches(), 2u);
}
TEST_F(ReflectorResyncTest, StopsTheResync) {
  begin();
  EXPECT_EQ(clock_->sleepers(), 1u);
  expect_stop();
}
TEST_F(ReflectorTest, StopsWhenTheErrorHandlerRequestsIt) {
  options_.watch_error_handler = [this](std::string_view, const std::exception&) {
    stop_.request_stop();
  };
  start(store_);
  source_->list_throws(transport_error(Kind::kRefused));
  settle();
  EXPECT_TRUE(done_);
}
TEST_F(ReflectorResyncTest, ReleasesItselfAndItsSource) {
  begin({pod("a/x")});
  expect_stop();
  const std::weak_ptr<Reflector> reflector = reflector_;
  reflector_.reset();
  EXPECT_TRUE(reflector.expired());
  EXPECT_EQ(source_.use_count(), 1);
}

// ------------------------------------------------------------------------------------- errors

TEST_F(ReflectorTest, AnErrorHandlerMayThrow) {
  int calls = 0;
  options_.watch_error_handler = [&](std::string_view, const std::exception&) {
    if (++calls == 1) throw std::runtime_error("oh no");
    throw 7;
  };
  start(store_);
  for (int i = 0; i < 2; ++i) {
    source_->list_throws(transport_error(Kind::kRefused));
    settle();
    ASSERT_TRUE(back_off());
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(lists(), 3u);
}

TEST_F(ReflectorTest, ASourceMayThrowAnyType) {
  start(store_);
  source_->list_throws(7);
  settle();
  EXPECT_EQ(errors_.size(), 1u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(lists(), 2u);
  list({{}, "10"});
  open_watch();
  EXPECT_TRUE(reflector_->live());
  fail_watch(7);
  EXPECT_FALSE(reflector_->live());
  EXPECT_EQ(errors_.size(), 2u);
}

TEST_F(ReflectorTest, AStoreMayThrowWhenItIsToldOfAFailure) {
  struct Broken : test::RecordingStore {
    void failed(const std::exception&) override {
      if (++calls == 1) throw std::runtime_error("oh no");
      throw 7;
    }
    int calls = 0;
  } store;
  start(store);
  for (int i = 0; i < 2; ++i) {
    source_->list_throws(transport_error(Kind::kRefused));
    settle();
    ASSERT_TRUE(back_off());
  }
  EXPECT_EQ(store.calls, 2);
  EXPECT_EQ(errors_.size(), 2u) << "the error handler is called nevertheless";
  EXPECT_EQ(lists(), 3u);
  expect_stop();
  reflector_.reset();
}

TEST_F(ReflectorTest, NeedsASource) {
  EXPECT_THROW(Reflector::create(nullptr, store_, {}), InvalidArgument);
}

TEST_F(ReflectorTest, NeedsNoErrorHandler) {
  options_.watch_error_handler = {};
  start(store_);
  source_->list_throws(transport_error(Kind::kRefused));
  settle();
  ASSERT_TRUE(back_off());
  source_->list_throws(StatusError::expired("too old"));
  settle();
  EXPECT_EQ(reflector_->stats().errors, 1u);
}

// ----------------------------------------------------------------------------- signs of life

TEST_F(ReflectorTest, ReportsTheTimeOfTheLastResponse) {
  start(store_);
  const auto begun = clock_->now();
  EXPECT_EQ(reflector_->last_activity(), begun);
  advance(1s);
  source_->list_throws(transport_error(Kind::kRefused));
  settle();
  EXPECT_EQ(reflector_->last_activity(), begun) << "that was no sign of life";
  back_off();
  for (const auto& step :
       std::vector<std::function<void()>>{[this] {
                                            list({{}, "10", "page-2"});
                                          },
                                          [this] {
                                            list({{}, "10"});
                                          },
                                          [this] { open_watch(); }, [this] { bookmark("11"); },
                                          [this] {
                                            send({{EventType::kAdded, pod("a/x", 12)}});
                                          }}) {
    advance(1s);
    EXPECT_LT(reflector_->last_activity(), clock_->now());
    step();
    EXPECT_EQ(reflector_->last_activity(), clock_->now());
  }
}
}  // namespace
}  // namespace lookout::cache
