// The state as the first events of a watch.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>

#include "lookout/api/status.h"
#include "lookout/tools/cache/controller.h"
#include "tests/support/matchers.h"
#include "tests/tools/cache/reflector_fixture.h"
#include "tools/cache/initial_events.h"

namespace lookout::cache {
namespace {

using Events = std::vector<api::WatchEvent>;

api::WatchEvent bookmark_with(std::string_view resource_version, std::string_view annotation) {
  return {
      EventType::kBookmark,
      api::Object::parse(
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"k8s.io/initial-events-end":")" +
          std::string(annotation) + R"("},"resourceVersion":")" + std::string(resource_version) +
          R"("}})")};
}
api::WatchEvent end_of_initial_events(std::string_view resource_version) {
  return bookmark_with(resource_version, "true");
}

class ReflectorWatchListTest : public ReflectorTest {
 protected:
  ReflectorWatchListTest() { source_->support_watch_list(); }

  /// Starts with an open watch without events.
  void open() {
    start(store_);
    open_watch();
  }
  /// Starts with this state.
  void stream(Events events, const std::string& resource_version = "10") {
    events.push_back(end_of_initial_events(resource_version));
    open();
    send(std::move(events));
    store_.told();
  }
  bool asks_for_stream() const {
    return last_watch().send_initial_events == true &&
           last_watch().resource_version_match == "NotOlderThan" &&
           last_watch().allow_watch_bookmarks;
  }
};

TEST_F(ReflectorWatchListTest, RequestsAWatchListOfTheNewestState) {
  start(store_);
  ASSERT_EQ(watches(), 1u);
  EXPECT_EQ(lists(), 0u);
  EXPECT_TRUE(asks_for_stream());
  EXPECT_EQ(last_watch().resource_version, "");
  EXPECT_EQ(last_watch().limit, 0);
  EXPECT_THAT(last_watch().timeout, AllOf(Ge(300s), Le(600s)));
}

TEST_F(ReflectorWatchListTest, AnIncompleteStateIsNotStored) {
  open();
  send({{EventType::kAdded, pod("a/x", 1)}, {EventType::kAdded, pod("a/y", 2)}});
  EXPECT_THAT(store_.told(), IsEmpty());
  EXPECT_EQ(reflector_->last_sync_resource_version(), "");
  send({end_of_initial_events("10")});
  EXPECT_THAT(store_.told(), ElementsAre("replace @10", "flush @10"));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@2"));
  EXPECT_EQ(reflector_->last_sync_resource_version(), "10");
  EXPECT_EQ(reflector_->stats().streamed_lists, 1u);
  EXPECT_EQ(reflector_->stats().list_items.sum(), 2.0);
}

TEST_F(ReflectorWatchListTest, TheSameWatchContinuesAfterTheInitialEvents) {
  stream({{EventType::kAdded, pod("a/x", 1)}});
  send({{EventType::kModified, pod("a/x", 11)}});
  EXPECT_THAT(store_.told(), ElementsAre("update a/x@11", "flush @11"));
  EXPECT_EQ(watches(), 1u);
  EXPECT_EQ(lists(), 0u);
  EXPECT_TRUE(source_->watching());
}

TEST_F(ReflectorWatchListTest, EventsInTheSameBatchAsTheEndAreApplied) {
  open();
  send({{EventType::kAdded, pod("a/x", 1)},
        end_of_initial_events("10"),
        {EventType::kModified, pod("a/x", 11)},
        {EventType::kAdded, pod("a/y", 12)}});
  EXPECT_THAT(store_.told(),
              ElementsAre("replace @10", "flush @10", "update a/x@11", "add a/y@12", "flush @12"));
  EXPECT_EQ(reflector_->last_sync_resource_version(), "12");
}

TEST_F(ReflectorWatchListTest, AnErrorInTheSameBatchAsTheEndIsReported) {
  open();
  send({end_of_initial_events("10"),
        {EventType::kError, StatusError::expired("too old").status().to_object()}});
  EXPECT_EQ(errors_.size(), 1u);
  EXPECT_EQ(reflector_->last_sync_resource_version(), "10");
}

