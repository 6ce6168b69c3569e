#include "lookout/informer/shared_index_informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "lookout/api/core/v1.h"
#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/informer/shared_informer.h"
#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/eventually.h"
#include "tests/support/own_resources.h"

namespace lookout::informer {
namespace {

using namespace std::chrono_literals;
using lookout::test::pod;
using test::FakeClock;
using test::FakeSource;
using test::Recorder;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::map<std::string, api::Object> contents(const cache::Indexer& store) {
  std::map<std::string, api::Object> out;
  for (const auto& object : store.snapshot()) out[object.key()] = object;
  return out;
}

class SharedIndexInformerTest : public test::InformerTest {};

// ------------------------------------------------------------------------------- the normal way

TEST_F(SharedIndexInformerTest, KeepsWhatTheSourceHas) {
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

TEST_F(SharedIndexInformerTest, TellsItsHandlers) {
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

TEST_F(SharedIndexInformerTest, NothingHappensBeforeTheStart) {
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

TEST_F(SharedIndexInformerTest, IsSyncedWithNothing) {
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

// -------------------------------------------------------------------------------- late handlers

TEST_F(SharedIndexInformerTest, ALateHandlerIsFirstToldOfWhatIsThere) {
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
  while (!done) {
    informer.add_handler(recorders.emplace_back().handler());
    if (recorders.size() > 50) std::this_thread::yield();
    if (recorders.size() > 200) break;
  }
  writer.join();
  settle();
  const auto last = source_->put("a/last");
  for (const auto& recorder : recorders) {
    const auto events = recorder.wait_for("+a/last@" + std::string(last.resource_version()));
    // Each object begins with an addition; each update begins where the last state ended.
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

// ------------------------------------------------------------------------------------- trouble

TEST_F(SharedIndexInformerTest, ADeletionThatWasMissedIsToldWithTheLastKnownState) {
  source_->put("a/gone");     // 101
  source_->put("a/stays");    // 102
  source_->put("a/changes");  // 103
  Recorder recorder;
  run().add_handler(recorder.handler());
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

TEST_F(SharedIndexInformerTest, AnObjectThatWasReplacedWhileNobodyLookedIsUpdated) {
  source_->put("a/x");  // 101
  Recorder recorder;
  run().add_handler(recorder.handler());
  recorder.wait(1);
  while_away([&] {
    source_->remove("a/x");
    source_->put("a/x");  // 103
  });
  EXPECT_EQ(recorder.wait(2).back(), "~a/x@101>103");
}

TEST_F(SharedIndexInformerTest, GoesOnAfterALostConnection) {
  Recorder recorder;
  auto& informer = run();
  informer.add_handler(recorder.handler());
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

TEST_F(SharedIndexInformerTest, GoesOnAfterErrors) {
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

TEST_F(SharedIndexInformerTest, WhatIsSaidTwiceIsNoSecondAddition) {
  Recorder recorder;
  run().add_handler(recorder.handler());
  source_->put("a/x");  // 101
  source_->repeat();
  source_->put("a/x");  // 102
  EXPECT_THAT(recorder.wait(3), ElementsAre("+a/x@101", "~a/x@101>101", "~a/x@101>102"));
}

TEST_F(SharedIndexInformerTest, AnObjectThatComesAgainIsANewOne) {
  Recorder recorder;
  run().add_handler(recorder.handler());
  source_->put("a/x");
  source_->remove("a/x");
  source_->put("a/x");
  source_->remove("a/x");
  EXPECT_THAT(recorder.wait(4), ElementsAre("+a/x@101", "-a/x@102", "+a/x@103", "-a/x@104"));
}

TEST_F(SharedIndexInformerTest, AResyncTellsEverythingAgain) {
  options_.reflector.resync_period = 10min;
  const auto x = source_->put("a/x");
  std::promise<bool> same;
  auto& informer = make();
  informer.add_handler({.on_update = [&](const api::Object& before, const api::Object& after) {
    same.set_value(before.same(after) && after == x);
  }});
  informer.start();
  settle();
  clock_->advance(10min);
  EXPECT_TRUE(same.get_future().get());
  EXPECT_EQ(source_->watches(), 1u);
}

// ------------------------------------------------------------------------ indexes and transform

TEST_F(SharedIndexInformerTest, TakesIndexesAtAnyTime) {
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

TEST_F(SharedIndexInformerTest, KeepsWhatTheTransformMakes) {
  options_.transform = [](const api::Object& object) {
    return pod(object.key(), object.resource_version(), {{}, {}, "transformed"});
  };
  source_->put("a/x");
  auto& informer = run();
  source_->put("a/y");
  settle();
  for (const auto& object : informer.store().snapshot())
    EXPECT_EQ(object.annotations()["note"].as_string(), "transformed");
}

TEST_F(SharedIndexInformerTest, TheStoreKnowsItsVersionWhateverTheTransformKeeps) {
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

TEST_F(SharedIndexInformerTest, LeavesOutObjectsOfAnotherKind) {
  options_.reflector.expected_kind = "Node";
  source_->put("a/x");
  auto& informer = run();
  source_->put("a/y");
  settle();
  EXPECT_EQ(informer.store().size(), 0u);
  EXPECT_EQ(informer.stats().skipped, 2u);
}

TEST_F(SharedIndexInformerTest, HasATypedSkin) {
  source_->put("shop/x", {{{"app", "web"}, {"tier", "front"}}, "n1", {}});
  source_->put("shop/y", {{{"app", "db"}}, "n1", {}});
  source_->put("bank/z", {{{"app", "web"}}, "n2", {}});
  const SharedInformer<core::v1::Pod> pods(
      std::make_shared<SharedIndexInformer>(source_, options_, loop_, pool_),
      core::v1::Pod::kResource);
  pods.add_index("node", [](const core::v1::Pod& p) { return p.spec().node_name(); });
  pods.add_index("labels", [](const core::v1::Pod& p) {
    std::vector<std::string> out;
    for (const auto& [name, value] : p.labels().members())
      out.push_back(std::string(name) + "=" + std::string(value.as_string()));
    return out;
  });
  std::promise<std::string> added;
  const auto registration = pods.add_handler(
      {.filter = [](const core::v1::Pod& p) { return p.spec().node_name() == "n2"; },
       .on_add = [&](const core::v1::Pod& p,
                     bool initial) { added.set_value(p.key() + (initial ? " initial" : "")); }});
  pods.start();
  EXPECT_TRUE(pods.wait_for_sync());
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_TRUE(pods.has_synced());
  EXPECT_EQ(added.get_future().get(), "bank/z initial");
  std::vector<std::string> on_n1;
  for (const auto& p : pods.by_index("node", "n1")) on_n1.push_back(p.key());
  EXPECT_THAT(on_n1, UnorderedElementsAre("shop/x", "shop/y"));
  EXPECT_EQ(pods.by_index("labels", "app=web").size(), 2u);
  EXPECT_EQ(pods.lister().ns("shop").get("x").spec().node_name(), "n1");
  EXPECT_EQ(&pods.untyped_informer().store(), pods.untyped_informer().shared_store().get());
  pods.stop();
  EXPECT_TRUE(pods.untyped_informer().stopped());
}

// -------------------------------------------------------------------------------------- the end

TEST_F(SharedIndexInformerTest, AStopEndsItForGood) {
  source_->put("a/x");
  auto& informer = run();
  EXPECT_FALSE(informer.stopped());
  informer.stop();
  EXPECT_TRUE(informer.stopped());
  EXPECT_TRUE(informer.started()) << "it has been";
  informer.stop();
  informer.shutdown();
  EXPECT_TRUE(informer.wait_for_sync()) << "it was synced before";
  EXPECT_EQ(contents(informer.store()), source_->contents()) << "what it knew, it still knows";
  informer.start();
  source_->put("a/y");
  EXPECT_EQ(informer.store().size(), 1u);
  EXPECT_THROW(informer.add_handler({}), InvalidArgument);
}

TEST_F(SharedIndexInformerTest, AStopDeliversWhatIsQueued) {
  Recorder recorder;
  std::promise<void> begun;
  std::promise<void> go;
  auto handler = recorder.handler();
  handler.on_add = [&, on_add = handler.on_add](const api::Object& object, bool initial) {
    if (object.key() == "a/0") {
      begun.set_value();
      go.get_future().wait();
    }
    on_add(object, initial);
  };
  auto& informer = run();
  informer.add_handler(std::move(handler));
  for (int i = 0; i < 10; ++i) source_->put("a/" + std::to_string(i));
  begun.get_future().wait();
  settle();
  informer.stop();
  go.set_value();
  EXPECT_EQ(recorder.wait(10).size(), 10u);
}

TEST_F(SharedIndexInformerTest, AStopEndsWaiting) {
  source_->pause();
  auto& informer = make();
  Recorder recorder;
  const auto registration = informer.add_handler(recorder.handler());
  informer.start();
  auto informer_synced = std::async(std::launch::async, [&] { return informer.wait_for_sync(); });
  auto handler_synced =
      std::async(std::launch::async, [&] { return registration.wait_for_sync(); });
  ASSERT_TRUE(source_->wait_until_held_up());
  informer.shutdown();
  EXPECT_FALSE(informer_synced.get());
  EXPECT_FALSE(handler_synced.get());
  EXPECT_EQ(informer.store().size(), 0u);
}

TEST_F(SharedIndexInformerTest, AStopTokenEndsWaiting) {
  source_->pause();
  auto& informer = make();
  informer.start();
  std::stop_source stop;
  auto synced =
      std::async(std::launch::async, [&] { return informer.wait_for_sync(stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(synced.get());
}

TEST_F(SharedIndexInformerTest, ShutsDownWhereverItIs) {
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 5; ++i) source_->put("a/" + std::to_string(i));
    if (round % 3 == 0) source_->fail_list(api::StatusError::internal_error("oops"));
    options_.reflector.resync_period = round % 2 == 0 ? 1h : 0h;
    std::atomic<int> calls{0};
    make();
    const auto count = [&](const api::Object&, bool) { ++calls; };
    informer_->add_handler({.on_add = count});
    informer_->start();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    informer_->shutdown();
    const int then = calls;
    source_->put("a/later");
    EXPECT_EQ(calls, then) << "nothing runs after a shutdown";
    informer_.reset();
  }
}

TEST_F(SharedIndexInformerTest, NothingIsLeftOfOneThatWasNeverStarted) {
  const std::weak_ptr<FakeSource> source = source_;
  make().add_handler({});
  const auto held = source.use_count();
  informer_.reset();
  EXPECT_LT(source.use_count(), held);
}

TEST_F(SharedIndexInformerTest, ReferencesGoInAnyOrder) {
  source_->put("a/x");
  Recorder recorder;
  auto& informer = run();
  auto registration = informer.add_handler(recorder.handler());
  EXPECT_TRUE(registration.wait_for_sync());
  const auto store = informer.shared_store();
  pool_.reset();
  loop_.reset();
  informer_.reset();
  EXPECT_EQ(store->size(), 1u);
  EXPECT_TRUE(registration.has_synced());
  EXPECT_EQ(registration.backlog(), 0u);
  registration.remove();
  registration.remove();
}

TEST_F(SharedIndexInformerTest, LeavesNoThread) {
  const auto before = lookout::test::thread_count();
  {
    const auto loop = std::make_shared<rest::EventLoop>(3);
    const auto pool = std::make_shared<HandlerPool>(loop);
    SharedIndexInformer informer(source_, options_, loop, pool);
    Recorder recorder;
    const auto registration = informer.add_handler(recorder.handler());
    informer.start();
    EXPECT_TRUE(registration.wait_for_sync());
    EXPECT_GE(lookout::test::thread_count(), before + 3);
  }
  // A thread that was joined may be listed for a moment.
  EXPECT_TRUE(lookout::test::eventually([&] { return lookout::test::thread_count() == before; }));
}

TEST_F(SharedIndexInformerTest, OnTheEventLoopNothingWaitsForItself) {
  auto& informer = run();
  source_->pause();  // a new informer does not get its list
  std::promise<void> done;
  boost::asio::post(loop_->context(), [&] {
    EXPECT_THROW(informer.shutdown(), InvalidArgument);
    EXPECT_TRUE(informer.wait_for_sync()) << "no need to wait";
    SharedIndexInformer fresh(source_, options_, loop_, pool_);
    fresh.add_handler({});
    fresh.start();
    EXPECT_THROW(fresh.wait_for_sync(), InvalidArgument);
    done.set_value();
  });  // the end of `fresh`, too
  done.get_future().wait();
}

TEST_F(SharedIndexInformerTest, AHandlerMayHoldTheLastReference) {
  for (int round = 0; round < 20; ++round) {
    auto informer = std::make_shared<SharedIndexInformer>(source_, options_, loop_, pool_);
    std::promise<void> handed_over;
    std::promise<void> gone;
    const auto slot = std::make_shared<std::shared_ptr<SharedIndexInformer>>();
    informer->add_handler({.on_add = [&, slot](const api::Object&, bool) {
      handed_over.get_future().wait();
      slot->reset();
      gone.set_value();
    }});
    source_->put("only/x");
    informer->start();
    *slot = std::move(informer);
    handed_over.set_value();
    gone.get_future().wait();
    source_->remove("only/x");
  }
}

TEST_F(SharedIndexInformerTest, AThousandShareAFewThreads) {
  for (int i = 0; i < 10; ++i) source_->put("a/" + std::to_string(i));
  const auto before = lookout::test::thread_count();
  const auto loop = std::make_shared<rest::EventLoop>();
  const auto pool = std::make_shared<HandlerPool>(loop);
  std::vector<std::unique_ptr<SharedIndexInformer>> informers;
  std::atomic<int> additions{0};
  std::vector<HandlerRegistration> registrations;
  for (int i = 0; i < 1000; ++i) {
    informers.push_back(std::make_unique<SharedIndexInformer>(source_, options_, loop, pool));
    registrations.push_back(
        informers.back()->add_handler({.on_add = [&](const api::Object&, bool) { ++additions; }}));
    informers.back()->start();
  }
  for (const auto& registration : registrations) ASSERT_TRUE(registration.wait_for_sync());
  EXPECT_EQ(additions, 10'000);
  EXPECT_LE(lookout::test::thread_count() - before, std::thread::hardware_concurrency() + 4);
  ASSERT_TRUE(source_->wait_until_watched(1000));
  source_->put("a/new");
  ASSERT_TRUE(source_->wait_until_watched(1000));
  for (const auto& informer : informers) ASSERT_EQ(informer->store().size(), 11u);
}

}  // namespace
}  // namespace lookout::informer
