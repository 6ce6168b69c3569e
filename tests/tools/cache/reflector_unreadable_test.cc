// An unreadable object must not look like an absent one.
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "tests/support/matchers.h"
#include "tests/tools/cache/reflector_fixture.h"

namespace lookout::cache::test {
namespace {

using namespace std::chrono_literals;
using api::EventType;

class ReflectorUnreadableTest : public ReflectorTest {
 protected:
  ReflectorUnreadableTest() { options_.backoff.jitter = 0; }

  static FakeListerWatcher::Page page(std::vector<api::Object> items, std::size_t malformed = 0,
                                      std::vector<std::string> keys = {}) {
    FakeListerWatcher::Page out;
    out.items = std::move(items);
    out.resource_version = "20";
    out.malformed_items = malformed;
    out.malformed_keys = std::move(keys);
    return out;
  }
  /// The store has a/x, a/y and a/z, and the reflector lists again.
  void begin_and_list() {
    begin({pod("a/x"), pod("a/y"), pod("a/z")});
    fail_watch(api::StatusError::expired("too old"));
    ASSERT_TRUE(back_off());
    errors_.clear();
    store_.told();
  }
};

TEST_F(ReflectorUnreadableTest, KeepsLastKnownState) {
  begin_and_list();
  list(page({pod("a/y", 12)}, 1, {"a/x"}));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@12")) << "a/z is gone, a/x is not";
  EXPECT_FALSE(reflector_->live());
  EXPECT_EQ(reflector_->stats().unreadable, 1u);
  EXPECT_EQ(reflector_->stats().skipped, 1u);
  EXPECT_THAT(errors_,
              ElementsAre(AllOf(HasSubstr("1 of the server's objects"), HasSubstr("a/x"))));
}

TEST_F(ReflectorUnreadableTest, AnUnreadableItemWithoutANameKeepsAllObjects) {
  begin_and_list();
  list(page({pod("a/y", 12)}, 2, {"a/x"}));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@12", "a/z@1"));
  EXPECT_EQ(reflector_->stats().unreadable, 2u);
}

TEST_F(ReflectorUnreadableTest, ReportsTheKeysOfUnreadableObjects) {
  const auto keys = [this] {
    const auto known = reflector_->unreadable_keys();
    return known ? std::vector<std::string>(known->begin(), known->end())
                 : std::vector<std::string>{"none"};
  };
  begin_and_list();
  EXPECT_THAT(keys(), ElementsAre("none"));
  list(page({pod("a/y", 12)}, 2, {"a/x", "a/z"}));
  EXPECT_THAT(keys(), UnorderedElementsAre("a/x", "a/z"));
  open_watch();
  send({{EventType::kModified, pod("a/y", 21)}, {EventType::kDeleted, pod("a/x", 22)}});
  EXPECT_THAT(keys(), ElementsAre("a/z"));
  advance(800ms);
  list(page({pod("a/y", 21)}, 1));
  EXPECT_THAT(keys(), ElementsAre("")) << "it may be any object";
  open_watch();
  advance(1600ms);
  list(page({pod("a/y", 21), pod("a/z", 30)}));
  EXPECT_THAT(keys(), ElementsAre("none"));
}

/// While a list replaces the store, readers must still see the unreadable keys of the list before it.
TEST_F(ReflectorUnreadableTest, KeysStayUntilTheStoreHasTheirObjects) {
  begin_and_list();
  list(page({pod("a/y", 12)}, 1, {"a/x"}));
  open_watch();
  std::vector<std::size_t> keys;
  store_.on_told = [&] {
    const auto known = reflector_->unreadable_keys();
    keys.push_back(known ? known->size() : 0);
  };
  advance(800ms);
  list(page({pod("a/x", 13), pod("a/y", 12)}, 1, {"a/z"}));
  store_.on_told = nullptr;
  EXPECT_THAT(keys, ElementsAre(2u, 2u)) << "the replacement and its end";
  EXPECT_EQ(reflector_->unreadable_keys()->size(), 1u);
}

TEST_F(ReflectorUnreadableTest, ItemsOfOtherKindsCountAsUnreadable) {
  begin_and_list();
  list(page({pod("a/y", 12), object_of_kind("v2", "Pod", "a/x")}));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@12"));
  EXPECT_FALSE(reflector_->live());
  ASSERT_TRUE(back_off());
  list(page({pod("a/y", 12), pod("a/")}));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@12")) << "it may be any of them";
}

TEST_F(ReflectorUnreadableTest, UnreadableItemsOfAllPagesAreCounted) {
  begin_and_list();
  auto first = page({pod("a/y", 12)}, 1, {"a/x"});
  first.continue_token = "page-2";
  list(std::move(first));
  list(page({}, 0));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/y@12"));
  EXPECT_EQ(reflector_->stats().unreadable, 1u);
}

TEST_F(ReflectorUnreadableTest, WatchesWhileObjectsAreUnreadable) {
  begin_and_list();
  list(page({pod("a/y", 12)}, 1, {"a/x"}));
  EXPECT_EQ(last_watch().resource_version, "20");
  open_watch();
  send({{EventType::kModified, pod("a/y", 21)}, {EventType::kDeleted, pod("a/x", 22)}});
  EXPECT_THAT(store_.contents(), ElementsAre("a/y@21"));
  EXPECT_FALSE(reflector_->live()) << "until there is a list that can be read";
}

TEST_F(ReflectorUnreadableTest, RelistsUntilEverythingIsReadable) {
  begin_and_list();
  std::size_t listed = lists();
  for (const auto wait : {800ms, 1600ms, 3200ms, 6400ms}) {
    list(page({pod("a/y", 12)}, 1, {"a/x"}));
    open_watch();
    advance(wait - 1ms);
    EXPECT_EQ(lists(), listed);
    advance(1ms);
    EXPECT_EQ(lists(), ++listed);
    EXPECT_EQ(source_->open_watchers(), 0u);
  }
  list(page({pod("a/x", 13), pod("a/y", 12)}));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@13", "a/y@12"));
  EXPECT_TRUE(reflector_->live());
  EXPECT_EQ(reflector_->stats().unreadable, 0u);
  open_watch();
  EXPECT_EQ(clock_->sleepers(), 0u);
  // A later failure starts with the first pause again.
  fail_watch(api::StatusError::expired("too old"));
  ASSERT_TRUE(back_off());
  list(page({pod("a/y", 12)}, 1, {"a/x"}));
  open_watch();
  EXPECT_EQ(clock_->next_wake(), 800ms);
}

TEST_F(ReflectorUnreadableTest, RelistsAtMostEveryFiveMinutes) {
  begin_and_list();
  std::chrono::milliseconds wait = 800ms;
  for (int i = 0; i < 13; ++i) {
    list(page({pod("a/y", 12)}, 1, {"a/x"}));
    open_watch();
    EXPECT_EQ(clock_->next_wake(), wait) << i;
    advance(wait);
    wait = std::min<std::chrono::milliseconds>(2 * wait, 5min);
  }
}

TEST_F(ReflectorUnreadableTest, StopsWhileObjectsAreUnreadable) {
  begin_and_list();
  list(page({pod("a/y", 12)}, 1, {"a/x"}));
  open_watch();
  expect_stop();
}

TEST_F(ReflectorUnreadableTest, UnreadableInitialEventsKeepObjects) {
  source_->support_watch_list();
  start(store_);
  open_watch();
  const auto end = [](std::string_view version) {
    return api::WatchEvent{
        EventType::kBookmark,
        api::Object::parse(std::string(R"({"apiVersion":"v1","kind":"Pod","metadata":)") +
                           R"({"annotations":{"k8s.io/initial-events-end":"true"},)" +
                           R"("resourceVersion":")" + std::string(version) + "\"}}")};
  };
  send({{EventType::kAdded, pod("a/x")}, {EventType::kAdded, pod("a/z")}, end("10")});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1", "a/z@1"));
  fail_watch(api::StatusError::expired("too old"));
  ASSERT_TRUE(back_off());
  open_watch();
  send({{EventType::kAdded, object_of_kind("v2", "Pod", "a/x")}, end("20")});
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1"));
  EXPECT_FALSE(reflector_->live());
}

/// A list may return the object readably; if not, it returns the name.
TEST_F(ReflectorUnreadableTest, AStreamWithAnEventThatCannotBeDecodedIsReplacedByAList) {
  source_->support_watch_list();
  start(store_);
  open_watch();
  fail_watch(api::DecodeError("nested too deeply"));
  ASSERT_EQ(lists(), 1u);
  list(page({pod("a/x")}));
  EXPECT_THAT(store_.contents(), ElementsAre("a/x@1"));
  EXPECT_EQ(reflector_->stats().skipped, 1u);
}

TEST_F(ReflectorUnreadableTest, UndecodableEventCausesRelist) {
  begin({pod("a/x")});
  fail_watch(api::DecodeError("nested too deeply"));
  EXPECT_FALSE(reflector_->live());
  EXPECT_THAT(errors_, ElementsAre("nested too deeply"));
  EXPECT_EQ(reflector_->stats().skipped, 1u) << "it is counted";
  ASSERT_TRUE(back_off());
  list(page({}));
  EXPECT_THAT(store_.contents(), IsEmpty()) << "it was its deletion";
}

/// With `run() || timer`, nothing waits for the tasks that run beside run().
TEST_F(ReflectorUnreadableTest, AsioCancellationEndsResyncAndRelist) {
  options_.resync_period = 10min;
  options_.clock = clock_;
  reflector_ = Reflector::create(source_, store_, options_);
  boost::asio::cancellation_signal cancel;
  boost::asio::co_spawn(boost::asio::make_strand(context_), reflector_->run(stop_.get_token()),
                        boost::asio::bind_cancellation_slot(
                            cancel.slot(), [this](std::exception_ptr) { done_ = true; }));
  settle();
  list(page({pod("a/y", 12)}, 1, {"a/x"}));
  open_watch();
  ASSERT_EQ(clock_->sleepers(), 2u) << "the resync and the next list";
  cancel.emit(boost::asio::cancellation_type::terminal);
  settle();
  EXPECT_TRUE(done_);
  EXPECT_EQ(clock_->sleepers(), 0u);
  store_.told();
  advance(1h);
  EXPECT_THAT(store_.told(), IsEmpty());
}

}  // namespace
}  // namespace lookout::cache::test
