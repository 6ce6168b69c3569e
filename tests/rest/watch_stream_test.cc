// The events of a watch, in chunks of any size.
#include <gtest/gtest.h>

#include "tests/rest/client_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using namespace std::string_literals;
using api::EventType;
using k8s::core::v1::Pod;
using rest::Client;

/// A server whose watches send these chunks, and then end in a given way.
class Watched {
 public:
  explicit Watched(std::vector<std::string> chunks, bool in_good_order = true)
      : server_([chunks = std::move(chunks), in_good_order](HttpConnection& c) {
          c.read_request();
          c.begin_chunks();
          for (const auto& chunk : chunks) c.chunk(chunk);
          if (in_good_order) c.end_chunks();
        }) {}

  rest::WatchStream watch(rest::DecodeOptions decode = {}) const {
    return client_.resource<Pod>("shop").dynamic().watch({}, std::move(decode));
  }

 private:
  HttpServer server_;
  Client client_{config_for(server_)};
};

/// All events until the end, as "ADDED web".
std::vector<std::string> all(rest::WatchStream watch) {
  std::vector<std::string> out;
  while (const auto event = watch.next())
    out.push_back(std::string(to_string(event->type)) + " " + std::string(event->object.name()));
  return out;
}

const std::string kAdded = event_json("ADDED", "web");
const std::string kDeleted = event_json("DELETED", "web");
const std::string kBookmark = R"({"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1",)"
                              R"("metadata":{"resourceVersion":"12746"}}})";

TEST(WatchStreamTest, EventsComeInOrderUntilTheEnd) {
  const Watched server({kAdded, event_json("MODIFIED", "web"), kBookmark, kDeleted});
  EXPECT_THAT(all(server.watch()),
              ElementsAre("ADDED web", "MODIFIED web", "BOOKMARK ", "DELETED web"));
}

TEST(WatchStreamTest, AWatchMayEndWithoutEvents) {
  const Watched server({});
  auto watch = server.watch();
  EXPECT_FALSE(watch.next());
  EXPECT_FALSE(watch.next()) << "the end is the end";
}

TEST(WatchStreamTest, AnEmptyStreamSaysSo) {
  rest::WatchStream watch;
  std::vector<api::WatchEvent> events;
  EXPECT_THROW(watch.next(), InvalidArgument);
  EXPECT_THROW(static_cast<void>(watch.async_next(events)), InvalidArgument);
  watch.cancel();
}

TEST(WatchStreamTest, ChunksNeedNotBeEvents) {
  const std::string text = kAdded + "\n\r\n " + kBookmark + kDeleted;
  for (std::size_t size : {std::size_t{1}, std::size_t{7}, text.size()}) {
    std::vector<std::string> chunks;
    for (std::size_t at = 0; at < text.size(); at += size) chunks.push_back(text.substr(at, size));
    const Watched server(chunks);
    EXPECT_THAT(all(server.watch()), ElementsAre("ADDED web", "BOOKMARK ", "DELETED web")) << size;
  }
}

TEST(WatchStreamTest, AnErrorIsAnEventWithAStatus) {
  const Watched server({kAdded, R"({"type":"ERROR","object":)" +
                                    status_json(410, "Expired", "too old resource version: 1") +
                                    "}\n"});
  auto watch = server.watch();
  ASSERT_TRUE(watch.next());
  const auto error = watch.next();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->type, EventType::kError);
  const auto status = api::Status::from(error->object);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 410);
  EXPECT_FALSE(watch.next());
}

TEST(WatchStreamTest, AConnectionThatBreaksIsAnErrorAfterTheEvents) {
  for (const std::string& half : {std::string(), kDeleted.substr(0, 30)}) {
    std::vector<std::string> chunks{kAdded};
    if (!half.empty()) chunks.push_back(half);
    const Watched server(chunks, false);
    auto watch = server.watch();
    EXPECT_TRUE(watch.next());
    EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kBroken);
    EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kBroken) << "it stays broken";
  }
}

TEST(WatchStreamTest, ATruncatedEventIsAnError) {
  const Watched server({kAdded, kDeleted.substr(0, 30)});
  auto watch = server.watch();
  EXPECT_TRUE(watch.next());
  EXPECT_EQ(kind_thrown([&] { watch.next(); }), Kind::kBroken);
}

