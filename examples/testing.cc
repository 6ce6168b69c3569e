// Tests of a program that uses Lookout: with an embedded server, with fakes, and with a fake clock.
// docs/guide/testing.md explains them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "lookout/apiserver/server.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/lookout.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/testing/fake_controller_source.h"
#include "lookout/testing/fake_recorder.h"
#include "lookout/tools/record/event_recorder.h"
#include "lookout/tools/workqueue/rate_limiting_queue.h"

using namespace lookout;
using namespace std::chrono_literals;

namespace {

/// Polls with a time limit: a test should fail, not hang.
bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// The program: it marks config maps that have no owner.
void mark(const rest::Client& client, const k8s::core::v1::ConfigMap& map,
          record::EventRecorder& recorder) {
  if (map.labels()["owner"].exists()) return;
  const auto change = map.edit();
  change.metadata().labels().set("owner", "nobody");
  client.resource<k8s::core::v1::ConfigMap>(map.ns()).patch(change);
  recorder.normal(map, "Marked", "nobody owns it");
}

TEST(MarkTest, ReportsNoEventAfterAFailure) {
  std::atomic<int> patches{0};
  apiserver::ServerOptions options;
  options.before_request = [&](const apiserver::ServedRequest& request) {
    if (request.verb == "patch" && ++patches == 1)
      throw api::StatusError::internal_error("the disk is full");
  };
  const apiserver::Server server(options);
  const rest::Client client{server.client_config()};
  const auto maps = client.resource<k8s::core::v1::ConfigMap>("default");
  const auto made = maps.create(k8s::core::v1::ConfigMap::draft("settings", "default"));

  test::FakeRecorder recorder;
  EXPECT_THROW(mark(client, made, recorder), api::StatusError);
  EXPECT_TRUE(recorder.events().empty());
  mark(client, made, recorder);
  EXPECT_EQ(recorder.events().size(), 1u);
}

TEST(MarkTest, MarksObjectsWithoutAnOwner) {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  const auto maps = client.resource<k8s::core::v1::ConfigMap>("default");
  const auto made = maps.create(k8s::core::v1::ConfigMap::draft("settings", "default"));

  test::FakeRecorder recorder;
  mark(client, made, recorder);

  const auto marked = maps.get("settings");
  EXPECT_EQ(marked.labels()["owner"].as_string(), "nobody");
  EXPECT_THAT(recorder.texts(), testing::ElementsAre("Normal Marked nobody owns it"));
}

TEST(MarkTest, FollowsTheServer) {
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  test::FakeRecorder recorder;

  informer::SharedInformerFactory factory{client};
  const auto informer = factory.informer<k8s::core::v1::ConfigMap>();
  const auto handler = informer.add_handler(
      {.on_add = [&](const k8s::core::v1::ConfigMap& map) { mark(client, map, recorder); }});
  factory.start();
  factory.wait_for_cache_sync();

  const auto maps = client.resource<k8s::core::v1::ConfigMap>("default");
  maps.create(k8s::core::v1::ConfigMap::draft("settings", "default"));
  EXPECT_TRUE(eventually([&] { return !recorder.events().empty(); }));
  factory.shutdown();
  const auto marked = maps.get("settings");
  EXPECT_EQ(marked.labels()["owner"].as_string(), "nobody");
}

TEST(CacheTest, NoticesMissedDeletions) {
  const auto loop = std::make_shared<EventLoop>(1);
  const auto source =
      std::make_shared<test::FakeControllerSource>(api::GroupVersionKind{"", "v1", "ConfigMap"});
  informer::InformerOptions options;
  options.reflector.backoff = {.initial = 1ms, .max = 1ms};  // between attempts
  const auto pool = std::make_shared<informer::HandlerPool>(loop);
  informer::SharedIndexInformer informer(source, options, loop, pool);
  informer.start();

  source->put(k8s::core::v1::ConfigMap::draft("settings", "default").build());
  ASSERT_TRUE(eventually([&] { return informer.store().size() == 1; }));

  // The connection breaks, the object is deleted, and the server drops its history.
  source->pause();
  source->break_connections();
  source->remove("default/settings");
  source->forget();
  source->resume();
  EXPECT_TRUE(eventually([&] { return informer.store().size() == 0; }));
  informer.shutdown();
}

TEST(QueueTest, AddsAfterTheDelay) {
  const auto clock = std::make_shared<test::FakeClock>();
  const auto loop = std::make_shared<EventLoop>(1);
  workqueue::RateLimitingQueueOptions<std::string> options;
  options.clock = clock;
  options.loop = loop;
  workqueue::RateLimitingQueue<std::string> queue(std::move(options));

  queue.add_after("default/settings", 1h);
  EXPECT_EQ(queue.size(), 0u);
  ASSERT_TRUE(eventually([&] { return clock->sleepers() == 1; }));
  clock->advance(1h);
  EXPECT_EQ(queue.get(), "default/settings");
  queue.done("default/settings");
}

}  // namespace
