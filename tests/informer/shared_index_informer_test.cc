#include "lookout/informer/shared_index_informer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/informer/shared_informer.h"
#include "lookout/k8s/core/v1.h"
#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout::informer {
namespace {

using lookout::test::pod;
using lookout::test::refusal;

class SharedIndexInformerTest : public test::InformerTest {};

// ------------------------------------------------------------------------- without failures

TEST_F(SharedIndexInformerTest, HoldsTheObjectsOfTheSource) {
  for (int i = 0; i < 1200; ++i) source_->put("a/" + std::to_string(i));  // several pages
  auto& informer = run();
  EXPECT_TRUE(informer.has_synced());
  EXPECT_TRUE(informer.wait_for_sync());
  EXPECT_EQ(contents(informer.store()), source_->contents());
  source_->put("a/7");
  source_->put("b/new");
  source_->remove("a/8");
  settle();
  EXPECT_EQ(contents(informer.store()), source_->contents());
  EXPECT_EQ(informer.name(), "pods");
  EXPECT_EQ(informer.last_sync_resource_version(), informer.store().resource_version());
  EXPECT_GE(informer.last_activity(), Clock::TimePoint{});
  EXPECT_EQ(informer.stats().lists, 1u);
}

TEST_F(SharedIndexInformerTest, TheStoreHasAtLeastTheDeliveredVersion) {
  source_->put("a/x");
  // The handler's thread runs concurrently with the strand that delivers to it.
  for (int round = 0; round < 50; ++round) {
    auto& informer = make();
    std::promise<std::string> found;
    Recorder recorder;
    auto handler = recorder.handler();
    handler.on_synced = [&] { found.set_value(informer.last_sync_resource_version()); };
    const auto registration = informer.add_handler(std::move(handler));
    informer.start();
    EXPECT_NE(lookout::test::get(found.get_future()), "");
    informer.shutdown();
  }
}

TEST_F(SharedIndexInformerTest, NotifiesItsHandlers) {
  source_->put("a/x");  // 101
  Recorder recorder;
  auto& informer = make();
  const auto registration = informer.add_handler(recorder.handler());
  informer.start();
  EXPECT_TRUE(registration.wait_for_sync());
  settle();
  source_->put("a/y");
  source_->put("a/x");
  source_->remove("a/x");
  EXPECT_THAT(recorder.wait(4), ElementsAre("+a/x@101i", "+a/y@102", "~a/x@101>103", "-a/x@104"));
  EXPECT_EQ(registration.exceptions(), 0u);
}

TEST_F(SharedIndexInformerTest, AHandlerMayDeleteItsObject) {
  constexpr int kThreads = 3;
  Recorder recorder;
  auto& informer = make();
  auto handler = recorder.handler();
  handler.on_update = [&, on_update = handler.on_update](const api::Object& before,
                                                         const api::Object& after) {
    on_update(before, after);
    source_->remove(after.key());
  };
  const auto registration = informer.add_handler(std::move(handler));
  informer.start();
  ASSERT_TRUE(registration.wait_for_sync());
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, key = "a/" + std::to_string(i)] {
      source_->put(key);
      source_->put(key);
    });
  }
  threads.clear();
  const auto events = recorder.wait(3 * kThreads);
  for (int i = 0; i < kThreads; ++i) {
    std::string story;
    for (const auto& event : events) {
      if (event.substr(1, 3) == "a/" + std::to_string(i)) story += event[0];
    }
    EXPECT_EQ(story, "+~-") << i;
  }
  settle();
  EXPECT_EQ(informer.store().size(), 0u);
}

TEST_F(SharedIndexInformerTest, AnInformerWithoutANameIsNamedAfterItsResource) {
  const auto loop = std::make_shared<EventLoop>(1);
  const auto pool = std::make_shared<HandlerPool>(loop);
  const auto name_of = [&](InformerOptions options) {
    return SharedIndexInformer(source_, std::move(options), loop, pool).name();
  };
  EXPECT_EQ(name_of({}), "informer");
  InformerOptions options;
  options.reflector.expected_kind = "Pod";
  EXPECT_EQ(name_of(options), "Pod");
  options.resource = {"", "v1", "pods"};
  EXPECT_EQ(name_of(options), "pods");
  options.reflector.name = "mine";
  EXPECT_EQ(name_of(options), "mine");
}