TEST(WatchStreamTest, InvalidEventsAreAProtocolErrorAfterTheOthers) {
  const Watched server({kAdded + "<html>", kDeleted});
  auto watch = server.watch();
  EXPECT_TRUE(watch.next());
  const auto error = thrown<rest::TransportError>([&] { watch.next(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Kind::kProtocol);
  EXPECT_THAT(error->what(), HasSubstr("watch pods"));
}

TEST(WatchStreamTest, AnUndecodableEventIsReportedAndEndsTheWatch) {
  std::string large = event_json("ADDED", "large");
  large.insert(large.find("\"name\""),
               "\"annotations\":{\"x\":\"" + std::string(1200, 'x') + "\"},");
  // The second one comes in the same piece.
  const Watched server({kAdded, large + large, kDeleted});
  std::vector<std::size_t> reported;
  auto watch = server.watch(
      {.max_object_bytes = 1000, .on_malformed = [&](const api::MalformedObject& malformed) {
         reported.push_back(malformed.bytes);
       }});
  ASSERT_TRUE(watch.next()) << "what came before it";
  for (int i = 0; i < 2; ++i) {
    const auto error = thrown<api::DecodeError>([&] { watch.next(); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(), AllOf(HasSubstr("watch pods"), HasSubstr("larger than the limit")));
  }
  EXPECT_THAT(reported, ElementsAre(testing::Gt(1200u))) << "the first one, once";
}

/// The object may be a Secret.
TEST(WatchStreamTest, MessagesOmitTheContentOfObjects) {
  const std::string secret = R"({"type":"ADDED","object":{"metadata":{"name":"web","namespace":)"
                             R"("shop"},"data":{"password":"swordfish","x":1e400}}})";
  const Watched server({secret});
  auto watch = server.watch();
  const auto error = thrown<api::DecodeError>([&] { watch.next(); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("shop/web"), testing::Not(HasSubstr("swordfish"))));

  for (const std::string& body : {std::string(R"({"items":[{"data":{"password":"swordfish"}}])"),
                                  std::string(" [\"swordfish\"]"), "k8s\0swordfish"s}) {
    HttpServer lists(
        HttpServer::answering([&](const HttpRequest&) { return HttpResponse{.body = body}; }));
    const Client client{config_for(lists)};
    for (const auto& call :
         {std::function<void()>([&] { client.resource<Pod>("shop").list(); }),
          std::function<void()>([&] { client.resource<Pod>("shop").get("web"); })}) {
      const auto refused = thrown<api::DecodeError>(call);
      ASSERT_TRUE(refused);
      EXPECT_THAT(refused->what(), testing::Not(HasSubstr("swordfish")));
    }
  }
}

TEST(WatchStreamTest, UnreadableItemsOfAListAreNamed) {
  const HttpServer server(HttpServer::answering([](const HttpRequest&) {
    return HttpResponse{
        .body = list_json({R"({"metadata":{"name":"a","namespace":"shop"},"x":[1e400]})",
                           R"({"metadata":{"name":"b",}})", pod_json("c")})};
  }));
  const Client client{config_for(server)};
  const auto list = client.resource<Pod>("shop").dynamic().list();
  EXPECT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.malformed_items, 2u);
  EXPECT_THAT(list.malformed_keys, ElementsAre("shop/a"));
}

TEST(WatchStreamTest, ASlowReaderCausesBackPressure) {
  constexpr std::size_t kEvents = 40000;
  constexpr std::size_t kBytes = 1000;
  std::atomic<const HttpConnection*> connection{nullptr};
  HttpServer server([&](HttpConnection& c) {
    connection = &c;
    c.read_request();
    c.begin_chunks();
    const std::string padding(kBytes, ' ');
    for (std::size_t i = 0; i < kEvents; ++i)
      if (!c.chunk(event_json("ADDED", std::to_string(i)) + padding)) return;
    c.end_chunks();
    c.wait_for_close();
  });
  const Client client{config_for(server)};
  auto watch = client.resource<Pod>("shop").dynamic().watch();
  ASSERT_TRUE(eventually([&] { return connection.load()->stalled(); }))
      << "40 MB were taken in though nobody wants them";
  EXPECT_LT(connection.load()->written(), kEvents * kBytes / 2);
  for (std::size_t i = 0; i < kEvents; ++i) {
    const auto event = watch.next();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->object.name(), std::to_string(i));
  }
  EXPECT_FALSE(watch.next());
}

}  // namespace
}  // namespace lookout::test
