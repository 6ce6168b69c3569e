// Lists of a reflector: versions, pages, unreadable items.
#include "lookout/tools/cache/reflector.h"

#include <gtest/gtest.h>

#include "lookout/api/status.h"
#include "lookout/tools/cache/controller.h"
#include "tests/support/matchers.h"
#include "tests/tools/cache/reflector_fixture.h"

namespace lookout::cache {
namespace {

StatusError too_large() { return StatusError::too_large_resource_version(20, 10, 1); }
/// The same error as servers 1.17 and 1.18 report it,
StatusError too_large_1_18() {
  api::Status status = StatusError::timeout("not now", 1).status();
  status.causes.push_back({"", "Too large resource version", ""});
  return StatusError(std::move(status));
}
/// and as older ones do.
StatusError too_large_1_16() { return StatusError::timeout("Too large resource version", 1); }

TEST_F(ReflectorTest, BeginsWithAListFromTheWatchCache) {
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

TEST_F(ReflectorTest, BeginsWithTheNewestStateIfConfigured) {
  options_.newest_first_list = true;
  begin();
  EXPECT_EQ(last_list().resource_version, "");
  EXPECT_EQ(last_list().limit, 500);
  send({{EventType::kAdded, pod("a/x", 11)}});
  fail_watch(StatusError::internal_error("oops"));
  ASSERT_TRUE(back_off());
  ASSERT_EQ(lists(), 2u);
  EXPECT_EQ(last_list().resource_version, "11") << "no older than what it has is enough";
}

TEST_F(ReflectorTest, RelistsFromTheLastVersion) {
  begin();
  send({{EventType::kAdded, pod("a/x", 11)}});
  fail_watch(StatusError::internal_error("oops"));
  ASSERT_TRUE(back_off());
  ASSERT_EQ(lists(), 2u);
  EXPECT_EQ(last_list().resource_version, "11");
  EXPECT_EQ(last_list().limit, 0) << "pages would make the server ask its storage";
}

TEST_F(ReflectorTest, AFailedListIsRetriedWithTheSameVersion) {
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

TEST_P(ReflectorUnavailableTest, ListsTheNewestStateIfItsVersionIsUnavailable) {
  begin();
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  source_->list_throws(GetParam().error, {pod("a/half")});
  settle();
  // At once, and from etcd.
  ASSERT_EQ(lists(), 3u);
  EXPECT_EQ(last_list().resource_version, "");
  EXPECT_EQ(last_list().limit, 500);
  EXPECT_EQ(clock_->sleepers(), 0u);
  list({{pod("a/x", 30)}, "30"});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@30"));
  EXPECT_EQ(last_watch().resource_version, "30");

  // Later lists are the usual ones.
  expect_list_after_a_failed_watch("30", 0);
}

TEST_P(ReflectorUnavailableTest, RetriesTheListOfTheNewestState) {
  start(store_);
  source_->list_throws(GetParam().error);
  source_->list_throws(GetParam().error);
  settle();
  EXPECT_EQ(lists(), 2u);
  expect_relist("");
}

INSTANTIATE_TEST_SUITE_P(, ReflectorUnavailableTest,
                         testing::Values(Unavailable{"Expired", StatusError::expired("too old")},
                                         Unavailable{"Gone", StatusError::gone("too old")},
                                         Unavailable{"TooLarge", too_large()},
                                         Unavailable{"TooLarge1_18", too_large_1_18()},
                                         Unavailable{"TooLarge1_16", too_large_1_16()}),
                         [](const auto& test) { return test.param.name; });

TEST_F(ReflectorTest, IsLiveBeforeHandlersReceiveTheList) {
  std::vector<std::string> live;
  store_.on_told = [&] { live.emplace_back(reflector_->live() ? "live" : "not yet"); };
  start(store_);
  list({{pod("a/x")}, "10"});
  // The list is taken, then handed on.
  EXPECT_THAT(live, ElementsAre("not yet", "live"));
}

TEST_F(ReflectorTest, MeasuresListsAndWatches) {
  start(store_);
  advance(2s);
  list({{pod("a/x"), pod("a/y")}, "10"});
  EXPECT_EQ(reflector_->stats().list_seconds.sum(), 2.0);
  open_watch();
  bookmark("11");
  advance(5s);
  source_->close_watch();
  settle();
  EXPECT_EQ(reflector_->stats().watch_seconds.sum(), 5.0);
  EXPECT_EQ(reflector_->stats().watch_items.sum(), 1.0);
}

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

TEST_F(ReflectorTest, KeepsPagingIfTheWatchCachePages) {
  start(store_);
  list({{pod("a/x")}, "10", "page-2"});
  list({{pod("a/y")}, "10"});
  expect_list_after_a_failed_watch("10", 500);
}

TEST_F(ReflectorTest, DoesNotKeepPagingAfterAListFromEtcd) {
  begin();
  fail_watch(StatusError::internal_error("oops"));
  back_off();
  source_->list_throws(StatusError::expired("too old"));
  list({{pod("a/x")}, "20", "page-2"});
  list({{pod("a/y")}, "20"});
  expect_list_after_a_failed_watch("20", 0);
}

TEST_F(ReflectorTest, AnExpiredPageLeadsToAFullList) {
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
  list_after_a_failed_watch();
  EXPECT_EQ(last_list().limit, 500) << "pages were made of version 0";
}

TEST_F(ReflectorTest, AFullListThatExpiresTooLeadsToTheNewestState) {
  start(store_);
  list({{pod("a/x")}, "10", "page-2"});
  for (int i = 0; i < 2; ++i) source_->list_throws(StatusError::expired("too old"));
  settle();
  ASSERT_EQ(lists(), 4u);
  EXPECT_EQ(last_list().resource_version, "");
  source_->list_throws(StatusError::expired("too old"));
  settle();
  EXPECT_EQ(lists(), 4u);
  EXPECT_EQ(errors_.size(), 1u);
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

TEST_F(ReflectorTest, AlwaysPagesIfConfigured) {
  options_.page_size = 7;
  start(store_);
  EXPECT_EQ(last_list().limit, 7);
  list({{pod("a/x")}, "10"});
  expect_list_after_a_failed_watch("10", 7);
}

TEST_F(ReflectorTest, IgnoresListedObjectsOfOtherKinds) {
  start(store_);
  list({{pod("a/x"), object_of_kind("v1", "Node", "a/node"), object_of_kind("v2", "Pod", "a/v2"),
         pod("a/"), pod("a/y")},
        "10",
        "",
        3});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@1"));
  EXPECT_EQ(reflector_->stats().skipped, 6u) << "three malformed, three that do not fit";
}

TEST_F(ReflectorTest, AcceptsEveryKindIfNoneIsExpected) {
  options_.expected_kind.clear();
  begin({object_of_kind("v1", "Node", "n")});
  EXPECT_THAT(store_.contents(), ElementsAre("n@1"));
}

TEST_F(ReflectorTest, RejectsATableInPlaceOfAList) {
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

TEST_F(ReflectorTest, RejectsATableInPlaceOfAnObject) {
  options_.expected_kind.clear();
  begin();
  send({{EventType::kAdded, object_of_kind("meta.k8s.io/v1", "Table", "a/x", "11")},
        {EventType::kAdded, pod("a/y", 12)}});
  EXPECT_THAT(store_.contents(), ElementsAre("a/y@12"));
}

TEST_F(ReflectorTest, DescribesItsResource) {
  options_.expected_api_version = "apps/v1";
  options_.expected_kind = "Deployment";
  EXPECT_EQ(Reflector::create(source_, store_, options_)->type_description(),
            "apps/v1, Kind=Deployment");
  options_.type_description = "my things";
  EXPECT_EQ(Reflector::create(source_, store_, options_)->type_description(), "my things");
  EXPECT_EQ(Reflector::create(source_, store_, {})->type_description(), "<unspecified>");
}

TEST_F(ReflectorTest, AnUnchangedListCostsNoMemory) {
  Indexer store;
  Controller controller(store, {}, [](const std::vector<Notification>&) {});
  start(controller);
  const auto same = pod("a/same", 1);
  list({{same, pod("a/changed", 1)}, "10"});
  list_after_a_failed_watch();
  list({{pod("a/same", 1), pod("a/changed", 2)}, "20"});
  EXPECT_TRUE(store.get("a", "same").same(same));
  EXPECT_EQ(store.get("a", "changed").resource_version(), "2");
}

}  // namespace
}  // namespace lookout::cache
