// The notifications of handlers, including misbehaving ones.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <memory>

#include "lookout/k8s/core/v1.h"
#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::informer {
namespace {

using lookout::test::PodSpec;

class HandlersTest : public test::InformerTest {};

PodSpec on(std::string node) { return {{}, std::move(node), {}}; }
auto is_on(std::string node) {
  return
      [node](const api::Object& object) { return object["spec"]["nodeName"].as_string() == node; };
}

// ------------------------------------------------------------------------------------- filters

TEST_F(HandlersTest, AFilterTurnsUpdatesIntoAdditionsAndDeletions) {
  source_->put("a/in", on("n1"));   // 101
  source_->put("a/out", on("n2"));  // 102
  Recorder recorder;
  auto handler = recorder.handler();
  handler.filter = is_on("n1");
  auto& informer = make();
  informer.add_handler(std::move(handler)).release();
  informer.start();
  settle();
  source_->put("a/in", on("n1"));   // 103
  source_->put("a/in", on("n2"));   // 104
  source_->put("a/in", on("n2"));   // 105
  source_->put("a/in", on("n1"));   // 106
  source_->remove("a/in");          // 107
  source_->put("a/out", on("n2"));  // 108
  source_->remove("a/out");         // 109
  source_->put("a/out", on("n1"));  // 110
  EXPECT_THAT(recorder.wait(6), ElementsAre("+a/in@101i", "~a/in@101>103", "-a/in@103", "+a/in@106",
                                            "-a/in@107", "+a/out@110"));
}

TEST_F(HandlersTest, ALateHandlerReceivesObjectsThatPassItsFilter) {
  source_->put("a/in", on("n1"));
  source_->put("a/out", on("n2"));
  auto& informer = run();
  Recorder recorder;
  auto handler = recorder.handler();
  handler.filter = is_on("n1");
  const auto registration = informer.add_handler(std::move(handler));
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_THAT(recorder.events(), ElementsAre("+a/in@101i"));
}

TEST_F(HandlersTest, ADeletionIsDeliveredEvenIfTheLastStateFailsTheFilter) {
  // The deletion has an object that would not pass the filter.
  Recorder recorder;
  auto handler = recorder.handler();
  handler.filter = [](const api::Object& object) { return object.resource_version() == "101"; };
  run().add_handler(std::move(handler)).release();
  source_->put("a/x");
  source_->remove("a/x");
  EXPECT_THAT(recorder.wait(2), ElementsAre("+a/x@101", "-a/x@102"));
}

TEST_F(HandlersTest, FunctionsMayBeMissing) {
  auto& informer = make();
  informer.add_handler({}).release();
  // The filter may be called once more until the informer is shut down.
  const auto asked = std::make_shared<std::atomic<int>>(0);
  informer.add_handler({.filter = [asked](const api::Object&) { return ++*asked > 0; }}).release();
  informer.start();
  settle();
  source_->put("a/x", on("n1"));
  source_->put("a/x", on("n2"));
  source_->remove("a/x");
  EXPECT_TRUE(eventually([&] { return *asked >= 3; }));
}

TEST_F(HandlersTest, AnEmptyFunctionIsMissingToo) {
  using ObjectOnly = std::function<void(const api::Object&)>;
  using OfPod = std::function<void(const k8s::core::v1::Pod&)>;
  const auto typed =
      untyped(EventHandler<k8s::core::v1::Pod>{.on_add = OfPod(), .on_delete = OfPod()});
  EXPECT_FALSE(typed.on_add);
  EXPECT_FALSE(typed.on_delete);
  EventHandler<api::Object> handler{.on_add = ObjectOnly(), .on_delete = ObjectOnly()};
  void (*const none)(const api::Object&) = nullptr;
  EXPECT_FALSE(EventHandler<api::Object>{.on_add = none}.on_add);
  std::promise<void> updated;
  handler.on_update = [&](const api::Object&, const api::Object&) { updated.set_value(); };
  auto registration = run().add_handler(std::move(handler));
  source_->put("a/x", on("n1"));
  source_->put("a/x", on("n2"));
  source_->remove("a/x");
  lookout::test::wait_for(updated.get_future());
  settle();
  registration.drain();
  EXPECT_EQ(registration.exceptions(), 0u);
}

// -------------------------------------------------------------------------------------- synced

TEST_F(HandlersTest, OnSyncedIsCalledOnceAfterInitialEvents) {
  source_->put("a/x");
  source_->put("a/y");
  Recorder early;
  Recorder late;
  const auto with_mark = [](Recorder& recorder) {
    auto handler = recorder.handler();
    handler.on_synced = [&recorder] { recorder.note("synced"); };
    return handler;
  };
  auto& informer = make();
  const auto first = informer.add_handler(with_mark(early));
  informer.start();
  EXPECT_TRUE(first.wait_for_sync());
  const auto second = informer.add_handler(with_mark(late));
  EXPECT_TRUE(second.wait_for_sync());
  settle();
  while_away([] {});  // a relist does not call on_synced again
  source_->put("a/z");
  for (const Recorder* recorder : {&early, &late}) {
    const auto events = recorder->wait(6);
    EXPECT_THAT(Recorder::Events(events.begin(), events.begin() + 3),
                UnorderedElementsAre("+a/x@101i", "+a/y@102i", "synced"));
    EXPECT_EQ(events[2], "synced");
    EXPECT_EQ(std::count(events.begin(), events.end(), "synced"), 1);
  }
}

// ---------------------------------------------------------------------------------- exceptions

/// The function that throws, and the exception.
enum class Throws { kFilter, kAdd, kUpdate, kDelete, kSynced };
class HandlerExceptionTest : public test::InformerTest,
                             public testing::WithParamInterface<std::tuple<Throws, bool>> {
 protected:
  void maybe_throw(Throws here) const {
    const auto [where, an_exception] = GetParam();
    if (where != here) return;
    if (an_exception) throw std::runtime_error("oh no");
    throw 7;
  }
};

TEST_P(HandlerExceptionTest, IsCountedAndTheHandlerContinues) {
  Recorder recorder;
  Recorder other;
  EventHandler<api::Object> handler = recorder.handler("throws");
  handler.filter = [&](const api::Object& object) {
    if (object.name() == "bad") maybe_throw(Throws::kFilter);
    return true;
  };
  handler.on_add = [&, f = handler.on_add](const api::Object& object, Origin origin) {
    if (object.name() == "bad") maybe_throw(Throws::kAdd);
    f(object, origin);
  };
  handler.on_update = [&, f = handler.on_update](const api::Object& a, const api::Object& b) {
    if (b.name() == "bad") maybe_throw(Throws::kUpdate);
    f(a, b);
  };
  handler.on_delete = [&, f = handler.on_delete](const api::Object& object,
                                                 FinalState final_state) {
    if (object.name() == "bad") maybe_throw(Throws::kDelete);
    f(object, final_state);
  };
  handler.on_synced = [&] { maybe_throw(Throws::kSynced); };
  auto& informer = make();
  const auto registration = informer.add_handler(std::move(handler));
  const auto other_registration = informer.add_handler(other.handler());
  informer.start();
  settle();
  EXPECT_TRUE(registration.wait_for_sync());
  for (const char* key : {"a/bad", "a/good"}) {
    source_->put(key);
    source_->put(key);
    source_->remove(key);
  }
  const auto events = recorder.wait_for("-a/good@106");
  const Recorder::Events all = {"+a/bad@101",  "~a/bad@101>102",  "-a/bad@103",
                                "+a/good@104", "~a/good@104>105", "-a/good@106"};
  Recorder::Events expected = all;
  switch (std::get<0>(GetParam())) {
    case Throws::kFilter:
      expected.erase(expected.begin(), expected.begin() + 3);
      break;
    case Throws::kAdd:
    case Throws::kUpdate:
    case Throws::kDelete:
      expected.erase(expected.begin() + static_cast<int>(std::get<0>(GetParam())) - 1);
      break;
    case Throws::kSynced:
      break;
  }
  EXPECT_EQ(events, expected);
  EXPECT_GE(registration.exceptions(), 1u);
  EXPECT_EQ(other.wait_for("-a/good@106"), all) << "nobody else notices";
  EXPECT_EQ(other_registration.exceptions(), 0u);
}

std::string exception_name(const testing::TestParamInfo<std::tuple<Throws, bool>>& test) {
  constexpr const char* kNames[] = {"Filter", "Add", "Update", "Delete", "Synced"};
  return std::string(kNames[static_cast<int>(std::get<0>(test.param))]) +
         (std::get<1>(test.param) ? "Exception" : "Number");
}
INSTANTIATE_TEST_SUITE_P(, HandlerExceptionTest,
                         testing::Combine(testing::Values(Throws::kFilter, Throws::kAdd,
                                                          Throws::kUpdate, Throws::kDelete,
                                                          Throws::kSynced),
                                          testing::Bool()),
                         exception_name);

// -------------------------------------------------------------------------------- slow handlers

TEST_F(HandlersTest, BlockedHandlersDoNotDelayOthers) {
  auto& informer = run();
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  constexpr int kHeldUp = 6;  // more than the pool usually has threads
  std::vector<HandlerRegistration> held_up;
  std::vector<std::unique_ptr<Recorder>> recorders;
  std::latch stuck(kHeldUp);
  for (int i = 0; i < kHeldUp; ++i) {
    auto& recorder = *recorders.emplace_back(std::make_unique<Recorder>());
    auto handler = recorder.handler();
    handler.on_add = [&, f = handler.on_add, first = true](const api::Object& object,
                                                           Origin origin) mutable {
      if (std::exchange(first, false)) {
        stuck.count_down();
        lookout::test::wait_for(gone);
      }
      f(object, origin);
    };
    held_up.push_back(informer.add_handler(std::move(handler)));
  }
  Recorder quick;
  const auto registration = informer.add_handler(quick.handler());
  source_->put("a/0");
  lookout::test::wait_for(stuck);
  EXPECT_GT(pool_->threads(), 2u) << "the pool has grown";
  for (int i = 1; i < 100; ++i) source_->put("a/" + std::to_string(i));
  settle();
  EXPECT_EQ(informer.store().size(), 100u);
  EXPECT_EQ(quick.wait(100).size(), 100u);
  EXPECT_TRUE(eventually([&] { return registration.backlog() == 0; }));
  for (const auto& slow : held_up) EXPECT_EQ(slow.backlog(), 100u);
  go.set_value();
  for (const auto& recorder : recorders) EXPECT_EQ(recorder->wait(100), quick.events());
  EXPECT_TRUE(eventually([&] {
    return std::all_of(held_up.begin(), held_up.end(),
                       [](const auto& slow) { return slow.backlog() == 0; });
  }));
}

TEST_F(HandlersTest, AFullPoolDoesNotDelayTheInformer) {
  HandlerPoolOptions options;
  options.threads = options.max_threads = 1;
  pool_ = std::make_shared<HandlerPool>(loop_, options);
  std::promise<void> go;
  pool_->post([&] { lookout::test::wait_for(go.get_future()); });
  source_->put("a/x");
  Recorder recorder;
  auto& informer = make();
  const auto registration = informer.add_handler(recorder.handler());
  informer.start();
  EXPECT_TRUE(informer.wait_for_sync());
  source_->put("a/y");
  settle();
  EXPECT_EQ(informer.store().size(), 2u);
  EXPECT_EQ(registration.backlog(), 2u);
  EXPECT_FALSE(registration.has_synced());
  go.set_value();
  EXPECT_THAT(recorder.wait(2), ElementsAre("+a/x@101i", "+a/y@102"));
}

TEST_F(HandlersTest, ThePoolShrinksAfterHandlersContinue) {
  HandlerPoolOptions options;
  options.shrink_after = 1ms;
  pool_ = std::make_shared<HandlerPool>(loop_, options);
  auto& informer = run();
  // Shared: a handler may still wait in it when the test ends.
  const auto together = std::make_shared<std::latch>(6);
  for (int i = 0; i < 6; ++i) {
    informer
        .add_handler({.on_add =
                          [together](const api::Object&) {
                            together->count_down();
                            lookout::test::wait_for(*together);
                          }})
        .release();
  }
  source_->put("a/x");
  lookout::test::wait_for(*together);
  EXPECT_TRUE(eventually([&] { return pool_->threads() == options.threads; }));
}

TEST_F(HandlersTest, TheBacklogOfALateHandlerCountsInitialEvents) {
  for (int i = 0; i < 50; ++i) source_->put("a/" + std::to_string(i));
  auto& informer = run();
  std::promise<void> begun;
  std::promise<void> go;
  const auto registration =
      informer.add_handler({.on_add = [&, first = true](const api::Object&) mutable {
        if (!std::exchange(first, false)) return;
        begun.set_value();
        lookout::test::wait_for(go.get_future());
      }});
  lookout::test::wait_for(begun.get_future());
  EXPECT_EQ(registration.backlog(), 50u);
  EXPECT_FALSE(registration.has_synced());
  go.set_value();
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_EQ(registration.backlog(), 0u);
}

TEST_F(HandlersTest, AreCalledOneAtATimeAndInOrder) {
  constexpr int kHandlers = 5;
  constexpr int kObjects = 20;
  constexpr int kChanges = 2000;
  struct State {
    std::atomic<int> inside{0};
    std::map<std::string, std::string> versions;
    int newest = 0;
    std::promise<void> done;
  };
  std::vector<std::unique_ptr<State>> states;
  auto& informer = run();
  for (int i = 0; i < kHandlers; ++i) {
    State& state = *states.emplace_back(std::make_unique<State>());
    const auto alone = [&state](const api::Object& object, auto call) {
      EXPECT_EQ(++state.inside, 1);
      // Across all objects.
      const int version = std::stoi(std::string(object.resource_version()));
      EXPECT_GT(version, std::exchange(state.newest, version));
      call();
      --state.inside;
    };
    informer
        .add_handler(
            {.on_add =
                 [&state, alone](const api::Object& object) {
                   alone(object, [&] {
                     EXPECT_TRUE(
                         state.versions.emplace(object.key(), object.resource_version()).second);
                     if (object.name() == "last") state.done.set_value();
                   });
                 },
             .on_update =
                 [&state, alone](const api::Object& before, const api::Object& after) {
                   alone(after, [&] {
                     EXPECT_EQ(std::exchange(state.versions[after.key()], after.resource_version()),
                               before.resource_version());
                     EXPECT_LT(std::stoi(std::string(before.resource_version())),
                               std::stoi(std::string(after.resource_version())));
                   });
                 },
             .on_delete =
                 [&state, alone](const api::Object& object) {
                   alone(object, [&] { EXPECT_EQ(state.versions.erase(object.key()), 1u); });
                 }})
        .release();
  }
  for (int i = 0; i < kChanges; ++i) {
    const std::string key = "a/" + std::to_string(i * 7 % kObjects);
    if (i % 5 == 4) {
      source_->remove(key);
    } else {
      source_->put(key);
    }
  }
  source_->put("a/last");
  for (const auto& state : states) {
    lookout::test::wait_for(state->done.get_future());
    std::map<std::string, std::string> expected;
    for (const auto& [key, object] : source_->contents()) expected[key] = object.resource_version();
    EXPECT_EQ(state->versions, expected);
  }
  informer.shutdown();
}

}  // namespace
}  // namespace lookout::informer
