// The records that a dubbo client knows: its own writes, and the end.
#include "registry/dubbo/record_set.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace lookout::registry::dubbo::detail {
namespace {

constexpr const char* kOwn = "default/self";

TEST(RecordSetTest, AnOwnWriteCountsUntilTheWatchHasReachedIt) {
  RecordSet set(kOwn);
  set.written({"key", "new"}, "10");
  set.apply(kOwn, {{"key", "old"}}, "9");
  EXPECT_EQ(set.get("key"), "new");
  set.apply(kOwn, {{"key", "newest"}}, "11");
  EXPECT_EQ(set.get("key"), "newest");
}

TEST(RecordSetTest, ALaterWriteOfAnotherMayBeWatchedFirst) {
  RecordSet set(kOwn);
  set.apply(kOwn, {{"key", "1"}}, "10");
  set.apply(kOwn, {}, "11");
  set.written({"key", "1"}, "10");
  EXPECT_EQ(set.get("key"), std::nullopt);
  set.apply(kOwn, {{"key", "2"}}, "12");
  set.erased("key", "11");
  EXPECT_EQ(set.get("key"), "2");
}

TEST(RecordSetTest, EqualContentConfirmsAnOwnWrite) {
  RecordSet set(kOwn);
  set.written({"key", "1"}, "1000");
  // The server has lost its data, so its versions start over.
  set.apply(kOwn, {{"key", "1"}}, "7");
  set.apply(kOwn, {}, "8");
  EXPECT_EQ(set.get("key"), std::nullopt);
}

TEST(RecordSetTest, WithoutAWatchItForgetsOldRemovals) {
  // Such as those of a provider that reads nothing.
  RecordSet set(kOwn);
  for (int i = 1; i <= 1000; ++i) {
    const std::string key = "key" + std::to_string(i);
    set.written({key, ""}, std::to_string(2 * i));
    set.erased(key, std::to_string(2 * i + 1));
  }
  EXPECT_EQ(set.unconfirmed(), 100u);
  // The newest count: a list may be older than they are.
  set.apply(kOwn, {{"key900", ""}, {"key1000", ""}}, "1801");
  EXPECT_EQ(set.get("key900"), "");
  EXPECT_EQ(set.get("key1000"), std::nullopt);
  // Written records count as long as they are there.
  RecordSet present(kOwn);
  for (int i = 1; i <= 200; ++i) present.written({"key" + std::to_string(i), ""}, "1");
  present.written({"gone", ""}, "2");
  present.erased("gone", "3");
  EXPECT_EQ(present.with_prefix("key").size(), 200u);
}

TEST(RecordSetTest, AQueueAddedAfterTheEndEndsAtOnce) {
  RecordSet set(kOwn);
  set.end(NextOutcome::kClosed);
  const auto queue = std::make_shared<EventQueue>("key", false, 10);
  set.add(queue, Begin::kWithChanges);
  const auto event = queue->take();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->outcome(), NextOutcome::kClosed);
  EXPECT_EQ(set.queues(), 0u);
}

}  // namespace
}  // namespace lookout::registry::dubbo::detail
