#include "lookout/tools/watch/until.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "lookout/api/error.h"
#include "tests/support/bounded_wait.h"
#include "tests/tools/watch/watch_fixture.h"

namespace lookout::watch {
namespace {

Condition is(api::EventType type) {
  return [type](const api::WatchEvent& event) { return event.type == type; };
}
const Condition kIsAdded = is(api::EventType::kAdded);
const Condition kIsModified = is(api::EventType::kModified);
const Condition kIsDeleted = is(api::EventType::kDeleted);

class UntilTest : public test::WatchTest {
 protected:
  std::shared_ptr<Outcome<api::WatchEvent>> until_without_retry(
      std::vector<Condition> conditions, std::chrono::milliseconds timeout = 60s) {
    return begin(async_until_without_retry(source_, "5", std::move(conditions), options(timeout)));
  }
};

TEST_F(UntilTest, WaitsForTheConditionsInOrder) {
  source_->watch_opens();
  const auto wait = until_without_retry({kIsAdded, kIsModified});
  EXPECT_EQ(source_->watches().at(0).resource_version, "5");
  send({bookmark(6), added("a/x", 7)});
  EXPECT_TRUE(wait->pending());
  send({modified("a/x", 8), deleted("a/x", 9)});
  EXPECT_EQ(text(wait->get()), "MODIFIED a/x@8");
}

TEST_F(UntilTest, OneEventMayFulfilSeveral) {
  source_->watch_opens();
  const auto wait = until_without_retry({kIsAdded, kIsAdded});
  send({added("a/x", 7)});
  EXPECT_EQ(text(wait->get()), "ADDED a/x@7");
}

TEST_F(UntilTest, EndsAtItsTimeoutWithTheLastEvent) {
  source_->watch_opens();
  const auto wait = until_without_retry({kIsAdded, kIsAdded, kIsDeleted}, 10s);
  send({added("a/x", 7)});
  advance(9s);
  EXPECT_TRUE(wait->pending());
  advance(1s);
  try {
    wait->get();
    ADD_FAILURE();
  } catch (const WaitError& e) {
    EXPECT_EQ(e.reason(), Reason::kTimeout);
    ASSERT_TRUE(e.last_event());
    EXPECT_EQ(text(*e.last_event()), "ADDED a/x@7");
  }
}

TEST_F(UntilTest, WithoutATimeoutWaitsUntilAStop) {
  source_->watch_opens();
  const auto wait = until_without_retry({kIsAdded}, 0s);
  advance(24h);
  EXPECT_TRUE(wait->pending());
  stop_.request_stop();
  settle();
  EXPECT_EQ(reason(*wait), Reason::kStopped);
}

TEST_F(UntilTest, AStopBeforeTheTimeoutIsNoticedIsTheReason) {
  source_->watch_opens();
  const auto wait = until_without_retry({kIsAdded}, 10s);
  // The loop learns of both together.
  clock_->advance(10s);
  stop_.request_stop();
  settle();
  EXPECT_EQ(reason(*wait), Reason::kStopped);
}

TEST_F(UntilTest, TheTimeoutIncludesTheStartOfTheWatch) {
  const auto wait = until_without_retry({kIsAdded}, 10s);  // no response
  advance(10s);
  EXPECT_EQ(reason(*wait), Reason::kTimeout);
}

TEST_F(UntilTest, AnExceptionOfAConditionIsRethrown) {
  source_->watch_opens();
  const auto wait = until_without_retry({kIsAdded, [](const api::WatchEvent&) -> bool {
                                           throw std::runtime_error("something bad");
                                         }});
  send({added("a/x", 7)});
  EXPECT_THROW(wait->get(), std::runtime_error);
}

TEST_F(UntilTest, WithoutConditionsReturnsAtOnce) {
  source_->watch_opens();
  const auto wait = until_without_retry({});
  EXPECT_FALSE(wait->get().object);
}

TEST_F(UntilTest, WithoutRetryEndsWithItsWatch) {
  for (int i = 0; i < 2; ++i) source_->watch_opens();
  auto wait = until_without_retry({kIsAdded});
  source_->close_watch();
  settle();
  EXPECT_EQ(reason(*wait), Reason::kClosed);
  wait = until_without_retry({kIsAdded});
  source_->break_watch(rest::TransportError(rest::TransportError::Kind::kBroken, "gone"));
  settle();
  EXPECT_EQ(reason(*wait), Reason::kClosed);
  source_->watch_throws(api::StatusError::internal_error("no"));
  wait = until_without_retry({kIsAdded});
  EXPECT_THROW(wait->get(), api::StatusError);
}

TEST_F(UntilTest, ContinuesWhenAWatchEnds) {
  source_->watch_opens();
  source_->watch_opens();
  const auto wait = begin(async_until(source_, "5", {kIsAdded, kIsDeleted}, options(60s)));
  send({added("a/x", 7)});
  source_->close_watch();
  settle();
  EXPECT_EQ(source_->watches().at(1).resource_version, "7");
  send({deleted("a/x", 8)});
  EXPECT_EQ(text(wait->get()), "DELETED a/x@8");
}

TEST_F(UntilTest, ThrowsWhenTheVersionHasExpired) {
  source_->watch_opens();
  const auto wait = begin(async_until(source_, "5", {kIsAdded}, options(60s)));
  send({error(api::StatusError::gone("too old"))});
  try {
    wait->get();
    ADD_FAILURE();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_gone(e));
  }
  EXPECT_THROW(begin(async_until(source_, "", {kIsAdded}, options()))->get(), InvalidArgument);
}

TEST_F(UntilTest, AListCountsAsAdditions) {
  source_->list_returns({{pod("a/x", 3)}, "10", "more"});
  source_->list_returns({{pod("a/y", 4)}, "11"});
  source_->watch_opens();
  const auto named = [](std::string_view name) {
    return [name](const api::WatchEvent& event) { return event.object.name() == name; };
  };
  const auto wait = begin(async_list_watch_until(
      source_, {named("x"), kIsAdded, named("y"), named("z")}, options(60s)));
  EXPECT_EQ(source_->lists().size(), 2u);
  ASSERT_EQ(source_->watches().size(), 1u);
  EXPECT_EQ(source_->watches().at(0).resource_version, "11");
  send({added("a/z", 12)});
  EXPECT_EQ(text(wait->get()), "ADDED a/z@12");
}

TEST_F(UntilTest, AListMayMeetTheConditions) {
  source_->list_returns({{pod("a/x", 3)}, "10"});
  const auto wait = begin(async_list_watch_until(source_, {kIsAdded}, options(60s)));
  EXPECT_EQ(text(wait->get()), "ADDED a/x@3");
  EXPECT_THAT(source_->watches(), IsEmpty());
  source_->list_throws(api::StatusError::forbidden("", "pods", "", "no"));
  EXPECT_THROW(begin(async_list_watch_until(source_, {kIsAdded}, options(60s)))->get(),
               api::StatusError);
}

TEST_F(UntilTest, AListWithAnUndecodableItemIsAnError) {
  source_->list_returns({.items = {pod("a/x", 3)}, .resource_version = "10", .malformed_items = 1});
  EXPECT_THROW(begin(async_list_watch_until(source_, {kIsAdded}, options(60s)))->get(),
               api::DecodeError);
}

// ----------------------------------------------------------------------------------- with sync

TEST_F(UntilTest, WithSyncWaitsForTheStoreOnlyWithAPrecondition) {
  const Precondition met = [](const cache::Indexer&) { return true; };
  // The source never returns a list.
  for (const auto& precondition : {Precondition(), met}) {
    const auto wait = begin(async_until_with_sync(source_, precondition, {kIsAdded}, options(5s)));
    EXPECT_TRUE(wait->pending());
    advance(5s);
    EXPECT_EQ(reason(*wait), Reason::kTimeout);
  }
}

TEST_F(UntilTest, AMetPreconditionEndsTheWait) {
  source_->list_returns({{pod("a/x", 3)}, "10"});
  source_->watch_opens();
  const auto wait = begin(async_until_with_sync(
      source_, [](const cache::Indexer& store) { return static_cast<bool>(store.get("a", "x")); },
      {[](const api::WatchEvent&) -> bool { throw std::runtime_error("never asked"); }},
      options(60s)));
  EXPECT_FALSE(wait->get().has_value());
  EXPECT_EQ(source_->open_watchers(), 0u) << "the informer has ended";
}

TEST_F(UntilTest, AnUnmetPreconditionContinuesTheWait) {
  source_->list_returns({{pod("a/x", 3)}, "10"});
  source_->watch_opens();
  const auto wait = begin(async_until_with_sync(
      source_, [](const cache::Indexer&) { return false; }, {kIsAdded}, options(60s)));
  ASSERT_TRUE(wait->get().has_value());
  EXPECT_EQ(text(**wait->value), "ADDED a/x@3");
}

TEST_F(UntilTest, AnExceptionOfAPreconditionIsRethrown) {
  source_->list_returns({{}, "10"});
  source_->watch_opens();
  const auto wait = begin(async_until_with_sync(
      source_, [](const cache::Indexer&) -> bool { throw std::runtime_error("bad"); }, {kIsAdded},
      options(60s)));
  EXPECT_THROW(wait->get(), std::runtime_error);
}

TEST_F(UntilTest, WithSyncDeliversTheEventsOfAnInformer) {
  source_->list_returns({{pod("a/1", 1), pod("a/2", 2), pod("a/3", 3)}, "10"});
  source_->watch_opens();
  std::vector<std::string> told;
  const auto wait = begin(async_until_with_sync(source_, {}, {[&](const api::WatchEvent& event) {
                                                  told.push_back(text(event));
                                                  return event.type == api::EventType::kDeleted;
                                                }},
                                                options(60s)));
  send({added("a/4", 11), modified("a/2", 12)});
  send({deleted("a/3", 13)});
  EXPECT_EQ(text(wait->get().value()), "DELETED a/3@13");
  EXPECT_THAT(told,
              testing::UnorderedElementsAre("ADDED a/1@1", "ADDED a/2@2", "ADDED a/3@3",
                                            "ADDED a/4@11", "MODIFIED a/2@12", "DELETED a/3@13"));
}

TEST_F(UntilTest, WithSyncDeliversAMissedDeletion) {
  source_->list_returns({{pod("a/x", 3)}, "10"});
  source_->watch_throws(api::StatusError::gone("too old"));
  source_->list_returns({{}, "20"});
  source_->watch_opens();
  const auto wait =
      begin(async_until_with_sync(source_, {}, {kIsAdded, kIsDeleted}, options(60min)));
  for (int i = 0; i < 5 && wait->pending(); ++i) advance(30s);
  EXPECT_EQ(text(wait->get().value()), "DELETED a/x@3");
}

TEST_F(UntilTest, WithSyncAStopEndsTheWait) {
  source_->list_returns({{pod("a/x", 3)}, "10"});
  source_->watch_opens();
  const auto wait = begin(async_until_with_sync(source_, {}, {kIsDeleted}, options()));
  EXPECT_TRUE(wait->pending());
  stop_.request_stop();
  settle();
  EXPECT_EQ(reason(*wait), Reason::kStopped);
  EXPECT_EQ(source_->open_watchers(), 0u);
}

}  // namespace
}  // namespace lookout::watch
