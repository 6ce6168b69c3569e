#include "lookout/tools/record/event_correlator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/testing/fake_clock.h"
#include "tools/record/lru_cache.h"

namespace lookout::record {
namespace {

using namespace std::chrono_literals;

RecordedEvent kubelet_event(std::string reason, std::string note, std::string object = "my-pod") {
  RecordedEvent event;
  event.regarding.api_version = "v1";
  event.regarding.kind = "Pod";
  event.regarding.ns = "my-ns";
  event.regarding.name = std::move(object);
  event.source.component = "kubelet";
  event.source.host = "kublet.node1";
  event.reason = std::move(reason);
  event.note = std::move(note);
  return event;
}

/// Sends events at intervals.
class EventCorrelatorTest : public testing::Test {
 protected:
  EventCorrelator::Result next(RecordedEvent event) {
    clock_->advance(interval_);
    time_ += std::chrono::duration_cast<std::chrono::microseconds>(interval_);
    event.name = event.regarding.name + "." + std::to_string(++number_);
    event.first_time = api::Time(time_);
    event.last_time = api::Time(time_);
    return correlator_.correlate(std::move(event));
  }
  EventCorrelator::Result similar(int times) {
    EventCorrelator::Result result;
    for (int i = 0; i < times; ++i)
      result = next(kubelet_event("similar", "similar message " + std::to_string(i)));
    return result;
  }

  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  Clock::Duration interval_ = 5s;
  std::chrono::microseconds time_{};
  int number_ = 0;
  EventCorrelator correlator_{CorrelatorOptions(), clock_};
};

TEST_F(EventCorrelatorTest, AFirstEventIsWrittenUnchanged) {
  const auto result = next(kubelet_event("first", "i am first"));
  EXPECT_FALSE(result.skip);
  EXPECT_FALSE(result.repeated);
  EXPECT_EQ(result.event.count, 1);
  EXPECT_EQ(result.event.note, "i am first");
  EXPECT_EQ(result.event.name, "my-pod.1");
}

TEST_F(EventCorrelatorTest, EqualEventsAreCounted) {
  next(kubelet_event("duplicate", "me again"));
  const auto result = next(kubelet_event("duplicate", "me again"));
  EXPECT_FALSE(result.skip);
  EXPECT_TRUE(result.repeated);
  EXPECT_EQ(result.event.count, 2);
  EXPECT_EQ(result.event.name, "my-pod.1");
  EXPECT_EQ(result.event.first_time, api::Time(5s));
  EXPECT_EQ(result.event.last_time, api::Time(10s));
}

TEST_F(EventCorrelatorTest, EqualEventsAreCountedNotCombined) {
  interval_ = 30s;
  for (int i = 0; i < 10; ++i) next(kubelet_event("duplicate", "me again"));
  const auto result = next(kubelet_event("duplicate", "me again"));
  EXPECT_FALSE(result.skip);
  EXPECT_EQ(result.event.count, 11);
  EXPECT_EQ(result.event.note, "me again");
}

TEST_F(EventCorrelatorTest, TooManyEventsAboutOneObjectAreDropped) {
  interval_ = 1s;
  for (int i = 0; i < 25; ++i) {
    EXPECT_FALSE(next(kubelet_event("duplicate", "me again")).skip) << i;
  }
  EXPECT_TRUE(next(kubelet_event("duplicate", "me again")).skip);
  EXPECT_TRUE(next(kubelet_event("other reason", "me too")).skip);
  // Events of other objects are not dropped, nor are those of another type.
  EXPECT_FALSE(next(kubelet_event("duplicate", "me again", "other-pod")).skip);
  RecordedEvent warning = kubelet_event("duplicate", "me again");
  warning.type = EventType::kWarning;
  EXPECT_FALSE(next(warning).skip);
  // One event in five minutes passes, with the total count.
  clock_->advance(300s);
  const auto result = next(kubelet_event("duplicate", "me again"));
  EXPECT_FALSE(result.skip);
  EXPECT_EQ(result.event.count, 27);
  EXPECT_TRUE(next(kubelet_event("duplicate", "me again")).skip);
}

TEST_F(EventCorrelatorTest, EventsAboutManyObjectsAreAllWritten) {
  for (int i = 0; i < 30; ++i) {
    const auto result =
        next(kubelet_event("unique", "snowflake " + std::to_string(i), "pod" + std::to_string(i)));
    EXPECT_FALSE(result.skip);
    EXPECT_EQ(result.event.count, 1);
  }
}

TEST_F(EventCorrelatorTest, TheTenthSimilarEventIsCombined) {
  const auto ninth = similar(9);
  EXPECT_EQ(ninth.event.note, "similar message 8");
  const auto tenth = next(kubelet_event("similar", "similar message"));
  EXPECT_FALSE(tenth.repeated);
  EXPECT_EQ(tenth.event.note, "(combined from similar events): similar message");
  EXPECT_EQ(tenth.event.count, 1);
  EXPECT_EQ(tenth.event.name, "my-pod.10");
  EXPECT_EQ(tenth.event.first_time, tenth.event.last_time);
}

TEST_F(EventCorrelatorTest, ACombinedEventHasNothingOfASingleEvent) {
  similar(9);
  RecordedEvent event = kubelet_event("similar", "similar message");
  event.related = event.regarding;
  event.annotations = {{"a", "b"}};
  event.first_time = api::Time(1s);
  event.last_time = api::Time(2s);
  const auto result = correlator_.correlate(std::move(event));
  EXPECT_FALSE(result.event.related.has_value());
  EXPECT_THAT(result.event.annotations, testing::IsEmpty());
  EXPECT_EQ(result.event.first_time, api::Time(2s));
}

TEST_F(EventCorrelatorTest, FurtherSimilarEventsCountTheCombinedOne) {
  similar(10);
  const auto eleventh = next(kubelet_event("similar", "similar message"));
  EXPECT_TRUE(eleventh.repeated);
  EXPECT_EQ(eleventh.event.note, "(combined from similar events): similar message");
  EXPECT_EQ(eleventh.event.count, 2);
  EXPECT_EQ(eleventh.event.name, "my-pod.10");
}

TEST_F(EventCorrelatorTest, EventsAboutDifferentContainersAreNotEqual) {
  RecordedEvent one = kubelet_event("similar", "similar message");
  one.regarding.field_path = "spec.containers{container1}";
  RecordedEvent other = one;
  other.regarding.field_path = "spec.containers{container2}";
  next(other);
  const auto result = next(one);
  EXPECT_EQ(result.event.count, 1);
  EXPECT_EQ(result.event.note, "similar message");
}

TEST_F(EventCorrelatorTest, SimilarEventsAreNotCombinedAfterALongSilence) {
  similar(9);
  clock_->advance(600s);
  const auto result = next(kubelet_event("similar", "similar message"));
  EXPECT_EQ(result.event.count, 1);
  EXPECT_EQ(result.event.note, "similar message");
}

TEST_F(EventCorrelatorTest, TheSpamKeyCanBeConfigured) {
  CorrelatorOptions options;
  options.spam_burst = 1;
  {
    EventCorrelator by_object(options, clock_);
    EXPECT_FALSE(by_object.correlate(kubelet_event("original", "i am first")).skip);
    EXPECT_TRUE(by_object.correlate(kubelet_event("duplicate", "me again")).skip);
  }
  options.spam_key = [](const RecordedEvent& e) { return e.regarding.name + e.reason; };
  EventCorrelator by_reason(options, clock_);
  EXPECT_FALSE(by_reason.correlate(kubelet_event("original", "i am first")).skip);
  EXPECT_FALSE(by_reason.correlate(kubelet_event("duplicate", "me again")).skip);
  EXPECT_TRUE(by_reason.correlate(kubelet_event("original", "me again")).skip);
}

TEST_F(EventCorrelatorTest, RejectsInvalidOptions) {
  CorrelatorOptions options;
  options.cache_size = 0;
  EXPECT_THROW(EventCorrelator(options, clock_), InvalidArgument);
  options = CorrelatorOptions();
  options.message = nullptr;
  EXPECT_THROW(EventCorrelator(options, clock_), InvalidArgument);
  EXPECT_THROW(EventCorrelator(CorrelatorOptions(), nullptr), InvalidArgument);
}

TEST(AggregateByReasonTest, GroupsByEverythingExceptTheMessage) {
  const AggregateKeys one = aggregate_by_reason(kubelet_event("end-of-world", "it was fun"));
  const AggregateKeys other = aggregate_by_reason(kubelet_event("end-of-world", "it was not fun"));
  const AggregateKeys reason = aggregate_by_reason(kubelet_event("nevermind", "it was not fun"));
  EXPECT_EQ(one.group, other.group);
  EXPECT_NE(one.local, other.local);
  EXPECT_NE(one.group, reason.group);
}

TEST(AggregateByReasonTest, SeparatesAdjacentParts) {
  RecordedEvent one = kubelet_event("ab", "m");
  one.regarding.name = "x";
  one.regarding.ns = "yz";
  RecordedEvent other = kubelet_event("ab", "m");
  other.regarding.name = "zx";
  other.regarding.ns = "y";
  EXPECT_NE(aggregate_by_reason(one).group, aggregate_by_reason(other).group);
  EXPECT_NE(spam_key_of(one), spam_key_of(other));
}

TEST(CombinedMessageTest, HasAPrefix) {
  EXPECT_EQ(combined_message(kubelet_event("end-of-world", "it was fun")),
            "(combined from similar events): it was fun");
}

TEST(LruCacheTest, EvictsTheLeastRecentlyUsedEntry) {
  detail::LruCache<int> cache(2);
  cache.get("a") = 1;
  cache.get("b") = 2;
  EXPECT_EQ(*cache.find("a"), 1);
  cache.get("c") = 3;
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_EQ(*cache.find("a"), 1);
  EXPECT_EQ(*cache.find("c"), 3);
  EXPECT_EQ(cache.size(), 2U);
}

}  // namespace
}  // namespace lookout::record
