#include "lookout/controller/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lookout/controller/conditions.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/gate.h"
#include "tests/support/held.h"
#include "tests/support/notes.h"
#include "tests/support/own_resources.h"

namespace lookout::controller {
namespace {

/// The requests that a reconciler got.
class Calls {
 public:
  void note(const Request& request) {
    const std::lock_guard lock(mutex_);
    ++counts_[request.key()];
    order_.push_back(request.key());
  }
  int of(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = counts_.find(key);
    return at == counts_.end() ? 0 : at->second;
  }
  std::size_t keys() const {
    const std::lock_guard lock(mutex_);
    return counts_.size();
  }
  std::vector<std::string> order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> counts_;
  std::vector<std::string> order_;
};

class BuilderTest : public ManagerFixture {};

TEST_F(BuilderTest, ReconcilesWhatIsThereAndWhatChanges) {
  put("before", "1");
  Calls calls;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    calls.note(request);
    if (!map) calls.note({request.ns, "gone-" + request.name});
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return calls.of("default/before") == 1; }));
  put("after", "1");
  EXPECT_TRUE(eventually([&] { return calls.of("default/after") == 1; }));
  change("after", "2");
  EXPECT_TRUE(eventually([&] { return calls.of("default/after") == 2; }));
  maps_.remove("after");
  EXPECT_TRUE(eventually([&] { return calls.of("default/gone-after") == 1; }));
  EXPECT_EQ(calls.of("default/before"), 1);
}

TEST_F(BuilderTest, AnOwnedObjectLeadsToItsOwner) {
  Calls calls;
  Manager manager{client_};
  Builder<ConfigMap>(manager).owns<Secret>().reconcile(
      [&](Request request, Context& context) -> Result {
        const auto map = context.find<ConfigMap>(request);
        if (map) {
          context.create_or_update<Secret>(request, [&](const auto& secret) {
            secret.string_data().set("value", map->data()["value"]);
          });
        }
        calls.note(request);
        return {};
      });
  const Running running(manager);
  put("site", "1");
  const auto secrets = client_.resource<Secret>("default");
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(secrets.find("site")); }));
  // The reference is there without a word.
  const auto secret = secrets.get("site");
  const auto controller = controller_of(secret);
  ASSERT_TRUE(controller);
  EXPECT_EQ(controller->kind(), "ConfigMap");
  EXPECT_EQ(controller->uid(), maps_.get("site").uid());
  // A deleted object is created again.
  secrets.remove("site");
  EXPECT_TRUE(eventually([&] {
    const auto now = secrets.find("site");
    return now && now.uid() != secret.uid();
  }));
}

TEST_F(BuilderTest, OnlyTheControllingOwnerCountsUnlessAnyDoes) {
  const auto site = put("site", "1");
  Calls controlling;
  Calls any;
  Manager manager{client_};
  Builder<ConfigMap>(manager)
      .named("controlling")
      .owns<Secret>()
      .reconcile([&](Request request, Context&) -> Result {
        controlling.note(request);
        return {};
      });
  WatchOptions every;
  every.match_any_owner = true;
  Builder<ConfigMap>(manager).named("any").owns<Secret>(every).reconcile(
      [&](Request request, Context&) -> Result {
        any.note(request);
        return {};
      });
  const Running running(manager);
  ASSERT_TRUE(eventually(
      [&] { return controlling.of("default/site") == 1 && any.of("default/site") == 1; }));
  const auto secret = Secret::draft("s", "default");
  set_owner_reference(site, secret);
  client_.resource<Secret>("default").create(secret);
  EXPECT_TRUE(eventually([&] { return any.of("default/site") == 2; }));
  EXPECT_EQ(controlling.of("default/site"), 1);
}

TEST_F(BuilderTest, MapFunctionsSeeBothVersionsOfAnUpdate) {
  Calls calls;
  Manager manager{client_};
  Builder<Secret>(manager)
      .watches<ConfigMap>([](const auto& map, auto& enqueue) {
        enqueue({map.ns(), map.labels()["website"]});
      })
      .reconcile([&](Request request, Context&) -> Result {
        calls.note(request);
        return {};
      });
  const Running running(manager);
  const auto draft = ConfigMap::draft("m", "default");
  draft.metadata().labels().set("website", "old");
  maps_.create(draft);
  ASSERT_TRUE(eventually([&] { return calls.of("default/old") == 1; }));
  maps_.patch("m", rest::PatchType::kMerge, R"({"metadata":{"labels":{"website":"new"}}})");
  EXPECT_TRUE(eventually([&] { return calls.of("default/new") == 1; }));
  EXPECT_TRUE(eventually([&] { return calls.of("default/old") == 2; }));
  EXPECT_EQ(calls.keys(), 2u);
}