TEST_F(ReflectorWatchListTest, ChangesDuringTheInitialEventsAreApplied) {
  open();
  send({{EventType::kAdded, pod("a/x", 1)},
        {EventType::kAdded, pod("a/y", 2)},
        {EventType::kModified, pod("a/x", 3)},
        {EventType::kAdded, pod("a/z", 4)},
        {EventType::kDeleted, pod("a/z", 5)},
        {EventType::kDeleted, pod("a/unknown", 6)},
        {EventType::kAdded, pod("a/w", 7)},
        {EventType::kDeleted, pod("a/w", 8)},
        {EventType::kAdded, pod("a/w", 9)},
        end_of_initial_events("9")});
  EXPECT_THAT(store_.contents(), ElementsAre("a/w@9", "a/x@3", "a/y@2"));
  EXPECT_THAT(store_.told(), ElementsAre("replace @9", "flush @9"));
}

TEST_F(ReflectorWatchListTest, EventsAfterAStreamAdvanceTheVersion) {
  start(store_);
  source_->watch_throws(StatusError::bad_request("no"));
  settle();
  // A list without a version: the events of the next watch are in no order.
  list({{}, ""});
  open_watch();
  fail_watch(StatusError::expired("too old"));
  ASSERT_TRUE(back_off());
  ASSERT_TRUE(asks_for_stream());
  open_watch();
  send({end_of_initial_events("10")});
  send({{EventType::kAdded, pod("a/x", 11)}});
  EXPECT_EQ(reflector_->last_sync_resource_version(), "11");
}

TEST_F(ReflectorWatchListTest, InitialEventsAreServerActivity) {
  open();
  for (int i = 0; i < 2; ++i) {
    advance(1s);
    EXPECT_LT(reflector_->last_activity(), clock_->now());
    send({{EventType::kAdded, pod("a/x", 1)}});
    EXPECT_EQ(reflector_->last_activity(), clock_->now());
  }
}

TEST_F(ReflectorWatchListTest, TheInitialStateMayBeEmpty) {
  stream({});
  EXPECT_THAT(store_.contents(), IsEmpty());
  EXPECT_EQ(reflector_->last_sync_resource_version(), "10");
  EXPECT_TRUE(source_->watching());
}

TEST_F(ReflectorWatchListTest, OtherBookmarksDoNotEndTheInitialEvents) {
  open();
  send({{EventType::kAdded, pod("a/x", 1)}, bookmark_with("10", "false")});
  bookmark("11");
  EXPECT_THAT(store_.told(), IsEmpty());
  EXPECT_EQ(reflector_->last_sync_resource_version(), "");
}

TEST_F(ReflectorWatchListTest, IgnoresObjectsOfOtherKinds) {
  stream({{EventType::kAdded, pod("a/x", 1)},
          {EventType::kAdded, object_of_kind("v1", "Node", "a/node")},
          {EventType::kAdded, pod("a/", 3)}});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1"));
  EXPECT_EQ(reflector_->stats().skipped, 2u);
}