TEST_F(SharedIndexInformerTest, DoesNothingBeforeStart) {
  source_->put("a/x");
  Recorder recorder;
  auto& informer = make();
  const auto registration = informer.add_handler(recorder.handler());
  EXPECT_FALSE(informer.started());
  EXPECT_FALSE(informer.has_synced());
  EXPECT_FALSE(registration.has_synced());
  EXPECT_EQ(informer.last_sync_resource_version(), "");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(informer.wait_for_sync(stop.get_token()));
  EXPECT_FALSE(registration.wait_for_sync(stop.get_token()));
  EXPECT_EQ(source_->watches(), 0u);
  informer.start();
  informer.start();
  EXPECT_TRUE(informer.started());
  settle();
  EXPECT_EQ(source_->watches(), 1u) << "it runs once";
}

TEST_F(SharedIndexInformerTest, IsSyncedWithAnEmptyList) {
  Recorder recorder;
  auto& informer = make();
  const auto registration = informer.add_handler(recorder.handler());
  informer.start();
  EXPECT_TRUE(informer.wait_for_sync());
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_THAT(recorder.events(), IsEmpty());
}

TEST_F(SharedIndexInformerTest, IsNotSyncedBeforeTheListIsComplete) {
  source_->put("a/x");
  source_->pause();
  Recorder recorder;
  auto& informer = make();
  const auto registration = informer.add_handler(recorder.handler());
  informer.start();
  ASSERT_TRUE(source_->wait_until_held_up());
  EXPECT_FALSE(informer.has_synced());
  EXPECT_FALSE(registration.has_synced());
  source_->resume();
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_THAT(recorder.events(), ElementsAre("+a/x@101i")) << "synced comes after what it is about";
}

TEST_F(SharedIndexInformerTest, SeveralThreadsMayWaitForSync) {
  source_->put("a/x");
  source_->pause();
  auto& informer = make();
  const auto registration = informer.add_handler({});
  std::vector<std::future<bool>> waiting;
  waiting.reserve(4);
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(
        std::async(std::launch::async, [&informer] { return informer.wait_for_sync(); }));
    waiting.push_back(
        std::async(std::launch::async, [&registration] { return registration.wait_for_sync(); }));
  }
  informer.start();
  ASSERT_TRUE(source_->wait_until_held_up());
  for (auto& each : waiting) EXPECT_EQ(each.wait_for(1ms), std::future_status::timeout);
  source_->resume();
  for (auto& each : waiting) EXPECT_TRUE(lookout::test::get(each));
  // Later waits return at once.
  EXPECT_TRUE(informer.wait_for_sync());
  EXPECT_TRUE(registration.wait_for_sync());
}

// -------------------------------------------------------------------------------- late handlers

TEST_F(SharedIndexInformerTest, ALateHandlerReceivesExistingObjectsFirst) {
  source_->put("a/x");
  source_->put("a/y");
  auto& informer = run();
  source_->put("a/x");  // 103
  settle();
  Recorder recorder;
  const auto registration = informer.add_handler(recorder.handler());
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_THAT(recorder.events(), UnorderedElementsAre("+a/x@103i", "+a/y@102i"));
  source_->put("a/x");
  source_->put("a/z");
  EXPECT_THAT(Recorder::Events(recorder.wait(4)).back(), "+a/z@105");
  EXPECT_EQ(recorder.events()[2], "~a/x@103>104");
}

TEST_F(SharedIndexInformerTest, HandlersAddedInABurstMissNothing) {
  auto& informer = run();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) source_->put("a/" + std::to_string(i % 10));
    done = true;
  });
  std::deque<Recorder> recorders;
  do {
    informer.add_handler(recorders.emplace_back().handler()).release();
    if (recorders.size() > 50) std::this_thread::yield();
    if (recorders.size() > 200) break;
  } while (!done);
  writer.join();
  settle();
  const auto last = source_->put("a/last");
  for (const auto& recorder : recorders) {
    const auto events = recorder.wait_for("+a/last@" + std::string(last.resource_version()));
    // Each object starts with an addition; each update starts from the previous state.
    std::map<std::string, std::string> state;
    for (const auto& event : events) {
      const auto at = event.find('@');
      const std::string key = event.substr(1, at - 1);
      if (event[0] == '+') {
        EXPECT_FALSE(state.contains(key)) << event;
        state[key] = std::to_string(std::stoi(event.substr(at + 1)));
      } else {
        const auto arrow = event.find('>');
        EXPECT_EQ(state[key], event.substr(at + 1, arrow - at - 1)) << event;
        state[key] = event.substr(arrow + 1);
      }
    }
    EXPECT_EQ(state.size(), 11u);
    for (const auto& [key, object] : source_->contents())
      EXPECT_EQ(state[key], object.resource_version());
  }
}