TEST_F(BuilderTest, PredicatesHoldEventsBack) {
  Calls calls;
  Manager manager{client_};
  WatchOptions options;
  options.predicate = label_selector("app=web");
  Builder<ConfigMap>(manager, options)
      .when(labels_changed() || annotations_changed())
      .reconcile([&](Request request, Context&) -> Result {
        calls.note(request);
        return {};
      });
  const Running running(manager);
  put("plain", "1");
  const auto draft = ConfigMap::draft("web", "default");
  draft.metadata().labels().set("app", "web");
  maps_.create(draft);
  ASSERT_TRUE(eventually([&] { return calls.of("default/web") == 1; }));
  change("web", "2");
  maps_.patch("web", rest::PatchType::kMerge, R"({"metadata":{"annotations":{"a":"b"}}})");
  ASSERT_TRUE(eventually([&] { return calls.of("default/web") == 2; }));
  EXPECT_EQ(calls.keys(), 1u);
  EXPECT_EQ(calls.of("default/web"), 2);
}

TEST_F(BuilderTest, RawSourcesLeadToRequests) {
  Calls calls;
  const auto channel = std::make_shared<Channel>();
  channel->send({"default", "early"});
  channel->send({"default", "early"});
  Manager manager{client_};
  Builder<ConfigMap>(manager)
      .source(channel)
      .source(timer(1h,
                    [](Enqueue& enqueue) {
                      enqueue({"default", "tick"});
                    }))
      .when(Predicate([](const Event&) { return false; }))
      .reconcile([&](Request request, Context&) -> Result {
        calls.note(request);
        return {};
      });
  Running running(manager);
  EXPECT_TRUE(eventually([&] { return calls.of("default/early") == 1; }));
  EXPECT_TRUE(eventually([&] { return calls.of("default/tick") == 1; }));
  channel->send({"default", "late"});
  EXPECT_TRUE(eventually([&] { return calls.of("default/late") == 1; }));
  running.stop();
  channel->send({"default", "never"});
  EXPECT_EQ(calls.of("default/never"), 0);
}

/// A source that is ready when a test says so.
class SlowSource : public Source {
 public:
  void start(const SourceContext& context, std::function<void()> ready) override {
    for (const char* name : {"a", "b", "a"}) context.add(Request("default", name), 0);
    ready_ = std::move(ready);
    started_.open();
  }
  void stop() override {}
  std::string name() const override { return "slow"; }

  bool wait_until_started() { return started_.wait(); }
  void become_ready() const { ready_(); }

 private:
  std::function<void()> ready_;
  test::Gate started_;
};

