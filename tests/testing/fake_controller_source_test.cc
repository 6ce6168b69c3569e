#include "lookout/testing/fake_controller_source.h"

#include <gtest/gtest.h>

#include <functional>

#include "lookout/base/event_loop.h"
#include "tests/support/matchers.h"
#include "tests/support/objects.h"

namespace lookout::test {
namespace {

class FakeControllerSourceTest : public testing::Test {
 protected:
  /// The events of a watch, after this many reads or until it ends.
  std::vector<std::string> watch(rest::ListOptions options, std::size_t reads) {
    return loop_.run(read(std::move(options), reads));
  }
  Awaitable<std::vector<std::string>> read(rest::ListOptions options, std::size_t reads) {
    std::vector<std::string> out;
    const auto watcher = co_await source_.watch(std::move(options), {});
    for (; reads > 0; --reads) {
      std::vector<api::WatchEvent> events;
      const bool more = co_await watcher->next(events);
      if (!more) {
        out.push_back("end");
        break;
      }
      for (const auto& event : events) {
        out.push_back(std::string(api::to_string(event.type)) + " " + event.object.key() + "@" +
                      std::string(event.object.resource_version()));
      }
    }
    co_return out;
  }
  /// The events of a watch from version 101, after `end` was called.
  Awaitable<std::vector<std::string>> watch_until(std::function<void()> end) {
    const auto watcher = co_await source_.watch({.resource_version = "101"}, std::stop_token());
    end();
    std::vector<std::string> out;
    std::vector<api::WatchEvent> events;
    for (;;) {
      const bool more = co_await watcher->next(events);
      if (!more) break;
      for (const auto& event : events) out.emplace_back(api::to_string(event.type));
    }
    co_return out;
  }
  std::vector<std::string> list(rest::ListOptions options, rest::ListMeta* meta = nullptr) {
    return loop_.run(read_list(std::move(options), meta));
  }
  Awaitable<std::vector<std::string>> read_list(rest::ListOptions options, rest::ListMeta* meta) {
    std::vector<std::string> out;
    const auto got = co_await source_.list(
        [&](const api::Object& item) { out.push_back(item.key()); }, std::move(options), {});
    if (meta != nullptr) *meta = got;
    co_return out;
  }

  FakeControllerSource source_;
  EventLoop loop_{1};
};

TEST_F(FakeControllerSourceTest, NumbersVersionsAndWatchesFromAnyOfThem) {
  source_.put(pod("a/x"));
  const auto y = source_.put(pod("a/y"));
  EXPECT_EQ(y.resource_version(), "102");
  source_.put(pod("a/x", "", {{}, "n1", {}}));
  source_.remove("a/y");
  source_.remove("a/nobody");
  EXPECT_EQ(source_.resource_version(), "104");
  EXPECT_EQ(source_.contents().size(), 1u);
  EXPECT_THAT(watch({.resource_version = "100"}, 1),
              ElementsAre("ADDED a/x@101", "ADDED a/y@102", "MODIFIED a/x@103", "DELETED a/y@104"));
  EXPECT_THAT(watch({.resource_version = "102"}, 1),
              ElementsAre("MODIFIED a/x@103", "DELETED a/y@104"));
  EXPECT_THAT(watch({.resource_version = "0"}, 1), ElementsAre("ADDED a/x@103"));
}

TEST_F(FakeControllerSourceTest, StreamsItsState) {
  source_.put(pod("a/x"));
  source_.put(pod("a/y"));
  rest::ListOptions options;
  options.send_initial_events = true;
  EXPECT_THAT(watch(options, 1), ElementsAre("ADDED a/x@101", "ADDED a/y@102", "BOOKMARK @102"));
  source_.deliver_at_once(2);
  EXPECT_THAT(watch(options, 1), ElementsAre("ADDED a/x@101", "ADDED a/y@102"));
  source_.stream_state(false);
  EXPECT_THROW(watch(options, 1), api::StatusError);
}

TEST_F(FakeControllerSourceTest, EndsWatchesAndDropsHistory) {
  source_.put(pod("a/x"));
  const auto ends = [&](const std::function<void()>& end) { return loop_.run(watch_until(end)); };
  EXPECT_THAT(ends([&] { source_.disconnect(); }), IsEmpty());
  EXPECT_THAT(ends([&] { source_.send_error(api::StatusError::gone("gone")); }),
              ElementsAre("ERROR"));
  EXPECT_THROW(ends([&] { source_.break_connections(); }), rest::TransportError);
  source_.forget();
  EXPECT_THROW(watch({.resource_version = "101"}, 1), api::StatusError);
  EXPECT_THROW(watch({.resource_version = "9999"}, 1), api::StatusError);
}

TEST_F(FakeControllerSourceTest, ListsInPagesThatMayExpire) {
  for (const char* key : {"a/1", "a/2", "a/3"}) source_.put(pod(key));
  rest::ListMeta meta;
  EXPECT_THAT(list({.limit = 2}, &meta), ElementsAre("a/1", "a/2"));
  EXPECT_EQ(meta.kind, "PodList");
  EXPECT_EQ(meta.resource_version, "103");
  ASSERT_NE(meta.continue_token, "");
  source_.put(pod("a/4"));
  EXPECT_THAT(list({.limit = 2, .continue_token = meta.continue_token}, &meta), ElementsAre("a/3"));
  EXPECT_EQ(meta.resource_version, "103");
  list({.limit = 2}, &meta);
  const std::string next = meta.continue_token;
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(list({.limit = 2, .continue_token = next}), ElementsAre("a/3", "a/4")) << again;
  source_.forget();
  EXPECT_THROW(list({.limit = 2, .continue_token = meta.continue_token}), api::StatusError);
}

TEST_F(FakeControllerSourceTest, ReturnsInjectedErrors) {
  source_.fail_list(api::StatusError::internal_error("oops"));
  source_.fail_watch(rest::TransportError(rest::TransportError::Kind::kRefused, "nobody"));
  EXPECT_THROW(list({}), api::StatusError);
  EXPECT_THROW(watch({.resource_version = "100"}, 1), rest::TransportError);
  EXPECT_THAT(list({}), IsEmpty()) << "once";
  EXPECT_EQ(source_.lists(), 2u);
  EXPECT_EQ(source_.watches(), 1u);
}

}  // namespace
}  // namespace lookout::test