// ------------------------------------------------------------------------------------ failures

TEST_F(SharedIndexInformerTest, AMissedDeletionHasTheLastKnownState) {
  source_->put("a/gone");     // 101
  source_->put("a/stays");    // 102
  source_->put("a/changes");  // 103
  Recorder recorder;
  run().add_handler(recorder.handler()).release();
  recorder.wait(3);
  while_away([&] {
    source_->remove("a/gone");
    source_->put("a/changes");  // 105
    source_->put("a/new");      // 106
  });
  const auto events = recorder.wait(7);
  EXPECT_THAT(
      Recorder::Events(events.begin() + 3, events.end()),
      UnorderedElementsAre("-a/gone@101?", "~a/stays@102>102", "~a/changes@103>105", "+a/new@106"));
  EXPECT_EQ(contents(informer_->store()), source_->contents());
}

TEST_F(SharedIndexInformerTest, AnObjectReplacedDuringADisconnectIsUpdated) {
  source_->put("a/x");  // 101
  Recorder recorder;
  run().add_handler(recorder.handler()).release();
  recorder.wait(1);
  while_away([&] {
    source_->remove("a/x");
    source_->put("a/x");  // 103
  });
  EXPECT_EQ(recorder.wait(2).back(), "~a/x@101>103");
}

TEST_F(SharedIndexInformerTest, ContinuesAfterALostConnection) {
  Recorder recorder;
  auto& informer = run();
  informer.add_handler(recorder.handler()).release();
  for (int i = 0; i < 5; ++i) {
    source_->put("a/x");
    settle();
    i % 2 == 0 ? source_->disconnect() : source_->break_connections();
    source_->put("a/y");
    settle();
  }
  EXPECT_EQ(informer.stats().lists, 1u) << "nothing was missed: no new list";
  EXPECT_EQ(recorder.wait(10).size(), 10u);
  EXPECT_EQ(contents(informer.store()), source_->contents());
}

TEST_F(SharedIndexInformerTest, ContinuesAfterErrors) {
  options_.reflector.use_watch_list = false;
  std::vector<std::string> errors;
  options_.reflector.watch_error_handler = [&](std::string_view, const std::exception& e) {
    errors.push_back(e.what());
  };
  source_->fail_list(rest::TransportError(rest::TransportError::Kind::kRefused, "refused"));
  source_->fail_list(api::StatusError::forbidden("", "pods", "", "not you"));
  source_->fail_watch(api::StatusError::internal_error("oops"));
  source_->put("a/x");
  auto& informer = run();
  EXPECT_EQ(contents(informer.store()), source_->contents());
  source_->put("a/y");
  settle();
  source_->send_error(api::StatusError::expired("too old"));
  source_->put("a/z");
  settle();
  EXPECT_EQ(contents(informer.store()), source_->contents());
  EXPECT_EQ(errors.size(), 4u);
}

TEST_F(SharedIndexInformerTest, ReportsTheLastFailureUntilItIsLive) {
  options_.reflector.use_watch_list = false;
  auto& informer = make();
  EXPECT_FALSE(informer.last_failure().has_value());
  std::vector<cache::ReflectorFailure> failures;
  informer.set_watch_error_handler([&](std::string_view, const std::exception&) {
    failures.push_back(informer.last_failure().value_or(cache::ReflectorFailure{}));
  });
  source_->fail_list(rest::TransportError(rest::TransportError::Kind::kRefused, "refused"));
  source_->fail_list(api::StatusError::forbidden("", "pods", "", "not you"));
  informer.start();
  settle();
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].message, "refused");
  EXPECT_EQ(failures[0].status, 0);
  EXPECT_NE(failures[1].message.find("not you"), std::string::npos);
  EXPECT_EQ(failures[1].status, 403);
  EXPECT_TRUE(informer.live_since().has_value());
  EXPECT_FALSE(informer.last_failure().has_value());
}