TEST_F(BuilderTest, NothingIsReconciledBeforeAllSourcesAreReady) {
  put("map", "1");
  Calls calls;
  std::atomic<bool> ready{false};
  const auto slow = std::make_shared<SlowSource>();
  Manager manager{client_};
  Builder<ConfigMap>(manager).source(slow).reconcile([&](Request request, Context&) -> Result {
    EXPECT_TRUE(ready);
    calls.note(request);
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(slow->wait_until_started());
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_depth", "0") == 2; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(calls.keys(), 0u);
  ready = true;
  slow->become_ready();
  EXPECT_TRUE(eventually([&] { return calls.keys() == 3; }));
  // Requests that came again while they waited are one.
  EXPECT_EQ(calls.of("default/a"), 1);
  EXPECT_EQ(calls.of("default/b"), 1);
}

TEST_F(BuilderTest, ASourceThatIsNeverReadyFailsTheRun) {
  const auto slow = std::make_shared<SlowSource>();
  std::atomic<int> runs{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager)
      .source(slow)
      .options([](ControllerOptions& options) { options.sync_timeout = 50ms; })
      .reconcile([&](Request, Context&) -> Result {
        ++runs;
        return {};
      });
  Running running(manager);
  try {
    running.end();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("slow"));
  }
  EXPECT_EQ(runs, 0);
}

TEST_F(BuilderTest, OnlyMetadataIsEnoughForOwners) {
  Calls calls;
  WatchOptions metadata;
  metadata.only_metadata = true;
  Manager manager{client_};
  Builder<ConfigMap>(manager).owns<Secret>(metadata).reconcile(
      [&](Request request, Context& context) -> Result {
        calls.note(request);
        const auto secret = context.view().find_metadata<Secret>({"default", "s"});
        if (secret && secret->data().empty()) calls.note({"", "metadata"});
        EXPECT_THROW(context.find<Secret>("default", "s"), NotCachedError);
        return {};
      });
  const Running running(manager);
  const auto site = put("site", "1");
  const auto secret = Secret::draft("s", "default");
  secret.string_data().set("password", "x");
  set_controller_reference(site, secret);
  client_.resource<Secret>("default").create(secret);
  EXPECT_TRUE(eventually([&] { return calls.of("metadata") > 0; }));
}

TEST_F(BuilderTest, TheMetadataOfTheOwnerIsEnoughForAReferenceToIt) {
  std::atomic<bool> done{false};
  WatchOptions metadata;
  metadata.only_metadata = true;
  Manager manager{client_};
  Builder<ConfigMap>(manager, metadata)
      .owns<Secret>()
      .reconcile([&](Request request, Context& context) -> Result {
        const auto site = context.view().find_metadata<ConfigMap>(request);
        if (request.name != "site" || !site || done) return {};
        EXPECT_EQ(site->api_version(), "v1");
        EXPECT_EQ(site->kind(), "ConfigMap");
        EXPECT_TRUE(site->data().empty());
        for (const auto& each : context.view().list_metadata<ConfigMap>())
          EXPECT_EQ(each.kind(), "ConfigMap");
        context.create(Secret::draft("created", request.ns));
        context.apply(Secret::draft("applied", request.ns));
        context.create_or_update<Secret>(
            Request(request.ns, "ensured"),
            [](const k8s::core::v1::SecretDraft& secret) { secret.set_type("Opaque"); });
        done = true;
        return {};
      });
  put("site", "1");
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  for (const char* const name : {"created", "applied", "ensured"}) {
    const Secret secret = client_.resource<Secret>("default").get(name);
    const auto owner = controller_of(secret);
    ASSERT_TRUE(owner) << name;
    EXPECT_EQ(owner->api_version(), "v1");
    EXPECT_EQ(owner->kind(), "ConfigMap");
    EXPECT_EQ(owner->name(), "site");
  }
}

TEST_F(BuilderTest, RetriesWhatThrowsAndStopsAtTerminalErrors) {
  put("fails", "1");
  put("terminal", "1");
  put("nested", "1");
  put("odd", "1");
  Calls calls;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    calls.note(request);
    if (request.name == "terminal") throw TerminalError("an invalid spec");
    if (request.name == "nested") {
      try {
        throw TerminalError("an invalid spec");
      } catch (...) {
        std::throw_with_nested(std::runtime_error("while it was read"));
      }
    }
    if (calls.of(request.key()) < 4) {
      if (request.name == "odd") throw 42;  // NOLINT: what a program should not do
      if (request.name == "fails") throw std::runtime_error("not yet");
    }
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return calls.of("default/fails") == 4; }));
  EXPECT_TRUE(eventually([&] { return calls.of("default/odd") == 4; }));
  EXPECT_TRUE(eventually(
      [&] { return metric(manager, "controller_runtime_reconcile_total", "success") == 2; }));
  EXPECT_EQ(calls.of("default/terminal"), 1);
  EXPECT_EQ(calls.of("default/nested"), 1);
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_errors_total"), 8);
  EXPECT_EQ(metric(manager, "controller_runtime_terminal_reconcile_errors_total"), 2);
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_panics_total"), 3);
}

