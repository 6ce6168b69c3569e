// Informers of several namespaces that are closed during their start.
#include "registry/informer_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "lookout/api/error.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1_draft.h"
#include "registry/channel.h"
#include "tests/support/eventually.h"
#include "tests/support/http_server.h"

namespace lookout::registry::detail {
namespace {

using k8s::core::v1::ConfigMap;

class InformerGroupTest : public testing::Test {
 protected:
  std::unique_ptr<InformerGroup> make() const {
    InformerGroupOptions options;
    options.resource = api::Resource(ConfigMap::kResource);
    options.namespaces = {"default", "kube-system", "kube-public"};
    return std::make_unique<InformerGroup>(
        client_, options, std::make_shared<informer::HandlerPool>(client_.shared_loop()));
  }

  const apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
};

TEST_F(InformerGroupTest, MayBeClosedDuringTheCreationOfHandlers) {
  for (int closed_at = 1; closed_at <= 3; ++closed_at) {
    const auto group = make();
    int made = 0;
    group->start([&] {
      InformerGroupEvents events;
      events.make_handler = [&] {
        if (++made == closed_at) group->close();
        return informer::EventHandler<api::Object>();
      };
      events.failed = [](const WatchFailure&, bool) {};
      events.synced = [] {};
      return events;
    });
    EXPECT_EQ(made, closed_at) << "one that is closed gets no handler";
    EXPECT_TRUE(group->informers().empty());
    EXPECT_THROW(group->start([] { return InformerGroupEvents(); }), InvalidArgument);
  }
}

TEST_F(InformerGroupTest, AConcurrentStopLeavesNothingRunning) {
  client_.resource<ConfigMap>("default").create(ConfigMap::draft("m", "default"));
  for (int i = 0; i < 20; ++i) {
    auto group = make();
    const auto over = std::make_shared<std::atomic<bool>>(false);
    const auto late = std::make_shared<std::atomic<int>>(0);
    std::atomic<bool> begun{false};
    std::jthread closing([&] {
      while (!begun) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(i * 50));
      group->close();
    });
    const auto note = [over, late] {
      if (*over) ++*late;
    };
    begun = true;
    try {
      group->start([&] {
        InformerGroupEvents events;
        events.make_handler = [note] {
          informer::EventHandler<api::Object> handler;
          handler.on_add = [note](const api::Object&) { note(); };
          return handler;
        };
        events.failed = [note](const WatchFailure&, bool) { note(); };
        events.synced = note;
        return events;
      });
    } catch (const InvalidArgument&) {
      // The group was already closed.
    }
    closing.join();
    EXPECT_TRUE(group->informers().empty());
    group.reset();
    *over = true;
    // Nothing can run any more once the callbacks have been destroyed; this function has two references.
    EXPECT_TRUE(lookout::test::eventually([&] { return over.use_count() == 2; }));
    EXPECT_EQ(*late, 0);
  }
}

TEST_F(InformerGroupTest, DistinguishesRepeatedFailures) {
  rest::Config config;
  {
    const lookout::test::HttpServer gone([](lookout::test::HttpConnection&) {});
    config.server = gone.url();
  }
  const rest::Client client(config);
  InformerGroupOptions options;
  options.resource = api::Resource(ConfigMap::kResource);
  options.namespaces = {"default"};
  options.backoff = {.initial = std::chrono::milliseconds(1), .max = std::chrono::milliseconds(5)};
  InformerGroup group(client, options,
                      std::make_shared<informer::HandlerPool>(client.shared_loop()));
  const auto news = std::make_shared<std::atomic<int>>(0);
  const auto repetitions = std::make_shared<std::atomic<int>>(0);
  group.start([&] {
    InformerGroupEvents events;
    events.make_handler = [] { return informer::EventHandler<api::Object>(); };
    events.failed = [=](const WatchFailure&, bool repeated) { ++*(repeated ? repetitions : news); };
    events.synced = [] {};
    return events;
  });
  EXPECT_TRUE(lookout::test::eventually([&] { return *repetitions >= 20; }));
  EXPECT_GE(*news, 1);
  EXPECT_LE(*news, 3) << "again after half a minute";
}

TEST_F(InformerGroupTest, AClosedChannelReleasesTheInformers) {
  auto group = make();
  group->start([] {
    InformerGroupEvents events;
    events.make_handler = [] { return informer::EventHandler<api::Object>(); };
    events.failed = [](const WatchFailure&, bool) {};
    events.synced = [] {};
    return events;
  });
  Channel channel({}, "web", group->informers(), nullptr, group->freshness());
  const std::weak_ptr<informer::SharedIndexInformer> one = group->informers().front();
  group.reset();
  channel.close();
  EXPECT_TRUE(lookout::test::eventually([&] { return one.expired(); }))
      << "a watcher may outlive its registry, but must not keep the objects";
}

}  // namespace
}  // namespace lookout::registry::detail