TEST_F(SharedIndexInformerTest, ARepeatedEventIsNoSecondAddition) {
  Recorder recorder;
  run().add_handler(recorder.handler()).release();
  source_->put("a/x");  // 101
  source_->repeat();
  source_->put("a/x");  // 102
  EXPECT_THAT(recorder.wait(3), ElementsAre("+a/x@101", "~a/x@101>101", "~a/x@101>102"));
}

TEST_F(SharedIndexInformerTest, ARecreatedObjectIsAnAddition) {
  Recorder recorder;
  run().add_handler(recorder.handler()).release();
  source_->put("a/x");
  source_->remove("a/x");
  source_->put("a/x");
  source_->remove("a/x");
  EXPECT_THAT(recorder.wait(4), ElementsAre("+a/x@101", "-a/x@102", "+a/x@103", "-a/x@104"));
}

TEST_F(SharedIndexInformerTest, AResyncDeliversEveryObjectAgain) {
  options_.reflector.resync_period = 10min;
  const auto x = source_->put("a/x");
  std::promise<bool> same;
  auto& informer = make();
  informer
      .add_handler({.on_update =
                        [&](const api::Object& before, const api::Object& after) {
                          same.set_value(before.same(after) && after == x);
                        }})
      .release();
  informer.start();
  settle();
  clock_->advance(10min);
  EXPECT_TRUE(lookout::test::get(same.get_future()));
  EXPECT_EQ(source_->watches(), 1u);
}

// ------------------------------------------------------------------------ indexes and transform

TEST_F(SharedIndexInformerTest, IndexesCanBeAddedAtAnyTime) {
  const auto by_node = [](const api::Object& object, cache::IndexValues& values) {
    values.add(object["spec"]["nodeName"].as_string());
  };
  options_.indexers = {{"first", by_node}};
  source_->put("a/x", {{}, "n1", {}});
  auto& informer = make();
  informer.add_indexers({{"before", by_node}});
  informer.start();
  settle();
  informer.add_indexers({{"after", by_node}});
  source_->put("b/y", {{}, "n1", {}});
  settle();
  for (const char* index : {"first", "before", "after"})
    EXPECT_THAT(informer.store().index_keys(index, "n1"), UnorderedElementsAre("a/x", "b/y"));
  EXPECT_THAT(informer.store().index_keys(cache::kNamespaceIndex, "b"), ElementsAre("b/y"));
  EXPECT_THROW(informer.add_indexers({{"after", by_node}}), InvalidArgument);
}

TEST_F(SharedIndexInformerTest, AnIndexWithoutAFunctionIsRefused) {
  using Typed = std::function<std::string(const k8s::core::v1::Pod&)>;
  const std::string message = R"(the function of the index "empty" is empty)";
  auto& informer = make();
  EXPECT_EQ(refusal<InvalidArgument>([&] {
              informer.add_indexers({{"empty", cache::IndexFunc()}});
            }),
            message);
  EXPECT_EQ(refusal<InvalidArgument>([&] {
              informer.add_indexers({{"empty", index_func<k8s::core::v1::Pod>(Typed())}});
            }),
            message);
  options_.indexers = {{"empty", cache::IndexFunc()}};
  EXPECT_EQ(refusal<InvalidArgument>([&] { make(); }), message);
}

TEST_F(SharedIndexInformerTest, CountsTheExceptionsOfIndexFunctions) {
  const SharedIndexInformer& informer = run();
  informer_->add_indexers({{"picky", [](const api::Object&, cache::IndexValues&) {
                              throw std::runtime_error("no value");
                            }}});
  source_->put("shop/a");
  settle();
  std::vector<metrics::Sample> samples;
  informer.collect(samples);
  const auto failures =
      std::ranges::find(samples, "informer_index_failures_total", &metrics::Sample::name);
  ASSERT_NE(failures, samples.end());
  EXPECT_GE(failures->value, 1);
}

TEST_F(SharedIndexInformerTest, StoresTransformedObjects) {
  options_.transform = [](const api::Object& object) {
    return pod(object.key(), object.resource_version(), {{}, {}, "transformed"});
  };
  source_->put("a/x");
  auto& informer = run();
  source_->put("a/y");
  settle();
  EXPECT_EQ(informer.store().size(), 2u);
  for (const auto& object : informer.store().snapshot())
    EXPECT_EQ(object.annotations()["note"].as_string(), "transformed");
}