TEST_F(BuilderTest, ResultsLeadToLaterRuns) {
  put("after", "1");
  put("again", "1");
  Calls calls;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    calls.note(request);
    if (calls.of(request.key()) > 2) return done();
    return request.name == "after" ? requeue_after(1ms) : requeue();
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return calls.of("default/after") == 3; }));
  EXPECT_TRUE(eventually([&] { return calls.of("default/again") == 3; }));
  EXPECT_TRUE(eventually(
      [&] { return metric(manager, "controller_runtime_reconcile_total", "success") == 2; }));
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_total", "requeue_after"), 2);
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_total", "requeue"), 2);
}

TEST_F(BuilderTest, ManyRequestsThatComeAgainAtOnceDoNotBlockEachOther) {
  constexpr int kCount = 5'000;
  const auto channel = std::make_shared<Channel>();
  for (int i = 0; i < kCount; ++i) channel->send({"default", "key-" + std::to_string(i)});
  std::atomic<int> runs{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).source(channel).concurrency(2).reconcile(
      [&](Request, Context&) -> Result {
        ++runs;
        return requeue_after(1us);
      });
  Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs >= 3 * kCount; }));
  running.stop();
  const int at_the_end = runs;
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(runs, at_the_end);
}

TEST_F(BuilderTest, AReconcileTimeoutStopsTheContext) {
  put("slow", "1");
  std::atomic<bool> stopped{false};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile_timeout(20ms).reconcile(
      [&](Request, Context& context) -> Result {
        if (stopped) return {};
        stopped = eventually([&] { return context.stop().stop_requested(); });
        // A call ends at once, too.
        EXPECT_THROW(context.uncached().resource<ConfigMap>("default").get("slow"), Error);
        throw std::runtime_error("out of time");
      });
  const Running running(manager);
  EXPECT_TRUE(eventually(
      [&] { return metric(manager, "controller_runtime_reconcile_timeouts_total") == 1; }));
  EXPECT_TRUE(eventually([&] { return stopped.load(); }));
}

TEST_F(BuilderTest, AsManyRequestsAreReconciledAtATimeAsAsked) {
  for (int i = 0; i < 8; ++i) put("m" + std::to_string(i), "1");
  std::atomic<int> active{0};
  std::atomic<int> most{0};
  std::atomic<int> done_count{0};
  test::Gate three;
  Manager manager{client_};
  Builder<ConfigMap>(manager).concurrency(3).reconcile([&](Request, Context&) -> Result {
    const int now = ++active;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    if (now == 3) three.open();
    EXPECT_TRUE(three.wait());
    --active;
    ++done_count;
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return done_count == 8; }));
  EXPECT_EQ(most, 3);
}

TEST_F(BuilderTest, OneKeyIsNeverReconciledTwiceAtATime) {
  put("m", "0");
  std::atomic<int> active{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> runs{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).concurrency(4).reconcile([&](Request, Context&) -> Result {
    if (++active > 1) ++overlaps;
    std::this_thread::sleep_for(2ms);
    --active;
    ++runs;
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return runs > 0; }));
  for (int i = 1; i < 30; ++i) change("m", std::to_string(i));
  EXPECT_TRUE(eventually([&] { return runs > 2; }));
  EXPECT_EQ(overlaps, 0);
}

TEST_F(BuilderTest, ThousandsOfCoroutinesWaitAtOnceOnAFewThreads) {
  constexpr unsigned kCount = 10'000;
  std::atomic<unsigned> waiting{0};
  std::atomic<unsigned> ended{0};
  std::atomic<std::size_t> threads{0};
  const auto channel = std::make_shared<Channel>();
  for (unsigned i = 0; i < kCount; ++i) channel->send({"default", "key-" + std::to_string(i)});
  std::stop_source go_on;
  Manager manager{client_};
  Builder<ConfigMap>(manager).source(channel).concurrency(kCount).reconcile(
      [&](Request, Context&) -> Awaitable<Result> {
        if (++waiting == kCount) threads = test::thread_count();
        while (!go_on.stop_requested())
          co_await Clock::real()->sleep(std::chrono::minutes(1), go_on.get_token());
        ++ended;
        co_return Result();
      });
  const std::size_t before = test::thread_count();
  const std::size_t memory = test::resident_bytes();
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return waiting == kCount && threads > 0; }));
  // Those of the test, the test's server and the event loop are there before.
  EXPECT_LE(threads, before + 8);
  RecordProperty("threads", static_cast<int>(threads));
  RecordProperty("bytes_per_waiting_reconcile",
                 static_cast<int>(
                     (test::resident_bytes() - std::min(memory, test::resident_bytes())) / kCount));
  go_on.request_stop();
  EXPECT_TRUE(eventually([&] { return ended == kCount; }));
}

