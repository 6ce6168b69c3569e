// Watches over HTTP.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/files.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

using Told = std::vector<std::string>;

class Watches : public ClientTest {
 protected:
  explicit Watches(ServerOptions options = {}) : ClientTest(std::move(options)) {}

  static std::string describe(const api::WatchEvent& event) {
    return std::string(api::to_string(event.type)) + " " + std::string(event.object.name());
  }
  static Told take(rest::WatchStream& stream, std::size_t count) {
    Told out;
    while (out.size() < count) {
      const auto event = stream.next();
      if (!event) break;
      out.push_back(describe(*event));
    }
    return out;
  }
  /// The events of a watch that times out.
  Told lines(const std::string& target) {
    Told out;
    for (const auto& line : test::lines(http(server_.port(), "GET", target).body)) {
      if (!line.empty()) out.push_back(line);
    }
    return out;
  }
};

TEST_F(Watches, StartWithTheStateOrAtAVersion) {
  in(kConfigMaps).create(config_map("a"));
  const std::string version = in(kConfigMaps).list().resource_version;
  in(kConfigMaps).create(config_map("b"));
  auto from_state = in(kConfigMaps).watch({});
  rest::ListOptions at_version;
  at_version.resource_version = version;
  auto from_version = in(kConfigMaps).watch(at_version);
  in(kConfigMaps).remove("a");
  EXPECT_EQ(take(from_state, 3), (Told{"ADDED a", "ADDED b", "DELETED a"}));
  EXPECT_EQ(take(from_version, 2), (Told{"ADDED b", "DELETED a"}));
}

TEST_F(Watches, StartNowWithoutInitialEvents) {
  in(kConfigMaps).create(config_map("a"));
  rest::ListOptions options;
  options.send_initial_events = false;
  options.resource_version_match = "NotOlderThan";
  auto watch = in(kConfigMaps).watch(options);
  in(kConfigMaps).create(config_map("b"));
  EXPECT_EQ(take(watch, 1), Told{"ADDED b"});
}

TEST_F(Watches, SelectOneObjectByFieldOrPath) {
  in(kConfigMaps).create(config_map("a"));
  in(kConfigMaps).create(config_map("b"));
  rest::ListOptions options;
  options.field_selector = "metadata.name=b";
  auto watch = in(kConfigMaps).watch(options);
  in(kConfigMaps).update(config_map("a", "y"));
  in(kConfigMaps).update(config_map("b", "y"));
  EXPECT_EQ(take(watch, 2), (Told{"ADDED b", "MODIFIED b"}));
  const Told by_path = lines("/api/v1/watch/namespaces/default/configmaps/b?timeoutSeconds=1");
  ASSERT_EQ(by_path.size(), 1u);
  EXPECT_EQ(
      lookout::test::held(Object::parse(by_path[0]))["object"]["metadata"]["name"].as_string(),
      "b");
}

TEST_F(Watches, EndAtTheirTimeoutWithABookmark) {
  const std::string begin =
      "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&"
      "resourceVersion=" +
      in(kConfigMaps).list().resource_version;
  in(kConfigMaps).create(config_map("a"));
  in(kNodes, "").create(from_json(R"({"metadata":{"name":"n"}})"));
  const Told told = lines(begin + "&allowWatchBookmarks=true");
  ASSERT_EQ(told.size(), 2u);
  const Object last = Object::parse(told[1]);
  EXPECT_EQ(last["type"].as_string(), "BOOKMARK");
  EXPECT_EQ(last["object"]["kind"].as_string(), "ConfigMap");
  // Up to the current revision, of any resource.
  EXPECT_EQ(last["object"]["metadata"]["resourceVersion"].as_string(),
            in(kConfigMaps).list().resource_version);
  // Without allowWatchBookmarks there are no bookmarks.
  EXPECT_EQ(lines(begin).size(), 1u);
}

class WatchesWithBookmarks : public Watches {
 protected:
  static ServerOptions options() {
    ServerOptions out;
    out.bookmark_interval = std::chrono::milliseconds(50);
    return out;
  }
  WatchesWithBookmarks() : Watches(options()) {}
};

TEST_F(WatchesWithBookmarks, SendPeriodicBookmarks) {
  rest::ListOptions options;
  options.allow_watch_bookmarks = true;
  options.resource_version = in(kConfigMaps).list().resource_version;
  auto watch = in(kConfigMaps).watch(options);
  EXPECT_EQ(take(watch, 2), (Told{"BOOKMARK ", "BOOKMARK "}));
  // Changes of other resources count.
  all(kNodes).create(from_json(R"({"metadata":{"name":"n"}})"));
  const std::string now = in(kConfigMaps).list().resource_version;
  std::string told;
  while (told != now) {
    const auto event = watch.next();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->type, api::EventType::kBookmark);
    told = event->object.resource_version();
  }
}

TEST_F(Watches, ConvertEventsToTheOtherGroup) {
  const api::Resource core{"", "v1", "Event", "events", true};
  const api::Resource newer{"events.k8s.io", "v1", "Event", "events", true};
  auto watch = in(newer).watch({});
  in(core).create(from_json(
      R"({"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"message":"hello"})"));
  const auto event = watch.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object.api_version(), "events.k8s.io/v1");
  EXPECT_EQ(event->object["note"].as_string(), "hello");
}

TEST_F(Watches, EncodeAnEventOnceForAll) {
  constexpr int kWatches = 20;
  std::vector<rest::WatchStream> watches;
  rest::ListOptions now;
  now.resource_version = in(kConfigMaps).list().resource_version;
  for (int i = 0; i < kWatches; ++i) watches.push_back(in(kConfigMaps).watch(now));
  for (int i = 0; i < 10; ++i) in(kConfigMaps).create(config_map("c" + std::to_string(i)));
  for (auto& watch : watches) EXPECT_EQ(take(watch, 10).size(), 10u);
  EXPECT_EQ(server_.stats().events_encoded, 10u);
  EXPECT_TRUE(eventually([&] { return server_.stats().events_sent == 10u * kWatches; }));
}

TEST_F(Watches, EndWithTheirClient) {
  {
    std::vector<rest::WatchStream> watches;
    for (int i = 0; i < 10; ++i) watches.push_back(in(kConfigMaps).watch({}));
    EXPECT_TRUE(eventually([&] { return server_.stats().watches == 10; }));
  }
  EXPECT_TRUE(eventually([&] { return server_.stats().watches == 0; }));
}

TEST_F(Watches, EndRegularlyWhenTheServerStops) {
  auto watch = in(kConfigMaps).watch({});
  in(kConfigMaps).create(config_map("a"));
  EXPECT_EQ(take(watch, 1), Told{"ADDED a"});
  std::thread stopper([&] { server_.stop(); });
  // The stream ends without an error.
  EXPECT_FALSE(watch.next());
  stopper.join();
}

}  // namespace
}  // namespace lookout::apiserver
