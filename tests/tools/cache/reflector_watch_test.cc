// Watches of a reflector: events, and the ways in which a watch ends.
#include <gtest/gtest.h>

#include <set>

#include "lookout/api/status.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/reflector.h"
#include "tests/support/matchers.h"
#include "tests/tools/cache/reflector_fixture.h"

namespace lookout::cache {
namespace {

/// The error of a server that cannot read an object, which counts as deleted.
StatusError store_read_error() {
  api::Status status = StatusError::internal_error("").status();
  status.reason = api::reason::kStoreReadError;
  status.message = "corrupt object has been deleted";
  return StatusError(std::move(status));
}

TEST_F(ReflectorTest, SendsTheWatchOptionsOfClientGo) {
  std::set<std::chrono::seconds> timeouts;
  begin();
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(last_watch().allow_watch_bookmarks);
    EXPECT_EQ(last_watch().limit, 0);
    EXPECT_FALSE(last_watch().send_initial_events);
    EXPECT_THAT(last_watch().timeout, AllOf(Ge(300s), Le(600s)));
    timeouts.insert(last_watch().timeout);
    bookmark(std::to_string(11 + i));
    source_->close_watch();
    open_watch();
  }
  EXPECT_GT(timeouts.size(), 10u) << "not all at the same moment";
}

TEST_F(ReflectorTest, TheWatchTimeoutCanBeChosen) {
  options_.min_watch_timeout = 1000s;
  begin();
  EXPECT_THAT(last_watch().timeout, AllOf(Ge(1000s), Le(2000s)));
}

TEST_F(ReflectorTest, AShortWatchTimeoutIsKept) {
  options_.min_watch_timeout = 20s;
  begin();
  EXPECT_THAT(last_watch().timeout, AllOf(Ge(20s), Le(40s)));
}

TEST_F(ReflectorTest, TheStoreReceivesEachVersion) {
  begin();
  send({{EventType::kAdded, pod("a/x", 20)}});
  EXPECT_THAT(store_.told(), ElementsAre("add a/x@20", "flush @20"));
  send({{EventType::kModified, pod("a/x", 30)}});
  EXPECT_THAT(store_.told(), ElementsAre("update a/x@30", "flush @30"));
  bookmark("40");
  EXPECT_THAT(store_.told(), ElementsAre("flush @40"));
  send({{EventType::kDeleted, pod("a/x", 50)}});
  EXPECT_THAT(store_.told(), ElementsAre("remove a/x@50", "flush @50"));
  EXPECT_EQ(reflector_->last_sync_resource_version(), "50");
}

TEST_F(ReflectorTest, AppliesEventsInOrder) {
  begin();
  send({{EventType::kAdded, pod("a/x", 11)},
        {EventType::kModified, pod("a/x", 12)},
        {EventType::kAdded, pod("a/y", 13)},
        {EventType::kDeleted, pod("a/x", 14)}});
  EXPECT_THAT(store_.told(), ElementsAre("add a/x@11", "update a/x@12", "add a/y@13",
                                         "remove a/x@14", "flush @14"));
  EXPECT_EQ(reflector_->last_sync_resource_version(), "14");
  send({{EventType::kModified, pod("a/y", 15)}});
  EXPECT_THAT(store_.told(), ElementsAre("update a/y@15", "flush @15"));
  EXPECT_EQ(reflector_->stats().events, 5u);
}

TEST_F(ReflectorTest, ABookmarkAdvancesTheVersion) {
  begin();
  bookmark("99");
  EXPECT_THAT(store_.told(), ElementsAre("flush @99"));
  EXPECT_EQ(reflector_->last_sync_resource_version(), "99");
  EXPECT_EQ(reflector_->stats().bookmarks, 1u);
  EXPECT_EQ(reflector_->stats().events, 0u);
  source_->close_watch();
  settle();
  EXPECT_EQ(last_watch().resource_version, "99");
}

TEST_F(ReflectorTest, IgnoresWatchedObjectsOfOtherKinds) {
  begin();
  send({{EventType::kAdded, pod("a/x", 11)},
        {EventType::kAdded, object_of_kind("v1", "Node", "a/node", "12")},
        {EventType::kModified, pod("a/", 13)},
        {EventType::kDeleted, object_of_kind("", "", "a/x", "14")}});
  EXPECT_THAT(store_.told(), ElementsAre("add a/x@11", "flush @11"));
  EXPECT_EQ(reflector_->stats().skipped, 3u);
  send({{EventType::kModified, pod("a/x", 15)}});
  EXPECT_THAT(store_.told(), ElementsAre("update a/x@15", "flush @15"));
}

/// The ways in which a watch may end without an error.
enum class End { kGoodOrder, kBroken, kTimeout, kProtocol };
class ReflectorEndTest : public ReflectorTest, public testing::WithParamInterface<End> {
 protected:
  void end_watch() {
    switch (GetParam()) {
      case End::kGoodOrder:
        source_->close_watch();
        return settle();
      case End::kBroken:
        return fail_watch(transport_error(Kind::kBroken));
      case End::kTimeout:
        return fail_watch(transport_error(Kind::kTimeout));
      case End::kProtocol:
        return fail_watch(transport_error(Kind::kProtocol));
    }
  }
};

TEST_P(ReflectorEndTest, WatchesAgainFromTheLastVersion) {
  begin();
  for (std::size_t i = 1; i < 10; ++i) {
    send({{EventType::kAdded, pod("a/x", 10 + i)}});
    end_watch();
    ASSERT_EQ(watches(), i + 1);
    EXPECT_EQ(last_watch().resource_version, std::to_string(10 + i));
    open_watch();
  }
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(clock_->slept(), IsEmpty());
  if (GetParam() == End::kGoodOrder) {
    EXPECT_THAT(errors_, IsEmpty());
  } else {
    EXPECT_THAT(errors_, AllOf(testing::SizeIs(9), testing::Each("no answer")))
        << "the cause is reported";
  }
}

TEST_P(ReflectorEndTest, AWatchOfASecondWithoutEventsIsNoFailure) {
  begin();
  advance(1s);
  end_watch();
  EXPECT_EQ(watches(), 2u);
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(clock_->slept(), IsEmpty());
}

TEST_P(ReflectorEndTest, AVeryShortWatchWithoutEventsIsAFailure) {
  begin();
  advance(999ms);
  end_watch();
  EXPECT_EQ(watches(), 1u);
  EXPECT_THAT(errors_, ElementsAre(AllOf(
                           testing::HasSubstr("very short watch"),
                           testing::HasSubstr(GetParam() == End::kGoodOrder ? "" : "no answer"))));
  EXPECT_EQ(reflector_->stats().short_watches, 1u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(lists(), 2u);
  EXPECT_EQ(last_list().resource_version, "10");
}

std::string end_name(const testing::TestParamInfo<End>& test) {
  constexpr const char* kNames[] = {"GoodOrder", "Broken", "Timeout", "Protocol"};
  return kNames[static_cast<int>(test.param)];
}
INSTANTIATE_TEST_SUITE_P(, ReflectorEndTest,
                         testing::Values(End::kGoodOrder, End::kBroken, End::kTimeout,
                                         End::kProtocol),
                         end_name);

TEST_F(ReflectorTest, IgnoredEventsDoNotCountAsEvents) {
  begin();
  send({{EventType::kAdded, object_of_kind("v1", "Node", "a/node", "11")}});
  source_->close_watch();
  settle();
  EXPECT_EQ(watches(), 1u) << "this could go on for ever, without a pause";
  EXPECT_EQ(clock_->sleepers(), 1u);
}

TEST_F(ReflectorTest, AVeryShortWatchWithoutNewVersionsIsAFailure) {
  begin({pod("a/x", 10)});
  // A bookmark of the known version, and an event that a proxy repeats.
  bookmark("10");
  source_->close_watch();
  settle();
  EXPECT_EQ(watches(), 1u) << "this could go on for ever, without a pause";
  ASSERT_TRUE(back_off());
  list({{pod("a/x", 10)}, "10"});
  open_watch();
  send({{EventType::kModified, pod("a/x", 10)}});
  source_->close_watch();
  settle();
  EXPECT_EQ(watches(), 2u);
  EXPECT_THAT(errors_, ElementsAre(testing::HasSubstr("nothing new received"),
                                   testing::HasSubstr("nothing new received")));
}

TEST_F(ReflectorTest, TheAgeOfAWatchCountsFromItsRequest) {
  start(store_);
  list({{}, "10"});
  advance(5s);  // a proxy that delays the response until there is an event
  open_watch();
  source_->close_watch();
  settle();
  EXPECT_EQ(watches(), 2u);
  EXPECT_EQ(reflector_->stats().short_watches, 0u);
}

class ReflectorGoneTest : public ReflectorTest, public testing::WithParamInterface<Refusal> {};

TEST_P(ReflectorGoneTest, ExpiryAsAnEventLeadsToARelist) {
  begin();
  send({{EventType::kAdded, pod("a/x", 11)},
        {EventType::kError, GetParam().error.status().to_object()},
        {EventType::kAdded, pod("a/after", 12)}});
  EXPECT_THAT(store_.told(), ElementsAre("add a/x@11", "flush @11")) << "what came before counts";
  expect_relist("11");
}

TEST_P(ReflectorGoneTest, ExpiryAsAResponseLeadsToARelist) {
  begin();
  bookmark("12");
  source_->close_watch();
  source_->watch_throws(GetParam().error);
  settle();
  EXPECT_EQ(lists(), 1u);
  expect_relist("12");
}

INSTANTIATE_TEST_SUITE_P(
    , ReflectorGoneTest,
    testing::Values(Refusal{"Expired", StatusError::expired("too old")},
                    Refusal{"Gone", StatusError::gone("too old")},
                    Refusal{"InternalError", StatusError::internal_error("oops")},
                    Refusal{"StoreReadError", store_read_error()},
                    Refusal{"Forbidden", StatusError::forbidden("", "pods", "", "no")}),
    [](const auto& test) { return test.param.name; });

TEST_F(ReflectorTest, AnObjectThatTheServerCannotReadIsDeletedByARelist) {
  // (Other internal errors are retried, but no event will report that this object is gone.)
  options_.max_internal_error_retry = 1h;
  begin({pod("a/x", 1), pod("a/y", 2)});
  send({{EventType::kAdded, pod("a/corrupt", 11)},
        {EventType::kError, store_read_error().status().to_object()}});
  EXPECT_THAT(store_.contents(), ElementsAre("a/corrupt@11", "a/x@1", "a/y@2"));
  ASSERT_TRUE(back_off());
  ASSERT_EQ(lists(), 2u);
  list({{pod("a/x", 1), pod("a/y", 2)}, "12"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@2"));
  EXPECT_EQ(reflector_->last_sync_resource_version(), "12");
}

TEST_F(ReflectorTest, AnErrorEventWithoutAStatusIsAnError) {
  begin();
  send({{EventType::kError, pod("a/x", 11)}});
  EXPECT_EQ(source_->open_watchers(), 0u) << "the watch is closed";
  EXPECT_EQ(errors_.size(), 1u);
  EXPECT_EQ(reflector_->last_sync_resource_version(), "10");
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "10");
}

TEST_F(ReflectorTest, AnUnreachableServerIsAskedForTheSameWatch) {
  begin();
  bookmark("11");
  source_->close_watch();
  settle();
  for (const Kind kind : {Kind::kRefused, Kind::kUnreachable, Kind::kTimeout, Kind::kBroken}) {
    const auto before = watches();
    source_->watch_throws(transport_error(kind));
    settle();
    EXPECT_EQ(watches(), before) << "not without a pause";
    ASSERT_TRUE(back_off());
    EXPECT_EQ(watches(), before + 1);
    EXPECT_EQ(last_watch().resource_version, "11");
  }
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(errors_, AllOf(testing::SizeIs(4), testing::Each("no answer")));
  EXPECT_EQ(reflector_->stats().errors, 4u);
}

TEST_F(ReflectorTest, ReportsWhetherTheStoreIsLive) {
  start(store_);
  EXPECT_FALSE(reflector_->live()) << "there is no list yet";
  list({{}, "10"});
  EXPECT_TRUE(reflector_->live());
  open_watch();
  // A regular end of a watch is followed by the next watch.
  advance(5s);
  source_->close_watch();
  settle();
  EXPECT_TRUE(reflector_->live());
  open_watch();
  // The connection breaks, and the server does not respond for a while.
  advance(5s);
  fail_watch(transport_error(Kind::kBroken));
  EXPECT_FALSE(reflector_->live());
  source_->watch_throws(transport_error(Kind::kRefused));
  settle();
  ASSERT_TRUE(back_off());
  EXPECT_FALSE(reflector_->live());
  open_watch();
  EXPECT_TRUE(reflector_->live());
  // The history has expired: the store is stale until the next list.
  send({{EventType::kError, StatusError::expired("too old").status().to_object()}});
  EXPECT_FALSE(reflector_->live());
  ASSERT_TRUE(back_off());
  EXPECT_FALSE(reflector_->live());
  list({{}, "20"});
  EXPECT_EQ(reflector_->live_since(), clock_->now());
  open_watch();
  advance(5s);
  send({{EventType::kAdded, pod("a/x", 21)}});
  EXPECT_EQ(reflector_->live_since(), clock_->now() - 5s) << "it was live before";
}

TEST_F(ReflectorTest, ABusyServerIsAskedForTheSameWatch) {
  begin();
  // As an event,
  send({{EventType::kAdded, pod("a/x", 11)},
        {EventType::kError, StatusError::too_many_requests("slow down", 1).status().to_object()}});
  EXPECT_EQ(watches(), 1u);
  EXPECT_EQ(reflector_->last_failure().value_or(ReflectorFailure{}).status, 429);
  EXPECT_EQ(reflector_->stats().errors, 1u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(watches(), 2u);
  EXPECT_EQ(last_watch().resource_version, "11");
  // and as a response.
  source_->watch_throws(StatusError::too_many_requests("slow down", 1));
  settle();
  EXPECT_EQ(watches(), 2u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(watches(), 3u);
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(ReflectorTest, HonoursRetryAfter) {
  begin();
  const auto expect_wait = [&](Clock::Duration wait) {
    EXPECT_EQ(clock_->next_wake(), wait);
    back_off();
  };
  source_->list_returns({{}, "12"});
  send({{EventType::kError, StatusError::too_many_requests("later", 77).status().to_object()}});
  expect_wait(77s);
  source_->watch_throws(StatusError::too_many_requests("later", 100'000));
  settle();
  expect_wait(2min);  // limited to two minutes
  source_->watch_throws(StatusError::server_timeout("", "pods", "watch", 66));
  settle();
  expect_wait(66s);
}

TEST_F(ReflectorTest, AResponseWithRetryAfterLeadsToTheSameWatch) {
  begin();
  bookmark("11");
  source_->close_watch();
  source_->watch_throws(StatusError::server_timeout("", "pods", "watch", 3600));
  settle();
  EXPECT_FALSE(reflector_->live());
  EXPECT_EQ(reflector_->stats().errors, 1u);
  EXPECT_TRUE(reflector_->last_failure().has_value());
  EXPECT_EQ(errors_.size(), 1u);
  EXPECT_EQ(clock_->next_wake(), 2min) << "within reason";
  back_off();
  EXPECT_EQ(lists(), 1u);
  EXPECT_EQ(last_watch().resource_version, "11");
  open_watch();
  EXPECT_TRUE(reflector_->live());
}

TEST_F(ReflectorTest, InternalErrorsAreRetriedWithoutALimit) {
  options_.max_internal_error_retry = std::chrono::milliseconds::max();
  begin();
  for (int i = 0; i < 5; ++i) {
    fail_watch(StatusError::internal_error("etcdserver: no leader"));
    back_off();
    open_watch();
  }
  EXPECT_EQ(lists(), 1u);
}

TEST_F(ReflectorTest, InternalErrorsAreRetriedUntilTheDeadline) {
  options_.max_internal_error_retry = 10s;
  options_.backoff.jitter = 0;
  begin();
  bookmark("11");
  for (const auto wait : {800ms, 1600ms, 3200ms}) {
    fail_watch(StatusError::internal_error("etcdserver: no leader"));
    EXPECT_EQ(clock_->next_wake(), wait) << "not without a pause";
    back_off();
    EXPECT_EQ(last_watch().resource_version, "11");
    open_watch();
  }
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(errors_, IsEmpty());
  advance(10s);
  fail_watch(StatusError::internal_error("etcdserver: no leader"));
  EXPECT_EQ(errors_.size(), 1u) << "that is long enough";
  back_off();
  EXPECT_EQ(lists(), 2u);
  // A relist follows, and the retry deadline starts anew.
  list({{}, "20"});
  open_watch();
  advance(2min);
  fail_watch(StatusError::internal_error("etcdserver: no leader"));
  back_off();
  EXPECT_EQ(lists(), 2u);
  EXPECT_EQ(last_watch().resource_version, "20");
}

TEST_F(ReflectorTest, OtherErrorsOfAWatchLeadToARelist) {
  begin();
  bookmark("11");
  source_->close_watch();
  for (const auto& error : {StatusError::internal_error("oops"), StatusError::unauthorized(),
                            StatusError::service_unavailable("later")}) {
    source_->watch_throws(error);
    settle();
    const auto before = lists();
    ASSERT_TRUE(back_off());
    EXPECT_EQ(lists(), before + 1);
    list({{}, "12"});
  }
  EXPECT_EQ(errors_.size(), 3u);
}

TEST_F(ReflectorTest, InitialEventsDoNotAdvanceTheVersion) {
  start(store_);
  list({{}, ""});
  EXPECT_EQ(last_watch().resource_version, "");
  open_watch();
  send({{EventType::kAdded, pod("a/x", 40)}, {EventType::kAdded, pod("a/y", 30)}});
  EXPECT_EQ(reflector_->last_sync_resource_version(), "");
  send({{EventType::kModified, pod("a/y", 50)}, {EventType::kAdded, pod("a/z", 51)}});
  EXPECT_EQ(reflector_->last_sync_resource_version(), "51");
  source_->close_watch();
  settle();
  EXPECT_EQ(last_watch().resource_version, "51");
}

TEST_F(ReflectorTest, AStoreThatThrowsLeadsToARelist) {
  begin();
  store_.throw_once();
  send({{EventType::kAdded, pod("a/x", 11)}});
  EXPECT_THAT(errors_, ElementsAre("the store is full"));
  ASSERT_TRUE(back_off());
  list({{pod("a/x", 11)}, "11"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@11"));
}
}  // namespace
}  // namespace lookout::cache