TEST_F(BuilderTest, CoroutinesThatNeverWaitLeaveTheThreadToOthers) {
  const auto loop = std::make_shared<EventLoop>(1u);
  const rest::Client client{server_.client_config(), loop};
  const auto channel = std::make_shared<Channel>();
  channel->send({"default", "again-and-again"});
  std::atomic<unsigned> runs{0};
  Manager manager{client};
  Builder<ConfigMap>(manager)
      .source(channel)
      .options([](ControllerOptions& options) { options.hot_loop = 0; })
      .reconcile([&](Request request, Context&) -> Awaitable<Result> {
        ++runs;
        channel->send(std::move(request));
        co_return Result();
      });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs > 1000; }));
  EXPECT_FALSE(client.resource<ConfigMap>("default").find("another"));
}

TEST_F(BuilderTest, CoroutinesReadAndWrite) {
  put("site", "1");
  Manager manager{client_};
  Builder<ConfigMap>(manager).owns<Secret>().concurrency(10).reconcile(
      [&](Request request, Context& context) -> Awaitable<Result> {
        const auto map = context.find<ConfigMap>(request);
        if (!map) co_return Result();
        const auto fill = [&](const k8s::core::v1::SecretDraft& secret) {
          secret.string_data().set("value", map->data()["value"]);
        };
        const auto made = co_await context.async_create_or_update<Secret>(request, fill);
        if (made.written == Written::kCreated) {
          const auto note = map->edit();
          note.data().set("made", "yes");
          co_await context.async_patch(note);
        }
        co_return Result();
      });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] {
    const auto map = maps_.get("site");
    return map.data()["made"] == "yes";
  }));
  EXPECT_TRUE(client_.resource<Secret>("default").find("site"));
}

TEST_F(BuilderTest, ACallSeesOneStateOfTheCaches) {
  put("m", "1");
  std::atomic<bool> checked{false};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    if (checked) return {};
    const auto before = context.get<ConfigMap>(request);
    put("other", "1");
    change("m", "2");
    EXPECT_TRUE(eventually([&] {
      auto now = manager.cache().view();
      return now.find<ConfigMap>({"default", "other"}) &&
             now.find<ConfigMap>(request)->data()["value"] == "2";
    }));
    EXPECT_EQ(lookout::test::held(context.get<ConfigMap>(request)).data()["value"], "1");
    EXPECT_FALSE(context.find<ConfigMap>("default", "other"));
    EXPECT_EQ(context.list<ConfigMap>("default").size(), 1u);
    EXPECT_THROW(context.get<ConfigMap>({"default", "other"}), api::StatusError);
    checked = true;
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return checked.load(); }));
}

TEST_F(BuilderTest, LiveEventsPassTheFirstList) {
  for (int i = 0; i < 200; ++i) put("old-" + std::to_string(i), "1");
  Calls calls;
  test::Gate go_on;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    calls.note(request);
    EXPECT_TRUE(go_on.wait());
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_depth", "-100") == 199; }));
  put("live", "1");
  ASSERT_TRUE(eventually([&] { return metric(manager, "workqueue_depth", "0") == 1; }));
  go_on.open();
  ASSERT_TRUE(eventually([&] { return calls.keys() == 201; }));
  const auto order = calls.order();
  EXPECT_EQ(order[1], "default/live");
}

TEST_F(BuilderTest, AHotLoopIsSaidOnce) {
  put("m", "1");
  constexpr int kMore = 40;
  std::atomic<int> runs{0};
  std::atomic<int> last{std::numeric_limits<int>::max()};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    if (!map || ++runs > last) return {};
    const auto change = map->edit();
    change.data().set("runs", std::to_string(runs.load()));
    context.update(change);
    return {};
  });
  const Running running(manager);
  // Until it was quick enough: 20 within a second.
  EXPECT_TRUE(eventually([&] { return metric(manager, "controller_hot_loops_total") == 1; }));
  last = runs + kMore;
  EXPECT_TRUE(eventually([&] { return runs > last; }));
  EXPECT_EQ(metric(manager, "controller_hot_loops_total"), 1);
}

