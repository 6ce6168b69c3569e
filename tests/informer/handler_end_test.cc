// Handlers that are removed with their queued notifications.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "lookout/api/error.h"
#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/matchers.h"

namespace lookout::informer {
namespace {

using lookout::test::Gate;

class HandlerEndTest : public test::InformerTest {
 protected:
  /// A handler that blocks in its first call.
  EventHandler<api::Object> slow() {
    auto handler = recorder_.handler();
    handler.on_add = [this, add = handler.on_add](const api::Object& object, Origin origin) {
      held_up_.open();
      EXPECT_TRUE(go_on_.wait());
      add(object, origin);
    };
    return handler;
  }
  /// Runs an informer with a handler that blocks on the first of two objects, and another one that has
  /// received both.
  HandlerRegistration hold_up() {
    auto& informer = run();
    auto registration = informer.add_handler(slow());
    informer.add_handler(other_.handler()).release();
    source_->put("a/x");
    source_->put("a/y");
    other_.wait(2);
    EXPECT_TRUE(held_up_.wait());
    return registration;
  }

  Recorder recorder_;
  Recorder other_;
  Gate held_up_;
  Gate go_on_;
};

TEST_F(HandlerEndTest, ADetachedHandlerReceivesOnlyQueuedNotifications) {
  auto registration = hold_up();
  registration.detach();
  registration.detach();
  source_->put("a/z");
  other_.wait(3);
  go_on_.open();
  registration.drain();
  EXPECT_THAT(recorder_.events(), ElementsAre("+a/x@101", "+a/y@102"));
  EXPECT_EQ(registration.backlog(), 0u);
}

TEST_F(HandlerEndTest, ADrainWaitsUntilTheHandlerIsIdle) {
  auto registration = hold_up();
  auto drained = std::async(std::launch::async, [&] { registration.drain(); });
  EXPECT_EQ(drained.wait_for(0s), std::future_status::timeout);
  go_on_.open();
  lookout::test::get(drained);
  EXPECT_THAT(recorder_.events(), ElementsAre("+a/x@101", "+a/y@102"));
}

TEST_F(HandlerEndTest, ADrainOfAnIdleHandlerReturnsAtOnce) {
  auto& informer = make();
  auto before = informer.add_handler(recorder_.handler());
  before.drain();
  informer.start();
  settle();
  auto running = informer.add_handler(recorder_.handler());
  running.drain();
  source_->put("a/x");
  settle();
  informer.shutdown();
  running.drain();
  EXPECT_THAT(recorder_.events(), IsEmpty());
  HandlerRegistration().drain();
}

TEST_F(HandlerEndTest, AHandlerMayDrainItself) {
  auto& informer = run();
  HandlerRegistration registration;
  Gate added;
  auto handler = recorder_.handler();
  handler.on_add = [&, add = handler.on_add](const api::Object& object, Origin origin) {
    EXPECT_TRUE(added.wait());
    registration.drain();
    add(object, origin);
  };
  registration = informer.add_handler(std::move(handler));
  added.open();
  source_->put("a/x");
  EXPECT_THAT(recorder_.wait(1), ElementsAre("+a/x@101"));
  informer.shutdown();
}

TEST_F(HandlerEndTest, ARemovalEndsADrain) {
  auto registration = hold_up();
  auto drained = std::async(std::launch::async, [&] { registration.drain(); });
  auto removed = std::async(std::launch::async, [&] { registration.remove(); });
  lookout::test::get(drained);
  go_on_.open();
  lookout::test::get(removed);
}

TEST_F(HandlerEndTest, AHandlerThatThrowsIsDrained) {
  auto& informer = run();
  auto registration =
      informer.add_handler({.on_add = [](const api::Object&) { throw std::runtime_error("no"); }});
  source_->put("a/x");
  source_->put("a/y");
  settle();
  registration.drain();
  EXPECT_EQ(registration.exceptions(), 2u);
}

// -------------------------------------------------------------------------------- settings

TEST_F(HandlerEndTest, TransformAndErrorHandlerCanBeSetBeforeTheStart) {
  auto& informer = make();
  informer.set_transform([](const api::Object& object) { return object; });
  informer.set_transform(
      [](const api::Object& object) { return lookout::test::pod(object.key(), "7"); });
  std::promise<std::string> failed;
  informer.set_watch_error_handler(
      [&](std::string_view, const std::exception& e) { failed.set_value(e.what()); });
  source_->put("a/x");
  source_->fail_watch(api::StatusError::too_many_requests("not now", 1));
  informer.start();
  settle();
  EXPECT_THAT(lookout::test::get(failed.get_future()), testing::HasSubstr("not now"));
  EXPECT_EQ(informer.store().get("a", "x").resource_version(), "7");
  EXPECT_THROW(informer.set_transform({}), InvalidArgument);
  EXPECT_THROW(informer.set_watch_error_handler({}), InvalidArgument);
  informer.shutdown();
}

TEST_F(HandlerEndTest, TransformAndErrorHandlerCanBeSetDuringTheStart) {
  auto& informer = make();
  source_->put("a/x");
  std::atomic<bool> refused{false};
  std::thread setter([&] {
    try {
      for (;;) {
        informer.set_transform([](const api::Object& object) { return object; });
        informer.set_watch_error_handler([](std::string_view, const std::exception&) {});
      }
    } catch (const InvalidArgument&) {
      refused = true;
    }
  });
  informer.start();
  setter.join();
  EXPECT_TRUE(refused) << "from the start on";
  settle();
  EXPECT_EQ(informer.store().size(), 1u);
}

TEST_F(HandlerEndTest, AStoppedInformerRejectsChanges) {
  auto& informer = run();
  informer.stop();
  EXPECT_TRUE(informer.stopped());
  EXPECT_THROW(informer.add_handler({}).release(), InvalidArgument);
  EXPECT_THROW(informer.add_indexers({{"x", cache::index_by_namespace}}), InvalidArgument);
}

TEST_F(HandlerEndTest, HandlersHaveNames) {
  auto& informer = make();
  EXPECT_EQ(informer.add_handler({}).name(), "pods, handler 1");
  EXPECT_EQ(informer.add_handler({.name = "mine"}).name(), "mine");
  EXPECT_EQ(informer.add_handler({}).name(), "pods, handler 3");
}

// --------------------------------------------------------------------------- liveness, metrics

TEST_F(HandlerEndTest, ReportsWhetherItIsLive) {
  auto& informer = make();
  EXPECT_FALSE(informer.live()) << "it knows nothing yet";
  informer.start();
  settle();
  EXPECT_TRUE(informer.live());
  clock_->advance(2min);
  EXPECT_EQ(informer.staleness(), 2min);
  EXPECT_TRUE(informer.live());
  clock_->advance(1s);
  EXPECT_FALSE(informer.live());
  EXPECT_TRUE(informer.live(1h));
  source_->bookmark();
  settle();
  EXPECT_TRUE(informer.live());
  informer.stop();
  EXPECT_FALSE(informer.live());
}

TEST_F(HandlerEndTest, HasMetrics) {
  auto& informer = run();
  auto registration = informer.add_handler(recorder_.handler("watcher"));
  source_->put("a/x");
  source_->put("a/y");
  recorder_.wait(2);
  settle();
  registration.drain();  // (it may be in the samples; HandlersHaveMetrics checks its own)
  std::vector<metrics::Sample> all;
  informer.collect(all);
  const auto value = [&](const std::string& name) {
    for (const auto& sample : all) {
      if (sample.name != name) continue;
      EXPECT_EQ(sample.labels.at(0), (std::pair<std::string, std::string>{"name", "pods"}));
      return sample.type == metrics::Sample::Type::kSummary ? sample.sum : sample.value;
    }
    ADD_FAILURE() << "no " << name;
    return 0.0;
  };
  EXPECT_EQ(value("reflector_lists_total"), 1);
  EXPECT_EQ(value("reflector_streamed_lists_total"), 1);
  EXPECT_EQ(value("reflector_watches_total"), 1);
  EXPECT_EQ(value("reflector_items_per_list"), 0);
  EXPECT_EQ(value("reflector_last_resource_version"), 102);
  EXPECT_EQ(value("informer_store_resource_version"), 102);
  EXPECT_EQ(value("informer_stored_items"), 2);
  EXPECT_EQ(value("informer_synced"), 1);
  EXPECT_EQ(value("reflector_events_total"), 2);
}

TEST_F(HandlerEndTest, HasTheMetricsOfClientGo) {
  options_.resource = {"", "v1", "pods"};
  auto& informer = run();
  source_->put("a/x");
  settle();
  std::vector<metrics::Sample> all;
  informer.collect(all);
  std::map<std::string, metrics::Sample> found;
  for (auto& sample : all) {
    if (sample.labels.size() == 4) found[sample.name] = sample;
  }
  // The names, types, labels and buckets are those of k8s.io/component-base.
  const metrics::Collector::Labels labels = {
      {"name", "pods"}, {"group", ""}, {"version", "v1"}, {"resource", "pods"}};
  using Type = metrics::Sample::Type;
  for (const auto& [name, type] :
       std::map<std::string, Type>{{"informer_queued_items", Type::kGauge},
                                   {"informer_processing_latency_seconds", Type::kHistogram},
                                   {"informer_store_resource_version", Type::kGauge}}) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_EQ(found[name].type, type) << name;
    EXPECT_EQ(found[name].labels, labels) << name;
  }
  EXPECT_EQ(found["informer_queued_items"].value, 0);
  EXPECT_EQ(found["informer_store_resource_version"].value, 101);
  const auto& latency = found["informer_processing_latency_seconds"];
  EXPECT_EQ(latency.count, 1u);
  EXPECT_EQ(latency.buckets.front().first, 0.001);
  EXPECT_EQ(latency.buckets.back(), (std::pair<double, std::uint64_t>{10, 1}));
}

TEST_F(HandlerEndTest, HandlersHaveMetrics) {
  auto& informer = run();
  auto registration = informer.add_handler(slow());
  source_->put("a/x");
  source_->put("a/y");
  ASSERT_TRUE(held_up_.wait());
  settle();
  const auto samples = [&](const std::string& name) {
    std::vector<metrics::Sample> all;
    informer.collect(all);
    for (auto& sample : all) {
      if (sample.name != name) continue;
      EXPECT_EQ(sample.labels,
                (metrics::Collector::Labels{{"name", "pods"}, {"handler", "recorder"}}));
      return sample;
    }
    return metrics::Sample{};
  };
  EXPECT_TRUE(lookout::test::eventually(
      [&] { return samples("informer_handler_pending_notifications").value == 2; }));
  EXPECT_GE(samples("informer_handler_queue_latency_seconds").count, 1u);
  go_on_.open();
  EXPECT_TRUE(lookout::test::eventually(
      [&] { return samples("informer_handler_duration_seconds").count >= 1; }));
  const auto exceptions = samples("informer_handler_exceptions_total");
  EXPECT_EQ(exceptions.name, "informer_handler_exceptions_total");
  EXPECT_EQ(exceptions.value, 0);
}

}  // namespace
}  // namespace lookout::informer
