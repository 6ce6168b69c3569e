#include "tools/record/event_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace lookout::record::detail {
namespace {

using namespace std::chrono_literals;

RecordedEvent event_with_action(std::string action) {
  RecordedEvent event;
  event.regarding.api_version = "v1";
  event.regarding.kind = "Pod";
  event.regarding.name = "foo";
  event.reason = "test";
  event.action = std::move(action);
  event.note = "some verbose message";
  return event;
}

class EventSeriesTest : public testing::Test {
 protected:
  std::optional<std::string> observe(std::string action) {
    return series_.observe(event_with_action(std::move(action)), now_);
  }
  /// Performs the requested write; returns the event, and whether the server had it.
  EventSeries::Write write(const std::optional<std::string>& key) {
    EXPECT_TRUE(key.has_value());
    const auto begun = series_.begin(*key);
    EXPECT_TRUE(begun.has_value());
    EXPECT_FALSE(series_.end(*key, *begun, true, now_));
    return *begun;
  }
  /// The key of the only series that is due.
  std::string only_due() {
    const auto due = series_.due(now_);
    EXPECT_EQ(due.size(), 1U);
    return due.empty() ? std::string() : due[0];
  }
  /// The key of a series of three whose last write is due.
  std::string due_series() {
    write(observe("started"));
    write(observe("started"));
    observe("started");
    now_ += 6min;
    return only_due();
  }