/// Keeps what it is told.
class FakeSink : public EventSink {
 public:
  void event(const api::Object& regarding, EventType type, std::string_view reason,
             const std::string& message, std::string_view controller) override {
    events_.add(std::string(type == EventType::kWarning ? "Warning " : "Normal ") +
                std::string(reason) + " " + regarding.key() + ": " + message + " by " +
                std::string(controller));
  }
  std::vector<std::string> events() const { return events_.all(); }

 private:
  test::Notes events_;
};

TEST_F(BuilderTest, EventsGoToTheSink) {
  put("m", "1");
  ManagerOptions options;
  const auto sink = std::make_shared<FakeSink>();
  options.events = sink;
  Manager manager{client_, options};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.get<ConfigMap>(request);
    context.event(map, "Created", "{} of {}", 1, 2);
    context.warning(map, "Late", "by a second");
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return sink->events().size() == 2; }));
  EXPECT_THAT(sink->events(),
              testing::ElementsAre("Normal Created default/m: 1 of 2 by configmap",
                                   "Warning Late default/m: by a second by configmap"));
}

TEST_F(BuilderTest, AFinalizerRunsBeforeTheObjectGoes) {
  put("site", "1");
  std::atomic<int> cleaned{0};
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    if (!map) return {};
    const bool deleted = context.finalize(*map, "example.com/site", [&] {
      if (++cleaned == 1) throw std::runtime_error("not yet");
      // Somebody else writes in between: the finalizer goes all the same.
      change("site", "3");
    });
    if (deleted) return {};
    return {};
  });
  const Running running(manager);
  ASSERT_TRUE(eventually(
      [&] { return lookout::test::held(maps_.get("site")).metadata().finalizers().size() == 1; }));
  maps_.remove("site");
  EXPECT_TRUE(eventually([&] { return !maps_.find("site"); }));
  EXPECT_EQ(cleaned, 2);
}

TEST_F(BuilderTest, ACoroutineFinalizesAsWell) {
  put("site", "1");
  std::atomic<int> cleaned{0};
  std::atomic<int> live{0};
  Manager manager{client_};
  const std::function<Awaitable<void>()> clean_up = [&]() -> Awaitable<void> {
    if (++cleaned == 1) throw std::runtime_error("not yet");
    co_return;
  };
  Builder<ConfigMap>(manager).reconcile(
      [&](Request request, Context& context) -> Awaitable<Result> {
        const auto map = context.find<ConfigMap>(request);
        if (!map) co_return Result{};
        const bool deleted = co_await context.async_finalize(*map, "example.com/site", clean_up);
        if (!deleted) ++live;
        co_return Result{};
      });
  const Running running(manager);
  ASSERT_TRUE(eventually(
      [&] { return lookout::test::held(maps_.get("site")).metadata().finalizers().size() == 1; }));
  EXPECT_EQ(cleaned, 0);
  EXPECT_TRUE(eventually([&] { return live > 0; }));
  maps_.remove("site");
  EXPECT_TRUE(eventually([&] { return !maps_.find("site"); }));
  EXPECT_EQ(cleaned, 2);
}

TEST_F(BuilderTest, NamesAreUnique) {
  Manager manager{client_};
  const auto nothing = [](Request, Context&) -> Result { return {}; };
  Builder<ConfigMap>(manager).reconcile(nothing);
  EXPECT_THROW(Builder<ConfigMap>(manager).reconcile(nothing), InvalidArgument);
  Builder<ConfigMap>(manager).named("other").reconcile(nothing);
}

TEST_F(BuilderTest, AControllerNeedsNoKindButAName) {
  Calls calls;
  const auto note = [&](Request request, Context&) -> Result {
    calls.note(request);
    return {};
  };
  const auto shard = [](const ConfigMap&, Enqueue& enqueue) { enqueue(Request("", "shard-1")); };
  Manager manager{client_};
  EXPECT_THROW(Builder(manager).watches<ConfigMap>(shard).reconcile(note), InvalidArgument);
  const Controller shards =
      Builder(manager).named("shards").watches<ConfigMap>(shard).reconcile(note);
  EXPECT_EQ(shards.name(), "shards");
  put("a", "1");
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return calls.of("shard-1") == 1; }));
  put("b", "1");
  EXPECT_TRUE(eventually([&] { return calls.of("shard-1") == 2; }));
  EXPECT_EQ(calls.keys(), 1u);
}

