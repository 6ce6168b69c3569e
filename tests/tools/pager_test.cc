#include "lookout/tools/pager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "lookout/api/status.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/objects.h"

namespace lookout::pager {
namespace {

/// A server with this many objects, whose history can expire.
class Pages {
 public:
  explicit Pages(int objects, int expires_on_page = 0)
      : objects_(objects), expires_on_page_(expires_on_page) {}

  rest::List<> operator()(const rest::ListOptions& options, const std::stop_token&) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(options);
    if (static_cast<int>(requests_.size()) == expires_on_page_)
      throw api::StatusError::expired("too old");
    const int begin = options.continue_token.empty() ? 0 : std::stoi(options.continue_token);
    const int limit = static_cast<int>(options.limit);
    const int end = limit == 0 ? objects_ : std::min(objects_, begin + limit);
    rest::List<> out;
    out.resource_version = "20";
    for (int i = begin; i < end; ++i) out.items.push_back(test::pod("a/" + std::to_string(i)));
    if (end < objects_) {
      out.continue_token = std::to_string(end);
      out.remaining_item_count = objects_ - end;
    }
    return out;
  }
  std::vector<rest::ListOptions> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  const int objects_;
  const int expires_on_page_;
  mutable std::mutex mutex_;
  std::vector<rest::ListOptions> requests_;
};

class ListPagerTest : public testing::TestWithParam<int> {};

TEST_P(ListPagerTest, ListsEverything) {
  Pages pages(GetParam());
  const auto result =
      ListPager(std::ref(pages), {.page_size = 10})
          .list({.resource_version = "7", .resource_version_match = "NotOlderThan"});
  EXPECT_EQ(result.list.items.size(), static_cast<std::size_t>(GetParam()));
  EXPECT_EQ(result.list.resource_version, "20");
  EXPECT_EQ(result.list.continue_token, "");
  EXPECT_EQ(result.list.remaining_item_count, std::nullopt);
  EXPECT_EQ(result.paginated, GetParam() > 10);
  for (const auto& request : pages.requests()) {
    EXPECT_EQ(request.limit, 10);
    const bool first = request.continue_token.empty();
    EXPECT_EQ(request.resource_version, first ? "7" : "");
    EXPECT_EQ(request.resource_version_match, first ? "NotOlderThan" : "");
  }
}

TEST_P(ListPagerTest, CallsForEachItem) {
  for (const std::size_t ahead : {0u, 1u, 5u}) {
    Pages pages(GetParam());
    std::vector<std::string> seen;
    ListPager(std::ref(pages), {.page_size = 10, .page_buffer_size = ahead})
        .each_list_item({}, [&](const api::Object& item) { seen.emplace_back(item.name()); });
    ASSERT_EQ(seen.size(), static_cast<std::size_t>(GetParam()));
    for (int i = 0; i < GetParam(); ++i)
      EXPECT_EQ(seen[static_cast<std::size_t>(i)], std::to_string(i));
  }
}

INSTANTIATE_TEST_SUITE_P(, ListPagerTest, testing::Values(0, 9, 10, 11, 21, 105));

TEST(ListPagerLossTest, AddsUpTheUnreadableItemsOfAllPages) {
  int asked = 0;
  const auto page = [&](const rest::ListOptions&, const std::stop_token&) {
    rest::List<> out;
    ++asked;
    out.malformed_items = 2;
    out.malformed_keys = {"a/" + std::to_string(asked)};
    out.unknown_fields = 3;
    if (asked < 3) out.continue_token = "more";
    return out;
  };
  const auto result = ListPager(page).list();
  EXPECT_EQ(result.list.malformed_items, 6u);
  EXPECT_THAT(result.list.malformed_keys, testing::ElementsAre("a/1", "a/2", "a/3"));
  EXPECT_EQ(result.list.unknown_fields, 9u);
}

// Unreadable items must not look absent.
TEST(ListPagerLossTest, IsAnErrorAfterTheOtherItems) {
  Pages pages(15);
  const auto page = [&](const rest::ListOptions& options, const std::stop_token& stop) {
    rest::List<> out = pages(options, stop);
    if (options.continue_token.empty()) out.malformed_items = 2;
    return out;
  };
  int seen = 0;
  try {
    ListPager(page, {.page_size = 10}).each_list_item({}, [&](const api::Object&) { ++seen; });
    ADD_FAILURE() << "it threw nothing";
  } catch (const api::DecodeError& e) {
    EXPECT_STREQ(e.what(), "items of the list that cannot be decoded and were left out: 2");
  }
  EXPECT_EQ(seen, 15);
}

TEST(ListPagerExpiryTest, AnExpiredPageIsAnErrorWithoutFullListFallback) {
  Pages pages(21, 2);
  EXPECT_THROW(
      ListPager(std::ref(pages), {.page_size = 10, .full_list_if_expired = false}).list({}),
      api::StatusError);
}

TEST(ListPagerExpiryTest, AnExpiredPageLeadsToAFullList) {
  Pages pages(21, 2);
  const auto result =
      ListPager(std::ref(pages), {.page_size = 10})
          .list({.resource_version = "7", .resource_version_match = "NotOlderThan"});
  EXPECT_EQ(result.list.items.size(), 21u);
  EXPECT_TRUE(result.paginated);
  ASSERT_EQ(pages.requests().size(), 3u);
  EXPECT_EQ(pages.requests()[2].limit, 0);
  EXPECT_EQ(pages.requests()[2].continue_token, "");
  EXPECT_EQ(pages.requests()[2].resource_version, "7");
  EXPECT_EQ(pages.requests()[2].resource_version_match, "NotOlderThan");
}

TEST(ListPagerExpiryTest, AnExpiredFirstPageIsAnError) {
  Pages pages(21, 1);
  EXPECT_THROW(ListPager(std::ref(pages)).list({}), api::StatusError);
}

TEST(ListPagerEachTest, AnExpiredPageIsAnErrorAfterEarlierItems) {
  Pages pages(21, 2);
  int seen = 0;
  EXPECT_THROW(ListPager(std::ref(pages), {.page_size = 10})
                   .each_list_item({}, [&](const api::Object&) { ++seen; }),
               api::StatusError);
  EXPECT_EQ(seen, 10);
}

TEST(ListPagerEachTest, ExceptionsOfTheCallbackAreRethrown) {
  Pages pages(51);
  int seen = 0;
  EXPECT_THROW(ListPager(std::ref(pages), {.page_size = 10})
                   .each_list_item({},
                                   [&](const api::Object&) {
                                     if (++seen == 3) throw std::runtime_error("enough");
                                   }),
               std::runtime_error);
  EXPECT_EQ(seen, 3);
}

TEST(ListPagerEachTest, AStopEndsThePager) {
  Pages pages(51);
  std::stop_source stop;
  int seen = 0;
  EXPECT_THROW(ListPager(std::ref(pages), {.page_size = 10})
                   .each_list_item(
                       {},
                       [&](const api::Object&) {
                         if (++seen == 3) stop.request_stop();
                       },
                       stop.get_token()),
               rest::TransportError);
  EXPECT_EQ(seen, 3);
  EXPECT_THROW(ListPager(std::ref(pages)).list({}, stop.get_token()), rest::TransportError);
}

/// The server never sends the page.
TEST(ListPagerEachTest, AnExceptionCancelsThePageInFlight) {
  Pages pages(51);
  const auto first_only = [&](const rest::ListOptions& options, const std::stop_token& stop) {
    if (options.continue_token.empty()) return pages(options, stop);
    test::Gate stopped;
    const std::stop_callback on_stop(stop, [&] { stopped.open(); });
    EXPECT_TRUE(stopped.wait()) << "nobody told it";
    throw rest::TransportError(rest::TransportError::Kind::kCancelled, "stopped");
  };
  int seen = 0;
  EXPECT_THROW(ListPager(first_only, {.page_size = 10})
                   .each_list_item({},
                                   [&](const api::Object&) {
                                     if (++seen == 3) throw std::runtime_error("enough");
                                   }),
               std::runtime_error);
  std::stop_source stop;
  seen = 0;
  EXPECT_THROW(ListPager(first_only, {.page_size = 10})
                   .each_list_item(
                       {},
                       [&](const api::Object&) {
                         if (++seen == 10) stop.request_stop();
                       },
                       stop.get_token()),
               rest::TransportError);
  const std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_THROW(ListPager(first_only, {.page_size = 10}).list({}, stop.get_token()),
               rest::TransportError);
}

TEST(ListPagerEachTest, PrefetchesUpToTheBufferSize) {
  for (const std::size_t ahead : {0u, 1u, 3u}) {
    Pages pages(1000);
    bool first = true;
    ListPager(std::ref(pages), {.page_size = 10, .page_buffer_size = ahead})
        .each_list_item({}, [&](const api::Object&) {
          if (!std::exchange(first, false)) return;
          // The current page, the buffered ones, and one that waits for room in the buffer.
          EXPECT_TRUE(test::eventually([&] { return pages.requests().size() == ahead + 2; }));
        });
    EXPECT_EQ(pages.requests().size(), 100u);
  }
}

TEST(ListPagerPageTest, TheLimitOfListOptionsIsThePageSize) {
  Pages pages(21);
  EXPECT_TRUE(ListPager(std::ref(pages)).list({.limit = 5}).paginated);
  EXPECT_EQ(pages.requests().size(), 5u);
}

}  // namespace
}  // namespace lookout::pager
