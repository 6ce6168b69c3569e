#include "lookout/controller/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lookout/controller/owner_references.h"
#include "tests/controller/calls.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/thrown.h"

namespace lookout::controller {
namespace {

using test::refusal;

class BuilderTest : public ManagerFixture {};

TEST_F(BuilderTest, ReconcilesExistingAndChangedObjects) {
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

TEST_F(BuilderTest, AnOwnedObjectEnqueuesItsOwner) {
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
  // The owner reference is set without code in the reconciler.
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

TEST_F(BuilderTest, OnlyTheControllerOwnerIsEnqueuedUnlessAnyOwnerIs) {
  const auto site = put("site", "1");
  Calls controlling;
  Calls any;
  Manager manager{client_};
  Builder<ConfigMap>(manager).named("controlling").owns<Secret>().reconcile(noting(controlling));
  WatchOptions every;
  every.match_any_owner = true;
  Builder<ConfigMap>(manager).named("any").owns<Secret>(every).reconcile(noting(any));
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
      .reconcile(noting(calls));
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

TEST_F(BuilderTest, PredicatesFilterEvents) {
  Calls calls;
  Manager manager{client_};
  WatchOptions options;
  options.predicate = label_selector("app=web");
  Builder<ConfigMap>(manager, options)
      .when(labels_changed() || annotations_changed())
      .reconcile(noting(calls));
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

TEST_F(BuilderTest, RawSourcesEnqueueRequests) {
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
      .reconcile(noting(calls));
  Running running(manager);
  EXPECT_TRUE(eventually([&] { return calls.of("default/early") == 1; }));
  EXPECT_TRUE(eventually([&] { return calls.of("default/tick") == 1; }));
  channel->send({"default", "late"});
  EXPECT_TRUE(eventually([&] { return calls.of("default/late") == 1; }));
  running.stop();
  channel->send({"default", "never"});
  EXPECT_EQ(calls.of("default/never"), 0);
}

TEST_F(BuilderTest, OwnersCanBeFoundFromMetadataOnly) {
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

TEST_F(BuilderTest, AnOwnerReferenceNeedsOnlyTheOwnersMetadata) {
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

TEST_F(BuilderTest, NamesAreUnique) {
  Manager manager{client_};
  const auto nothing = [](Request, Context&) -> Result { return {}; };
  Builder<ConfigMap>(manager).reconcile(nothing);
  EXPECT_THROW(Builder<ConfigMap>(manager).reconcile(nothing), InvalidArgument);
  Builder<ConfigMap>(manager).named("other").reconcile(nothing);
}

TEST_F(BuilderTest, AControllerWithoutAKindNeedsAName) {
  Calls calls;
  const auto note = noting(calls);
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

TEST_F(BuilderTest, BeginsWithTheDefaultsOfTheManager) {
  ManagerOptions options = elected("one");
  options.controllers.needs_leader_election = false;
  options.controllers.reconcile_timeout = 20ms;
  options.controllers.hot_loop = 7;
  Manager manager{client_, options};
  put("a", "1");
  std::atomic<unsigned> hot_loop{0};
  std::atomic<bool> own_timeout{false};
  Builder<ConfigMap>(manager)
      .options([&](ControllerOptions& seen) { hot_loop = seen.hot_loop; })
      .reconcile([](Request, Context& context) -> Result {
        EXPECT_TRUE(eventually([&] { return context.stop().stop_requested(); }));
        return {};
      });
  Builder<ConfigMap>(manager)
      .named("leader")
      .needs_leader_election(true)
      .reconcile_timeout(1h)
      .options([&](ControllerOptions& seen) { own_timeout = seen.reconcile_timeout == 1h; })
      .reconcile([](Request, Context&) -> Result { return {}; });
  EXPECT_EQ(hot_loop, 7u);
  EXPECT_TRUE(own_timeout);
  const Running running(manager);
  EXPECT_TRUE(eventually([&] {
    return metric(manager, "controller_runtime_reconcile_timeouts_total", "configmap") == 1;
  }));

  ManagerOptions shared;
  shared.controllers.name = "website";
  EXPECT_THROW(Manager(client_, shared), InvalidArgument);
}

TEST_F(BuilderTest, RejectsInvalidControllers) {
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
  EXPECT_THAT(
      message([&] { Builder(manager).source(timer(1h, [](Enqueue&) {})).reconcile(nothing); }),
      testing::HasSubstr("needs a name"));
  EXPECT_THAT(message([&] { Builder<ConfigMap>(manager).named("").reconcile(nothing); }),
              testing::HasSubstr("needs a name"));
  EXPECT_THAT(message([&] { Builder<ConfigMap>(manager).reconcile(ReconcileFunction()); }),
              testing::HasSubstr("controller configmap: its reconciler is empty"));
  EXPECT_THAT(message([&] { Builder<ConfigMap>(manager).source(nullptr).reconcile(nothing); }),
              testing::HasSubstr("controller configmap: a source is null"));
  // None of them has reserved the name.
  Builder<ConfigMap>(manager).reconcile(nothing);
}

TEST_F(BuilderTest, EmptyFunctionsAreRejectedWhenTheyAreAdded) {
  Manager manager{client_};
  const auto nothing = [](Request, Context&) -> Result { return {}; };
  const std::function<void(const Secret&, Enqueue&)> map;
  EXPECT_EQ(refusal<InvalidArgument>(
                [&] { Builder<ConfigMap>(manager).watches<Secret>(map).reconcile(nothing); }),
            "controller configmap: the map function of its watch of secrets is empty");
  const auto controller = Builder<ConfigMap>(manager).reconcile(nothing);
  const std::function<std::vector<Request>(const Secret&)> returns;
  EXPECT_EQ(refusal<InvalidArgument>([&] { controller.watch<Secret>(returns).release(); }),
            "controller configmap: the map function of a watch of secrets is empty");
  EXPECT_EQ(refusal<InvalidArgument>([] { timer(1h, {}); }), "timer(): the function is empty");
  EXPECT_EQ(refusal<InvalidArgument>([&] { manager.add("job", Manager::Run()); }),
            "job: the function to run is empty");
  EXPECT_EQ(refusal<InvalidArgument>([&] { manager.add_async("job", Manager::AsyncRun()); }),
            "job: the function to run is empty");
  EXPECT_EQ(refusal<InvalidArgument>([&] { manager.add_health_check("disk", {}); }),
            "healthz: the check disk is empty");
  EXPECT_EQ(refusal<InvalidArgument>([&] { manager.add_ready_check("disk", {}); }),
            "readyz: the check disk is empty");
  EXPECT_EQ(refusal<InvalidArgument>([&] {
              manager.cache().add_index(api::Resource(Secret::kResource), "i", cache::IndexFunc());
            }),
            "secrets: the function of the index \"i\" is empty");
}

/// A source of one request.
class ShortSource : public Source {
 public:
  void start(const SourceContext& context, std::function<void()> ready) override {
    context.add({"default", "only"}, 0);
    ready();
  }
  void stop() override { ++stops; }
  std::string name() const override { return "short"; }

  std::atomic<int> stops{0};
};

TEST_F(BuilderTest, AControllerMayHaveOnlyRawSources) {
  Calls calls;
  const auto note = noting(calls);
  const auto ends = std::make_shared<ShortSource>();
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
}

TEST_F(BuilderTest, SeveralControllersReconcileOneKind) {
  put("m", "1");
  Calls first;
  Calls second;
  Manager manager{client_};
  Builder<ConfigMap>(manager).reconcile(noting(first));
  Builder<ConfigMap>(manager).named("other").reconcile(noting(second));
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
  Builder<ConfigMap>(manager).reconcile(noting(calls));
  EXPECT_TRUE(eventually([&] { return calls.of("default/m") == 1; }));
  running.stop();
  EXPECT_THROW(Builder<Secret>(manager).reconcile([](Request, Context&) -> Result { return {}; }),
               InvalidArgument);
}

}  // namespace
}  // namespace lookout::controller