TEST_F(ReflectorWatchListTest, AnEndedWatchContinuesWithoutInitialEvents) {
  stream({{EventType::kAdded, pod("a/x", 1)}});
  send({{EventType::kAdded, pod("a/y", 11)}});
  source_->close_watch();
  settle();
  ASSERT_EQ(watches(), 2u);
  EXPECT_FALSE(last_watch().send_initial_events);
  EXPECT_EQ(last_watch().resource_version_match, "");
  EXPECT_EQ(last_watch().resource_version, "11");
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(ReflectorWatchListTest, AfterAnErrorRequestsAStateNotOlderThanItsOwn) {
  stream({{EventType::kAdded, pod("a/x", 1)}});
  fail_watch(StatusError::expired("too old"));
  EXPECT_EQ(errors_.size(), 1u);
  ASSERT_TRUE(back_off());
  ASSERT_EQ(watches(), 2u);
  EXPECT_TRUE(asks_for_stream());
  EXPECT_EQ(last_watch().resource_version, "10");
  open_watch();
  send({{EventType::kAdded, pod("a/y", 15)}, end_of_initial_events("20")});
  EXPECT_THAT(store_.contents(), ElementsAre("a/y@15"));
}

TEST_F(ReflectorWatchListTest, UnchangedInitialEventsCostNoMemory) {
  Indexer store;
  Controller controller(store, {}, [](const std::vector<Notification>&) {});
  start(controller);
  open_watch();
  const auto same = pod("a/same", 1);
  send({{EventType::kAdded, same}, end_of_initial_events("10")});
  fail_watch(StatusError::expired("too old"));
  back_off();
  open_watch();
  send({{EventType::kAdded, pod("a/same", 1)},
        {EventType::kAdded, pod("a/new", 2)},
        end_of_initial_events("20")});
  EXPECT_TRUE(store.get("a", "same").same(same));
  EXPECT_EQ(store.size(), 2u);
}

TEST_F(ReflectorWatchListTest, TransformsEachInitialEventOnce) {
  Indexer store;
  Controller controller(
      store,
      [](const api::Object& object) {
        return pod(object.key(), std::string(object.resource_version()) + "0");
      },
      [](const std::vector<Notification>&) {});
  start(controller);
  open_watch();
  send({{EventType::kAdded, pod("a/x", 1)},
        {EventType::kModified, pod("a/x", 2)},
        end_of_initial_events("10"),
        {EventType::kAdded, pod("a/y", 3)}});
  EXPECT_EQ(store.get("a", "x").resource_version(), "20");
  EXPECT_EQ(store.get("a", "y").resource_version(), "30");
}

// ------------------------------------------------------------------------------ falling back

class ReflectorRefusedTest : public ReflectorWatchListTest,
                             public testing::WithParamInterface<Refusal> {};

TEST_P(ReflectorRefusedTest, ARefusedWatchListIsReplacedByAList) {
  start(store_);
  source_->watch_throws(GetParam().error);
  settle();
  ASSERT_EQ(lists(), 1u) << "at once";
  EXPECT_EQ(last_list().resource_version, "0");
  EXPECT_EQ(last_list().limit, 500);
  EXPECT_THAT(errors_, IsEmpty());
  list({{pod("a/x", 1)}, "10"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1"));
  ASSERT_EQ(watches(), 2u);
  EXPECT_FALSE(last_watch().send_initial_events);
  EXPECT_EQ(last_watch().resource_version, "10");
  EXPECT_EQ(reflector_->stats().streamed_lists, 0u);
}

TEST_P(ReflectorRefusedTest, ARefusalAsAnEventIsReplacedByAList) {
  open();
  send({{EventType::kAdded, pod("a/half", 1)},
        {EventType::kError, GetParam().error.status().to_object()}});
  ASSERT_EQ(lists(), 1u);
  list({{pod("a/x", 1)}, "10"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1")) << "nothing is left of half a stream";
  EXPECT_FALSE(last_watch().send_initial_events);
}

INSTANTIATE_TEST_SUITE_P(
    , ReflectorRefusedTest,
    testing::Values(Refusal{"Invalid", StatusError::invalid("meta.k8s.io", "ListOptions", "", {})},
                    Refusal{"BadRequest", StatusError::bad_request("no")},
                    Refusal{"Forbidden", StatusError::forbidden("", "pods", "", "watch")},
                    Refusal{"InternalError", StatusError::internal_error("oops")}),
    [](const auto& test) { return test.param.name; });

TEST_F(ReflectorWatchListTest, AnyOtherErrorIsReplacedByAList) {
  start(store_);
  source_->watch_throws(std::runtime_error("what?"));
  settle();
  EXPECT_EQ(lists(), 1u);
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(ReflectorWatchListTest, ASourceWithoutWatchListsIsListed) {
  const auto cannot = std::make_shared<test::FakeListerWatcher>();
  const auto reflector = Reflector::create(cannot, store_, options_);
  boost::asio::co_spawn(boost::asio::make_strand(context_), reflector->run(stop_.get_token()),
                        boost::asio::detached);
  settle();
  EXPECT_EQ(cannot->lists().size(), 1u);
  EXPECT_EQ(cannot->watches().size(), 0u);
  stop_.request_stop();
  settle();
}

TEST_F(ReflectorWatchListTest, CanBeTurnedOff) {
  options_.use_watch_list = false;
  start(store_);
  EXPECT_EQ(lists(), 1u);
  EXPECT_EQ(watches(), 0u);
}

class ReflectorStreamUnavailableTest : public ReflectorWatchListTest,
                                       public testing::WithParamInterface<Refusal> {};

TEST_P(ReflectorStreamUnavailableTest, RequestsTheNewestStateIfItsVersionIsUnavailable) {
  stream({{EventType::kAdded, pod("a/x", 1)}});
  fail_watch(StatusError::expired("too old"));
  back_off();
  EXPECT_EQ(last_watch().resource_version, "10");
  source_->watch_throws(GetParam().error);
  settle();
  ASSERT_EQ(watches(), 3u) << "at once";
  EXPECT_TRUE(asks_for_stream());
  EXPECT_EQ(last_watch().resource_version, "");
  // The same in the middle of a stream, but not forever.
  open_watch();
  send({{EventType::kAdded, pod("a/half", 1)},
        {EventType::kError, GetParam().error.status().to_object()}});
  EXPECT_EQ(lists(), 1u);
  EXPECT_EQ(last_list().resource_version, "");
  list({{pod("a/y", 5)}, "20"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/y@5"));
  // The next request is the usual one.
  open_watch();
  fail_watch(StatusError::expired("too old"));
  back_off();
  EXPECT_TRUE(asks_for_stream());
  EXPECT_EQ(last_watch().resource_version, "20");
}

INSTANTIATE_TEST_SUITE_P(
    , ReflectorStreamUnavailableTest,
    testing::Values(Refusal{"Expired", StatusError::expired("too old")},
                    Refusal{"Gone", StatusError::gone("too old")},
                    Refusal{"TooLarge", StatusError::too_large_resource_version(20, 10, 1)}),
    [](const auto& test) { return test.param.name; });

TEST_F(ReflectorWatchListTest, ATruncatedStreamIsRetriedOnce) {
  open();
  send({{EventType::kAdded, pod("a/x", 1)}});
  source_->close_watch();
  settle();
  ASSERT_EQ(watches(), 2u);
  EXPECT_TRUE(asks_for_stream());
  EXPECT_EQ(lists(), 0u);
  open_watch();
  send({{EventType::kAdded, pod("a/y", 2)}, end_of_initial_events("10")});
  EXPECT_THAT(store_.contents(), ElementsAre("a/y@2")) << "nothing is left of half a stream";
}

TEST_F(ReflectorWatchListTest, AStreamThatIsTruncatedAgainIsReplacedByAList) {
  open();
  send({{EventType::kAdded, pod("a/x", 1)}});
  source_->close_watch();
  open_watch();
  send({{EventType::kAdded, pod("a/x", 1)}});
  source_->close_watch();
  settle();
  EXPECT_EQ(watches(), 2u);
  EXPECT_EQ(lists(), 1u);
}

TEST_F(ReflectorWatchListTest, AnEmptyStreamIsReplacedByAList) {
  open();
  source_->close_watch();
  settle();
  EXPECT_EQ(watches(), 1u);
  EXPECT_EQ(lists(), 1u);
}

// ----------------------------------------------------------------------------------- failures

TEST_F(ReflectorWatchListTest, ABusyOrUnreachableServerIsRetried) {
  start(store_);
  for (std::size_t i = 1; i < 4; ++i) {
    if (i == 1) {
      source_->watch_throws(StatusError::too_many_requests("slow down", 1));
    } else if (i == 2) {
      source_->watch_throws(StatusError::server_timeout("", "pods", "watch", 1));
    } else {
      source_->watch_throws(transport_error(Kind::kRefused));
    }
    settle();
    EXPECT_EQ(errors_.size(), i) << "somebody may want to know";
    EXPECT_EQ(watches(), i) << "not without a pause";
    ASSERT_TRUE(back_off());
    EXPECT_TRUE(asks_for_stream());
  }
  EXPECT_EQ(lists(), 0u);
}

TEST_F(ReflectorWatchListTest, ABrokenStreamDoesNotReplaceTheStore) {
  stream({{EventType::kAdded, pod("a/x", 1)}});
  fail_watch(StatusError::expired("too old"));
  back_off();
  open_watch();
  send({{EventType::kAdded, pod("a/y", 2)}});
  fail_watch(transport_error(Kind::kBroken));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1"));
  EXPECT_THAT(store_.told(), IsEmpty());
  ASSERT_TRUE(back_off());
  EXPECT_TRUE(asks_for_stream());
}

TEST_F(ReflectorWatchListTest, StopsInAStream) {
  open();
  send({{EventType::kAdded, pod("a/x", 1)}});
  expect_stop();
  EXPECT_EQ(lists(), 0u);
  EXPECT_THAT(store_.told(), IsEmpty());
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(ReflectorWatchListTest, StopsWhileAStreamOpens) {
  start(store_);
  expect_stop();
  EXPECT_EQ(lists(), 0u);
  EXPECT_THAT(errors_, IsEmpty());
}

// ---------------------------------------------------------------------------- a missing end

TEST_F(ReflectorWatchListTest, ASilentStreamIsReported) {
  open();
  const auto& late = reflector_->stats().late_initial_events;
  advance(10s - 1ns);
  EXPECT_EQ(late, 0u);
  advance(1ns);
  EXPECT_EQ(late, 1u);
  advance(5s);
  send({{EventType::kAdded, pod("a/x", 1)}});
  advance(5s);
  EXPECT_EQ(late, 1u) << "something came five seconds ago";
  advance(5s);
  EXPECT_EQ(late, 2u);
  send({end_of_initial_events("10")});
  advance(1h);
  EXPECT_EQ(late, 2u);
  EXPECT_EQ(clock_->sleepers(), 0u);
}

TEST(InitialEventsWarningTest, NamesTheWaitingTime) {
  const Clock::TimePoint begin{1h};
  EXPECT_EQ(initial_events_warning("pods", begin, {}, begin + 12s),
            "pods: waits for the initial events of a stream, nothing has come for 12 s");
  EXPECT_EQ(initial_events_warning("pods", begin, begin + 5s, begin + 15s),
            "pods: waits for the end of the initial events of a stream, the last event came 10 s "
            "ago");
}

// -------------------------------------------------------------------------------- consistency

class ReflectorConsistencyTest : public ReflectorWatchListTest {
 protected:
  ReflectorConsistencyTest() { options_.check_consistency = true; }
  void compare(test::FakeListerWatcher::Page page) {
    stream({{EventType::kAdded, pod("a/x", 1)}, {EventType::kAdded, pod("a/y", 2)}});
    ASSERT_EQ(lists(), 1u);
    EXPECT_EQ(last_list().resource_version, "10");
    EXPECT_EQ(last_list().resource_version_match, "Exact");
    list(std::move(page));
    EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@2")) << "it goes on in any case";
    EXPECT_TRUE(source_->watching());
  }
};

TEST_F(ReflectorConsistencyTest, AStreamThatEqualsTheListIsConsistent) {
  compare({{pod("a/y", 2), pod("a/x", 1)}, "10"});
  EXPECT_THAT(errors_, IsEmpty());
}
TEST_F(ReflectorConsistencyTest, AnObjectMissingFromTheStreamIsReported) {
  compare({{pod("a/y", 2), pod("a/x", 1), pod("a/z", 3)}, "10"});
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("a/z was not streamed")));
}
TEST_F(ReflectorConsistencyTest, AnObjectMissingFromTheListIsReported) {
  compare({{pod("a/y", 2)}, "10"});
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("a/x was streamed, but is not in the list")));
  EXPECT_EQ(reflector_->stats().inconsistencies, 1u);
}
TEST_F(ReflectorConsistencyTest, DifferentContentIsReported) {
  compare({{pod("a/y", 2), pod("a/x", 3)}, "10"});
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("a/x was streamed with other content")));
}
TEST_F(ReflectorConsistencyTest, ObjectsThatTheStoreDropsAreNotCompared) {
  // Like a transform that always fails for one pod, and for another one only in its newest version.
  store_.keeps = [](const api::Object& object) {
    return object.name() != "z" && object.resource_version() != "3";
  };
  stream({{EventType::kAdded, pod("a/x", 1)},
          {EventType::kAdded, pod("a/z", 2)},
          {EventType::kModified, pod("a/x", 3)}});
  list({{pod("a/x", 3), pod("a/z", 2)}, "10"});
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(reflector_->stats().inconsistencies, 0u);
}
TEST_F(ReflectorConsistencyTest, AFailedListReportsNoInconsistency) {
  stream({{EventType::kAdded, pod("a/x", 1)}});
  source_->list_throws(StatusError::expired("too old"));
  settle();
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1"));
}
TEST_F(ReflectorConsistencyTest, ConsistencyIsNotCheckedByDefault) {
  options_.check_consistency = false;
  stream({});
  EXPECT_EQ(lists(), 0u);
}

}  // namespace
}  // namespace lookout::cache