TEST_F(BuilderTest, AControllerThatCannotWorkIsRefused) {
  Manager manager{client_};
  const auto nothing = [](Request, Context&) -> Result { return {}; };
  const auto message = [&](auto make) {
    try {
      make();
    } catch (const InvalidArgument& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message([&] { Builder(manager).named("idle").reconcile(nothing); }),
              testing::HasSubstr("controller idle: it watches nothing"));
  EXPECT_THAT(message([&] { Builder(manager).source(timer(1h, {})).reconcile(nothing); }),
              testing::HasSubstr("needs a name"));
  EXPECT_THAT(message([&] { Builder<ConfigMap>(manager).named("").reconcile(nothing); }),
              testing::HasSubstr("needs a name"));
  EXPECT_THAT(message([&] { Builder<ConfigMap>(manager).reconcile(ReconcileFunction()); }),
              testing::HasSubstr("controller configmap: its reconciler is empty"));
  EXPECT_THAT(message([&] { Builder<ConfigMap>(manager).source(nullptr).reconcile(nothing); }),
              testing::HasSubstr("controller configmap: a source is null"));
  // None of them has taken the name.
  Builder<ConfigMap>(manager).reconcile(nothing);
}

/// Fails to start, or ends by itself.
class ShortSource : public Source {
 public:
  explicit ShortSource(bool fails) : fails_(fails) {}
  void start(const SourceContext& context, std::function<void()> ready) override {
    if (fails_) throw std::runtime_error("no such queue");
    context.add({"default", "only"}, 0);
    ready();
  }
  void stop() override { ++stops; }
  std::string name() const override { return "short"; }

  std::atomic<int> stops{0};

 private:
  const bool fails_;
};

TEST_F(BuilderTest, ASourceMayEndAndOneThatCannotStartEndsTheManager) {
  Calls calls;
  const auto note = [&](Request request, Context&) -> Result {
    calls.note(request);
    return {};
  };
  const auto ends = std::make_shared<ShortSource>(false);
  const auto channel = std::make_shared<Channel>();
  {
    Manager manager{client_};
    Builder(manager).named("raw").source(ends).source(channel).reconcile(note);
    const Running running(manager);
    EXPECT_TRUE(eventually([&] { return calls.of("default/only") == 1; }));
    channel->send({"default", "more"});
    EXPECT_TRUE(eventually([&] { return calls.of("default/more") == 1; }));
  }
  EXPECT_EQ(ends->stops, 1);

  const auto fails = std::make_shared<ShortSource>(true);
  Manager manager{client_};
  Builder(manager).named("raw").source(fails).reconcile(note);
  Running running(manager);
  EXPECT_THROW(running.end(), std::runtime_error);
  EXPECT_EQ(fails->stops, 0);
}

TEST_F(BuilderTest, SeveralControllersReconcileOneKind) {
  put("m", "1");
  Calls first;
  Calls second;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    first.note(request);
    return {};
  });
  Builder<ConfigMap>(manager).named("other").reconcile([&](Request request, Context&) -> Result {
    second.note(request);
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return first.keys() == 1 && second.keys() == 1; }));
  // They share the informer.
  EXPECT_EQ(metric(manager, "informer_synced", "configmaps"), 1);
  EXPECT_EQ(metric(manager, "informer_synced", "configmaps, 2"), -1);
}

TEST_F(BuilderTest, AControllerMayBeAddedWhileTheManagerRuns) {
  put("m", "1");
  Calls calls;
  Manager manager{client_};
  Running running(manager);
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context&) -> Result {
    calls.note(request);
    return {};
  });
  EXPECT_TRUE(eventually([&] { return calls.of("default/m") == 1; }));
  running.stop();
  EXPECT_THROW(Builder<Secret>(manager).reconcile([](Request, Context&) -> Result { return {}; }),
               InvalidArgument);
}

}  // namespace
}  // namespace lookout::controller