  EventSeries series_{{6min, 30min}, 3};
  Clock::TimePoint now_{1000h};
};

TEST_F(EventSeriesTest, TheSecondEventStartsASeriesAndLaterOnesAreCounted) {
  const auto first = write(observe("started"));
  EXPECT_FALSE(first.exists);
  EXPECT_EQ(first.event.count, 1);
  const auto second = write(observe("started"));
  EXPECT_TRUE(second.exists);
  EXPECT_EQ(second.event.count, 2);
  EXPECT_FALSE(observe("started").has_value());
  EXPECT_FALSE(observe("started").has_value());
  EXPECT_EQ(series_.size(), 1U);
}

TEST_F(EventSeriesTest, AnotherActionIsAnotherEvent) {
  write(observe("started"));
  EXPECT_EQ(write(observe("stopped")).event.count, 1);
}

TEST_F(EventSeriesTest, AnEventDuringTheFirstWriteIsWrittenRightAfterIt) {
  const auto key = observe("started");
  const auto begun = series_.begin(*key);
  EXPECT_FALSE(observe("started").has_value());
  EXPECT_TRUE(series_.end(*key, *begun, true, now_));
  EXPECT_EQ(write(key).event.count, 2);
}

TEST_F(EventSeriesTest, AnEventBeforeTheFirstWriteIsIncluded) {
  const auto key = observe("started");
  EXPECT_FALSE(observe("started").has_value());
  const auto first = write(key);
  EXPECT_FALSE(first.exists);
  EXPECT_EQ(first.event.count, 2);
}

TEST_F(EventSeriesTest, AnUnwrittenEventIsCreatedWithItsSeries) {
  const auto key = observe("started");
  EXPECT_FALSE(series_.end(*key, *series_.begin(*key), false, now_));
  const auto second = write(observe("started"));
  EXPECT_FALSE(second.exists);
  EXPECT_EQ(second.event.count, 2);
}

TEST_F(EventSeriesTest, AnEndedSeriesIsWrittenAndRemoved) {
  write(observe("started"));
  write(observe("started"));
  observe("started");
  now_ += 5min;
  EXPECT_THAT(series_.due(now_), testing::IsEmpty());
  now_ += 1min;
  const std::string due = only_due();
  // It is due only once.
  EXPECT_THAT(series_.due(now_), testing::IsEmpty());
  EXPECT_EQ(write(due).event.count, 3);
  EXPECT_EQ(series_.size(), 0U);
}

TEST_F(EventSeriesTest, ASeriesWithAWrittenCountIsRemoved) {
  write(observe("started"));
  write(observe("started"));
  now_ += 6min;
  EXPECT_THAT(series_.due(now_), testing::IsEmpty());
  EXPECT_EQ(series_.size(), 0U);
}

TEST_F(EventSeriesTest, ASingleEventIsRemoved) {
  write(observe("started"));
  now_ += 6min;
  EXPECT_EQ(series_.next_due(), now_);
  EXPECT_THAT(series_.due(now_), testing::IsEmpty());
  EXPECT_EQ(series_.size(), 0U);
  EXPECT_FALSE(series_.next_due().has_value());
}

TEST_F(EventSeriesTest, ASeriesThatContinuesDuringItsLastWriteIsKept) {
  const std::string due = due_series();
  const auto begun = series_.begin(due);
  observe("started");
  EXPECT_FALSE(series_.end(due, *begun, true, now_));
  EXPECT_EQ(series_.size(), 1U);
  now_ += 6min;
  const std::string later = only_due();
  EXPECT_EQ(write(later).event.count, 4);
}

TEST_F(EventSeriesTest, AContinuingSeriesIsWrittenPeriodically) {
  write(observe("started"));
  write(observe("started"));
  for (int minutes = 1; minutes < 30; ++minutes) {
    now_ += 1min;
    EXPECT_FALSE(observe("started").has_value());
    EXPECT_THAT(series_.due(now_), testing::IsEmpty()) << minutes;
  }
  now_ += 1min;
  EXPECT_EQ(series_.next_due(), now_);
  const std::string due = only_due();
  EXPECT_EQ(write(due).event.count, 31);
  EXPECT_EQ(series_.size(), 1U);
  EXPECT_THAT(series_.due(now_), testing::IsEmpty());
}

TEST_F(EventSeriesTest, AFailedRefreshKeepsTheSeries) {
  write(observe("started"));
  write(observe("started"));
  for (int i = 0; i < 10; ++i) {
    now_ += 3min;
    observe("started");
  }
  const std::string due = only_due();
  EXPECT_FALSE(series_.end(due, *series_.begin(due), false, now_));
  EXPECT_EQ(series_.size(), 1U);
}

TEST_F(EventSeriesTest, TheLongestIdleSeriesIsEvicted) {
  for (const char* action : {"a", "b", "c"}) write(observe(action));
  write(observe("a"));  // becomes a series
  observe("a");         // not written yet
  write(observe("b"));
  write(observe("c"));
  write(observe("d"));
  EXPECT_EQ(series_.size(), 3U);
  EXPECT_EQ(series_.lost(), 1U);
  EXPECT_EQ(write(observe("a")).event.count, 1);  // a new event
}

TEST_F(EventSeriesTest, AnObservationKeepsASeriesFromBeingEvicted) {
  for (const char* action : {"a", "b", "c"}) write(observe(action));
  write(observe("a"));
  write(observe("d"));  // evicts "b"
  EXPECT_FALSE(observe("a").has_value());
  EXPECT_EQ(write(observe("b")).event.count, 1);
}

TEST_F(EventSeriesTest, AnObservationBeforeTheLastWriteKeepsTheSeries) {
  const std::string due = due_series();
  EXPECT_FALSE(observe("started").has_value());
  EXPECT_EQ(write(due).event.count, 4);
  EXPECT_EQ(series_.size(), 1U);
}

TEST_F(EventSeriesTest, ASeriesInAWriteIsNotEvicted) {
  for (const char* action : {"a", "b", "c"}) observe(action);
  EXPECT_FALSE(observe("d").has_value());
  EXPECT_EQ(series_.lost(), 1U);
  EXPECT_EQ(series_.size(), 3U);
}

TEST_F(EventSeriesTest, AFlushWritesTheLastCounts) {
  write(observe("a"));
  write(observe("b"));
  const auto b = observe("b");
  const auto begun = series_.begin(*b);
  write(observe("a"));
  observe("a");
  const auto keys = series_.flush();
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(write(keys[0]).event.count, 3);
  // A count that grows during a write is written after it.
  observe("b");
  EXPECT_TRUE(series_.end(*b, *begun, true, now_));
  EXPECT_EQ(write(b).event.count, 3);
}

}  // namespace
}  // namespace lookout::record::detail