TEST_F(SharedIndexInformerTest, HandlersReceiveTransformedObjects) {
  options_.transform = [](const api::Object& object) {
    return pod(object.key(), object.resource_version(),
               {{}, {}, "made of " + std::string(object.annotations()["note"].as_string())});
  };
  const auto note = [](const api::Object& object) {
    return object.key() + ": " + std::string(object.annotations()["note"].as_string());
  };
  Recorder recorder;
  auto& informer = make();
  auto registration = informer.add_handler(
      {.on_add = [&](const api::Object& o) { recorder.note("+" + note(o)); },
       .on_update =
           [&](const api::Object& before, const api::Object& after) {
             recorder.note("~" + note(before) + " > " + note(after));
           },
       .on_delete = [&](const api::Object& last) { recorder.note("-" + note(last)); }});
  source_->put("a/x", {{}, {}, "1"});
  informer.start();
  settle();
  source_->put("a/x", {{}, {}, "2"});
  source_->remove("a/x");
  settle();
  EXPECT_THAT(recorder.wait(3), ElementsAre("+a/x: made of 1", "~a/x: made of 1 > a/x: made of 2",
                                            "-a/x: made of 2"));
  registration.remove();
}

TEST_F(SharedIndexInformerTest, TheStoreHasItsVersionIfTheTransformRemovesIt) {
  options_.transform = [](const api::Object& object) { return pod(object.key(), ""); };
  source_->put("a/x");  // 101
  auto& informer = run();
  EXPECT_EQ(informer.store().resource_version(), "101");
  source_->put("a/x");
  source_->remove("a/x");
  settle();
  EXPECT_EQ(informer.store().resource_version(), "103");
  while_away([&] { source_->put("a/y"); });
  EXPECT_EQ(informer.store().resource_version(), source_->resource_version());
  EXPECT_EQ(informer.store().get("a", "y").resource_version(), "");
}

TEST_F(SharedIndexInformerTest, IgnoresObjectsOfAnotherKind) {
  options_.reflector.expected_kind = "Node";
  source_->put("a/x");
  auto& informer = run();
  source_->put("a/y");
  settle();
  EXPECT_EQ(informer.store().size(), 0u);
  EXPECT_GE(informer.stats().skipped, 2u);
  EXPECT_FALSE(informer.live()) << "it does not have what the server has";
  EXPECT_GE(informer.stats().unreadable, 1u);
}

TEST_F(SharedIndexInformerTest, HasATypedInterface) {
  source_->put("shop/x", {{{"app", "web"}, {"tier", "front"}}, "n1", {}});
  source_->put("shop/y", {{{"app", "db"}}, "n1", {}});
  source_->put("bank/z", {{{"app", "web"}}, "n2", {}});
  const SharedInformer<k8s::core::v1::Pod> pods(
      std::make_shared<SharedIndexInformer>(source_, options_, loop_, pool_),
      k8s::core::v1::Pod::kResource);
  pods.add_index("node", [](const k8s::core::v1::Pod& p) { return p.spec().node_name(); });
  pods.add_index("labels", [](const k8s::core::v1::Pod& p) {
    std::vector<std::string> out;
    for (const auto& [name, value] : p.labels().members())
      out.push_back(std::string(name) + "=" + std::string(value.as_string()));
    return out;
  });
  std::promise<std::string> added;
  const auto registration = pods.add_handler(
      {.filter = [](const k8s::core::v1::Pod& p) { return p.spec().node_name() == "n2"; },
       .on_add =
           [&](const k8s::core::v1::Pod& p, Origin origin) {
             added.set_value(p.key() + (origin == Origin::kInitialList ? " initial" : ""));
           }});
  pods.start();
  EXPECT_TRUE(pods.wait_for_sync());
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_TRUE(pods.has_synced());
  EXPECT_EQ(lookout::test::get(added.get_future()), "bank/z initial");
  std::vector<std::string> on_n1;
  for (const auto& p : pods.by_index("node", "n1")) on_n1.push_back(p.key());
  EXPECT_THAT(on_n1, UnorderedElementsAre("shop/x", "shop/y"));
  EXPECT_EQ(pods.by_index("labels", "app=web").size(), 2u);
  EXPECT_EQ(lookout::test::held(pods.lister().ns("shop").get("x")).spec().node_name(), "n1");
  EXPECT_EQ(&pods.untyped_informer().store(), pods.untyped_informer().shared_store().get());
  pods.stop();
  EXPECT_TRUE(pods.untyped_informer().stopped());
}

