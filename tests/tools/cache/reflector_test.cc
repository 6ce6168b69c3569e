#include "lookout/tools/cache/reflector.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "lookout/api/status.h"
#include "lookout/tools/cache/controller.h"
#include "tests/support/matchers.h"
#include "tests/tools/cache/reflector_fixture.h"

namespace lookout::cache {
namespace {

StatusError too_large() { return StatusError::too_large_resource_version(20, 10, 1); }
/// The same in the words of servers 1.17 and 1.18,
StatusError too_large_1_18() {
  api::Status status = StatusError::timeout("not now", 1).status();
  status.causes.push_back({"", "Too large resource version", ""});
  return StatusError(std::move(status));
}
/// and of older ones.
StatusError too_large_1_16() { return StatusError::timeout("Too large resource version", 1); }

/// An object that the server cannot read any more has been deleted.
StatusError store_read_error() {
  api::Status status = StatusError::internal_error("").status();
  status.reason = api::reason::kStoreReadError;
  status.message = "corrupt object has been deleted";
  return StatusError(std::move(status));
}

// ------------------------------------------------------------------------------------ listing

TEST_F(ReflectorTest, BeginsWithAListOfWhateverVersionTheServerHasAtHand) {
  start(store_);
  ASSERT_EQ(lists(), 1u);
  EXPECT_EQ(last_list().resource_version, "0");
  EXPECT_EQ(last_list().resource_version_match, "");
  EXPECT_EQ(last_list().limit, 500);
  EXPECT_EQ(last_list().continue_token, "");
  EXPECT_EQ(reflector_->last_sync_resource_version(), "");
  EXPECT_EQ(watches(), 0u);

  list({{pod("a/x"), pod("a/y")}, "10"});
  EXPECT_THAT(store_.told(), ElementsAre("replace @10", "flush @10"));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@1"));
  EXPECT_EQ(reflector_->last_sync_resource_version(), "10");
  ASSERT_EQ(watches(), 1u);
  EXPECT_EQ(last_watch().resource_version, "10");
}

TEST_F(ReflectorTest, ListsAgainFromTheLastVersion) {
  begin();
  send({{EventType::kAdded, pod("a/x", 11)}});
  fail_watch(StatusError::internal_error("oops"));
  ASSERT_TRUE(back_off());
  ASSERT_EQ(lists(), 2u);
  EXPECT_EQ(last_list().resource_version, "11");
  EXPECT_EQ(last_list().limit, 0) << "pages would make the server ask its storage";
}

TEST_F(ReflectorTest, AfterAListThatFailedItAsksForTheSameAgain) {
  begin();
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(last_list().resource_version, "10");
    source_->list_throws(transport_error(Kind::kTimeout));
    settle();
    ASSERT_TRUE(back_off());
  }
  EXPECT_EQ(lists(), 5u);
  EXPECT_EQ(errors_.size(), 4u);
}

struct Unavailable {
  const char* name;
  StatusError error;
};
class ReflectorUnavailableTest : public ReflectorTest,
                                 public testing::WithParamInterface<Unavailable> {};

TEST_P(ReflectorUnavailableTest, AsksForTheNewestWhenTheServerLacksItsVersion) {
  begin();
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  source_->list_throws(GetParam().error, {pod("a/half")});
  settle();
  // At once, and from the storage.
  ASSERT_EQ(lists(), 3u);
  EXPECT_EQ(last_list().resource_version, "");
  EXPECT_EQ(last_list().limit, 500);
  EXPECT_EQ(clock_->sleepers(), 0u);
  list({{pod("a/x", 30)}, "30"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@30"));
  EXPECT_EQ(last_watch().resource_version, "30");

  // Then it goes on as usual.
  open_watch();
  fail_watch(StatusError::internal_error("oops"));
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "30");
  EXPECT_EQ(last_list().limit, 0);
}

TEST_P(ReflectorUnavailableTest, GoesOnAskingForTheNewestUntilItGetsIt) {
  start(store_);
  source_->list_throws(GetParam().error);
  source_->list_throws(GetParam().error);
  settle();
  EXPECT_EQ(lists(), 2u);
  EXPECT_EQ(errors_.size(), 1u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(lists(), 3u);
  EXPECT_EQ(last_list().resource_version, "");
}

INSTANTIATE_TEST_SUITE_P(, ReflectorUnavailableTest,
                         testing::Values(Unavailable{"Expired", StatusError::expired("too old")},
                                         Unavailable{"Gone", StatusError::gone("too old")},
                                         Unavailable{"TooLarge", too_large()},
                                         Unavailable{"TooLarge1_18", too_large_1_18()},
                                         Unavailable{"TooLarge1_16", too_large_1_16()}),
                         [](const auto& test) { return test.param.name; });

TEST_F(ReflectorTest, ReadsAListPageByPage) {
  start(store_);
  list({{pod("a/x")}, "10", "page-2"});
  ASSERT_EQ(lists(), 2u);
  EXPECT_EQ(last_list().continue_token, "page-2");
  EXPECT_EQ(last_list().resource_version, "");
  EXPECT_EQ(last_list().limit, 500);
  list({{pod("a/y")}, "10", "page-3"});
  EXPECT_EQ(last_list().continue_token, "page-3");
  EXPECT_THAT(store_.told(), IsEmpty()) << "nothing before the list is complete";
  list({{pod("a/z")}, "10"});
  EXPECT_THAT(store_.told(), ElementsAre("replace @10", "flush @10"));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@1", "a/z@1"));
  EXPECT_EQ(reflector_->stats().lists, 1u);
}

TEST_F(ReflectorTest, RemembersThatTheServerMakesPagesOfWhatItHasAtHand) {
  start(store_);
  list({{pod("a/x")}, "10", "page-2"});
  list({{pod("a/y")}, "10"});
  open_watch();
  fail_watch(StatusError::internal_error("oops"));
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "10");
  EXPECT_EQ(last_list().limit, 500);
}

TEST_F(ReflectorTest, DoesNotRememberPagesOfWhatOnlyTheStorageHas) {
  begin();
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  source_->list_throws(StatusError::expired("too old"));
  list({{pod("a/x")}, "20", "page-2"});
  list({{pod("a/y")}, "20"});
  open_watch();
  fail_watch(StatusError::internal_error("oops"));
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "20");
  EXPECT_EQ(last_list().limit, 0);
}

TEST_F(ReflectorTest, ListsAllAtOnceWhenTheNextPageHasExpired) {
  start(store_);
  list({{pod("a/x"), pod("a/gone-since")}, "10", "page-2"});
  source_->list_throws(StatusError::expired("too old"), {pod("a/half")});
  settle();
  ASSERT_EQ(lists(), 3u);
  EXPECT_EQ(last_list().resource_version, "0");
  EXPECT_EQ(last_list().limit, 0);
  EXPECT_EQ(last_list().continue_token, "");
  list({{pod("a/x", 2)}, "12"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@2"));
  EXPECT_THAT(errors_, IsEmpty());
  open_watch();
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  EXPECT_EQ(last_list().limit, 500) << "pages were made of version 0";
}

TEST_F(ReflectorTest, APageThatFailsForAnotherReasonFailsTheList) {
  begin({pod("a/before")});
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  store_.told();
  list({{pod("a/x")}, "20", "page-2"});
  source_->list_throws(transport_error(Kind::kBroken), {pod("a/y")});
  settle();
  EXPECT_THAT(store_.told(), IsEmpty());
  EXPECT_THAT(store_.contents(), ElementsAre("a/before@1")) << "half a list replaces nothing";
  EXPECT_EQ(reflector_->last_sync_resource_version(), "10");
  EXPECT_EQ(errors_.size(), 2u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "10");
  EXPECT_EQ(last_list().continue_token, "");
}

TEST_F(ReflectorTest, AlwaysMakesPagesIfToldTo) {
  options_.page_size = 7;
  start(store_);
  EXPECT_EQ(last_list().limit, 7);
  list({{pod("a/x")}, "10"});
  open_watch();
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  EXPECT_EQ(last_list().resource_version, "10");
  EXPECT_EQ(last_list().limit, 7);
}

TEST_F(ReflectorTest, LeavesOutWhatDoesNotBelongInTheList) {
  start(store_);
  list({{pod("a/x"), object_of_kind("v1", "Node", "a/node"), object_of_kind("v2", "Pod", "a/v2"),
         pod("a/"), pod("a/y")},
        "10",
        "",
        3});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@1"));
  EXPECT_EQ(reflector_->stats().skipped, 6u) << "three malformed, three that do not fit";
}

TEST_F(ReflectorTest, TakesEveryKindIfNoneIsExpected) {
  options_.expected_kind.clear();
  begin({object_of_kind("v1", "Node", "n")});
  EXPECT_THAT(store_.contents(), ElementsAre("n@1"));
}

TEST_F(ReflectorTest, ATableIsNoList) {
  begin({pod("a/x")});
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  for (const char* version : {"meta.k8s.io/v1", "meta.k8s.io/v1beta1"}) {
    errors_.clear();
    list({{}, "20", "", 0, version, "Table"});
    EXPECT_THAT(errors_, ElementsAre(testing::HasSubstr("v1, Kind=Pod"))) << version;
    EXPECT_THAT(store_.contents(), ElementsAre("a/x@1")) << "it would seem to be empty";
    back_off();
  }
  list({{}, "20", "", 0, "example.com/v1", "Table"});
  EXPECT_THAT(store_.contents(), IsEmpty()) << "somebody's own kind of that name";
}

TEST_F(ReflectorTest, ATableIsNoObject) {
  options_.expected_kind.clear();
  begin();
  send({{EventType::kAdded, object_of_kind("meta.k8s.io/v1", "Table", "a/x", "11")},
        {EventType::kAdded, pod("a/y", 12)}});
  EXPECT_THAT(store_.contents(), ElementsAre("a/y@12"));
}

TEST_F(ReflectorTest, DescribesWhatItLists) {
  options_.expected_api_version = "apps/v1";
  options_.expected_kind = "Deployment";
  EXPECT_EQ(Reflector::create(source_, store_, options_)->type_description(),
            "apps/v1, Kind=Deployment");
  options_.type_description = "my things";
  EXPECT_EQ(Reflector::create(source_, store_, options_)->type_description(), "my things");
  EXPECT_EQ(Reflector::create(source_, store_, {})->type_description(), "<unspecified>");
}

TEST_F(ReflectorTest, WhatAListBringsAgainCostsNoMemory) {
  Indexer store;
  Controller controller(store, {}, [](const std::vector<Notification>&) {});
  start(controller);
  const auto same = pod("a/same", 1);
  list({{same, pod("a/changed", 1)}, "10"});
  open_watch();
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  list({{pod("a/same", 1), pod("a/changed", 2)}, "20"});
  EXPECT_TRUE(store.get("a", "same").same(same));
  EXPECT_EQ(store.get("a", "changed").resource_version(), "2");
}

// ----------------------------------------------------------------------------------- watching

TEST_F(ReflectorTest, AsksForAWatchAsClientGoDoes) {
  std::set<std::chrono::seconds> timeouts;
  begin();
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(last_watch().allow_watch_bookmarks);
    EXPECT_EQ(last_watch().limit, 0);
    EXPECT_FALSE(last_watch().send_initial_events);
    EXPECT_THAT(last_watch().timeout, AllOf(Ge(300s), Le(600s)));
    timeouts.insert(last_watch().timeout);
    bookmark("10");
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

TEST_F(ReflectorTest, AShortWatchTimeoutCountsToo) {
  options_.min_watch_timeout = 20s;
  begin();
  EXPECT_THAT(last_watch().timeout, AllOf(Ge(20s), Le(40s)));
}

TEST_F(ReflectorTest, TheStoreIsToldOfEachVersion) {
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

TEST_F(ReflectorTest, ABookmarkMovesItOn) {
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

TEST_F(ReflectorTest, LeavesOutWhatDoesNotBelongInTheWatch) {
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

/// How a watch can end without anything being wrong.
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

TEST_P(ReflectorEndTest, WatchesAgainFromWhereItWas) {
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
        << "the cause is told";
  }
}

TEST_P(ReflectorEndTest, AWatchMayBringNothingIfItTakesItsTime) {
  begin();
  advance(1s);
  end_watch();
  EXPECT_EQ(watches(), 2u);
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(clock_->slept(), IsEmpty());
}

TEST_P(ReflectorEndTest, AWatchThatEndsAtOnceWithNothingIsAFailure) {
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

TEST_F(ReflectorTest, EventsThatAreLeftOutDoNotMakeAWatchUseful) {
  begin();
  send({{EventType::kAdded, object_of_kind("v1", "Node", "a/node", "11")}});
  source_->close_watch();
  settle();
  EXPECT_EQ(watches(), 1u) << "this could go on for ever, without a pause";
  EXPECT_EQ(clock_->sleepers(), 1u);
}

TEST_F(ReflectorTest, AWatchBeginsWhenItIsAskedFor) {
  start(store_);
  list({{}, "10"});
  advance(5s);  // a proxy that holds the answer back until there is an event
  open_watch();
  source_->close_watch();
  settle();
  EXPECT_EQ(watches(), 2u);
  EXPECT_EQ(reflector_->stats().short_watches, 0u);
}

class ReflectorGoneTest : public ReflectorTest, public testing::WithParamInterface<Unavailable> {};

TEST_P(ReflectorGoneTest, AsAnEventItMakesANewList) {
  begin();
  send({{EventType::kAdded, pod("a/x", 11)},
        {EventType::kError, GetParam().error.status().to_object()},
        {EventType::kAdded, pod("a/after", 12)}});
  EXPECT_THAT(store_.told(), ElementsAre("add a/x@11", "flush @11")) << "what came before counts";
  EXPECT_EQ(errors_.size(), 1u);
  ASSERT_TRUE(back_off());
  ASSERT_EQ(lists(), 2u);
  EXPECT_EQ(last_list().resource_version, "11");
}

TEST_P(ReflectorGoneTest, AsAnAnswerItMakesANewList) {
  begin();
  bookmark("12");
  source_->close_watch();
  source_->watch_throws(GetParam().error);
  settle();
  EXPECT_EQ(lists(), 1u);
  EXPECT_EQ(errors_.size(), 1u);
  ASSERT_TRUE(back_off());
  ASSERT_EQ(lists(), 2u);
  EXPECT_EQ(last_list().resource_version, "12");
}

INSTANTIATE_TEST_SUITE_P(
    , ReflectorGoneTest,
    testing::Values(Unavailable{"Expired", StatusError::expired("too old")},
                    Unavailable{"Gone", StatusError::gone("too old")},
                    Unavailable{"InternalError", StatusError::internal_error("oops")},
                    Unavailable{"StoreReadError", store_read_error()},
                    Unavailable{"Forbidden", StatusError::forbidden("", "pods", "", "no")}),
    [](const auto& test) { return test.param.name; });

TEST_F(ReflectorTest, AnObjectThatTheServerCannotReadGoesWithTheNextList) {
  // (Other internal errors are got over, but nobody will ever say that this object is gone.)
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

TEST_F(ReflectorTest, AnErrorEventWithoutAStatusIsAnErrorToo) {
  begin();
  send({{EventType::kError, pod("a/x", 11)}});
  EXPECT_EQ(source_->open_watchers(), 0u) << "the watch is closed";
  EXPECT_EQ(errors_.size(), 1u);
  EXPECT_EQ(reflector_->last_sync_resource_version(), "10");
  ASSERT_TRUE(back_off());
  EXPECT_EQ(last_list().resource_version, "10");
}

TEST_F(ReflectorTest, AServerThatDoesNotAnswerIsAskedForTheSameWatch) {
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

TEST_F(ReflectorTest, KnowsWhetherTheStoreFollowsTheServer) {
  start(store_);
  EXPECT_FALSE(reflector_->live()) << "there is no list yet";
  list({{}, "10"});
  EXPECT_TRUE(reflector_->live());
  open_watch();
  // A watch that ends in good order is followed by the next one.
  advance(5s);
  source_->close_watch();
  settle();
  EXPECT_TRUE(reflector_->live());
  open_watch();
  // The connection breaks, and the server does not answer for a while.
  advance(5s);
  fail_watch(transport_error(Kind::kBroken));
  EXPECT_FALSE(reflector_->live());
  source_->watch_throws(transport_error(Kind::kRefused));
  settle();
  ASSERT_TRUE(back_off());
  EXPECT_FALSE(reflector_->live());
  open_watch();
  EXPECT_TRUE(reflector_->live());
  // The server has forgotten: what is there is stale until there is a new list.
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

TEST_F(ReflectorTest, AServerThatIsBusyIsAskedForTheSameWatch) {
  begin();
  // As an event,
  send({{EventType::kAdded, pod("a/x", 11)},
        {EventType::kError, StatusError::too_many_requests("slow down", 1).status().to_object()}});
  EXPECT_EQ(watches(), 1u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(watches(), 2u);
  EXPECT_EQ(last_watch().resource_version, "11");
  // and as an answer.
  source_->watch_throws(StatusError::too_many_requests("slow down", 1));
  settle();
  EXPECT_EQ(watches(), 2u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(watches(), 3u);
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(ReflectorTest, WaitsAsLongAsTheServerAsks) {
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
  expect_wait(2min);  // within reason
  source_->watch_throws(StatusError::server_timeout("", "pods", "watch", 66));
  settle();
  expect_wait(66s);
}

TEST_F(ReflectorTest, InternalErrorsLeadToTheSameWatchForAWhile) {
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
  // In the end there is a new state, and the patience is as it was.
  list({{}, "20"});
  open_watch();
  advance(2min);
  fail_watch(StatusError::internal_error("etcdserver: no leader"));
  back_off();
  EXPECT_EQ(lists(), 2u);
  EXPECT_EQ(last_watch().resource_version, "20");
}

TEST_F(ReflectorTest, OtherRefusalsOfAWatchMakeANewList) {
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

TEST_F(ReflectorTest, InitialEventsInNoOrderDoNotMoveIt) {
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

TEST_F(ReflectorTest, AStoreThatThrowsCostsANewList) {
  begin();
  store_.throw_once();
  send({{EventType::kAdded, pod("a/x", 11)}});
  EXPECT_THAT(errors_, ElementsAre("the store is full"));
  ASSERT_TRUE(back_off());
  list({{pod("a/x", 11)}, "11"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@11"));
}

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

TEST_F(ReflectorTest, BeginsAnewAfterTwoQuietMinutes) {
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

TEST_F(ReflectorTest, ListAndWatchShareTheBackOff) {
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

/// A server that restarts refuses connections for seconds. It does not notice how often it is
/// asked, and what else has failed before has nothing to do with it.
TEST_F(ReflectorTest, ARefusedConnectionIsTriedAgainSoonHoweverOften) {
  options_.backoff.jitter = 0;
  begin();
  bookmark("11");
  for (int restart = 0; restart < 4; ++restart) {
    advance(5s);
    source_->break_watch(transport_error(Kind::kBroken));
    settle();
    for (int i = 0; i < 10; ++i) {
      source_->watch_throws(transport_error(Kind::kRefused));
      settle();
      EXPECT_EQ(clock_->next_wake(), 800ms);
      back_off();
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
    settle();
    EXPECT_EQ(clock_->next_wake(), 800ms);
    back_off();
  }
}

/// A server whose versions begin anew.
TEST_F(ReflectorTest, AVersionOfTheFutureLeadsToTheNewestState) {
  const auto too_large = [] { return StatusError::too_large_resource_version(10, 3, 1); };
  begin({pod("a/x", 10)});
  // As an event, as the answer to a watch, as that to a list.
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

TEST_F(ReflectorResyncTest, DeliversTheStoreAgainFromTimeToTime) {
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

TEST_F(ReflectorResyncTest, NotBeforeThereIsAList) {
  start(store_);
  advance(10min);
  advance(10min);
  EXPECT_THAT(store_.told(), IsEmpty());
}

TEST_F(ReflectorResyncTest, AsksWhetherItIsWanted) {
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

TEST_F(ReflectorResyncTest, AFailureIsReportedAndTheNextOneComes) {
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
// (TearDown() stops the reflector wherever a test has left it; here are the places.)

TEST_F(ReflectorTest, StopsBeforeItBegins) {
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
  settle();
  EXPECT_EQ(clock_->sleepers(), 1u);
  expect_stop();
  EXPECT_EQ(lists(), 1u);
}
TEST_F(ReflectorTest, StopsInTheBackOffOfAWatch) {
  begin();
  bookmark("11");
  source_->close_watch();
  source_->watch_throws(transport_error(Kind::kRefused));
  settle();
  EXPECT_EQ(clock_->sleepers(), 1u);
  expect_stop();
  EXPECT_EQ(watches(), 2u);
}
TEST_F(ReflectorResyncTest, StopsWithItsResync) {
  begin();
  EXPECT_EQ(clock_->sleepers(), 1u);
  expect_stop();
}
TEST_F(ReflectorTest, StopsWhenAHandlerSaysSo) {
  options_.watch_error_handler = [this](std::string_view, const std::exception&) {
    stop_.request_stop();
  };
  start(store_);
  source_->list_throws(transport_error(Kind::kRefused));
  settle();
  EXPECT_TRUE(done_);
}
TEST_F(ReflectorResyncTest, LeavesNothingBehind) {
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

TEST_F(ReflectorTest, WhatIsThrownNeedNotBeAnException) {
  start(store_);
  source_->list_throws(7);
  settle();
  EXPECT_EQ(errors_.size(), 1u);
  ASSERT_TRUE(back_off());
  EXPECT_EQ(lists(), 2u);
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

TEST_F(ReflectorTest, KnowsWhenTheServerWasLastHeardOf) {
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