TEST_F(SharedIndexInformerTest, TypedHandlersReceiveEveryNotification) {
  using k8s::core::v1::Pod;
  options_.reflector.resync_period = 1h;
  const SharedInformer<Pod> pods(
      std::make_shared<SharedIndexInformer>(source_, options_, loop_, pool_), Pod::kResource);
  Recorder recorder;
  std::promise<void> synced;
  source_->put("a/x", {{}, "n1", {}});
  const auto told = pods.add_handler(
      {.on_add =
           [&](const Pod& p, Origin origin) {
             recorder.note("+" + p.key() +
                           (origin == Origin::kInitialList ? " at first on " : " on ") +
                           std::string(p.spec().node_name()));
           },
       .on_update =
           [&](const Pod& before, const Pod& after) {
             recorder.note("~" + after.key() + " from " + std::string(before.spec().node_name()) +
                           " to " + std::string(after.spec().node_name()));
           },
       .on_delete =
           [&](const Pod& last, FinalState final_state) {
             recorder.note("-" + last.key() +
                           (final_state == FinalState::kUnknown ? " perhaps on " : " on ") +
                           std::string(last.spec().node_name()));
           },
       .on_synced = [&] { synced.set_value(); },
       .name = "typed"});
  // Any of the functions may be missing.
  Recorder updates;
  const auto some = pods.add_handler({.on_update = [&](const Pod&, const Pod& after) {
    updates.note(std::string(after.spec().node_name()));
  }});
  // With a filter, and with options.
  Recorder on_n2;
  const auto filtered =
      pods.add_handler({.filter = [](const Pod& p) { return p.spec().node_name() == "n2"; },
                        .on_add = [&](const Pod& p) { on_n2.note("+" + p.key()); },
                        .on_update = [&](const Pod&, const Pod& p) { on_n2.note("~" + p.key()); },
                        .on_delete = [&](const Pod& p) { on_n2.note("-" + p.key()); }},
                       {.resync_period = 2h});
  EXPECT_EQ(told.name(), "typed");
  EXPECT_EQ(told.resync_period(), 1h);
  EXPECT_EQ(filtered.resync_period(), 2h);
  pods.start();
  lookout::test::wait_for(synced.get_future());
  settle();
  source_->put("a/x", {{}, "n2", {}});
  source_->put("a/y", {{}, "n3", {}});
  source_->remove("a/x");
  settle();
  while_away([&] { source_->remove("a/y"); });
  EXPECT_THAT(recorder.wait(5), ElementsAre("+a/x at first on n1", "~a/x from n1 to n2",
                                            "+a/y on n3", "-a/x on n2", "-a/y perhaps on n3"));
  EXPECT_THAT(updates.wait(1), ElementsAre("n2"));
  EXPECT_THAT(on_n2.wait(2), ElementsAre("+a/x", "-a/x"));
  EXPECT_EQ(told.exceptions() + some.exceptions(), 0u);
  pods.untyped_informer().shutdown();
}

TEST_F(SharedIndexInformerTest, AHandlerMayBeAddedConcurrentlyWithTheStart) {
  source_->put("a/x");
  for (int round = 0; round < 50; ++round) {
    Recorder recorder;
    auto& informer = make();
    std::thread adder([&] { informer.add_handler(recorder.handler()).release(); });
    informer.start();
    adder.join();
    EXPECT_THAT(recorder.wait(1), ElementsAre("+a/x@101i"));
    informer.shutdown();
    EXPECT_EQ(recorder.events().size(), 1u);
  }
}

TEST_F(SharedIndexInformerTest, AHandlerMayBeAddedConcurrentlyWithStartAndStop) {
  for (int round = 0; round < 50; ++round) {
    auto& informer = make();
    std::thread adder([&] {
      try {
        informer.add_handler({.on_add = [](const api::Object&) {}}).wait_for_sync();
      } catch (const InvalidArgument&) {
        // The informer had stopped.
      }
    });
    std::thread starter([&] { informer.start(); });
    informer.stop();
    adder.join();
    starter.join();
    informer.shutdown();
  }
}

}  // namespace
}  // namespace lookout::informer
