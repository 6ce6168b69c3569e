#include "lookout/informer/shared_informer_factory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/core/v1.h"
#include "tests/informer/factory_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"
#include "tests/support/stopped.h"

namespace lookout::informer {
namespace {

class SharedInformerFactoryTest : public test::FactoryFixture {};

TEST_F(SharedInformerFactoryTest, EqualRequestsShareAnInformer) {
  auto& factory = make();
  const auto pods = factory.informer<Pod>();
  EXPECT_EQ(identity(factory.informer<Pod>()), identity(pods));
  EXPECT_EQ(factory.for_resource(Pod::kResource).get(), identity(pods));
  EXPECT_EQ(identity(factory.informer<Pod>(Scope{})), identity(pods));
  std::vector<SharedIndexInformer*> others = {
      identity(pods),
      identity(factory.informer<Node>()),
      identity(factory.informer<k8s::apps::v1::Deployment>()),
      identity(factory.informer<Pod>({.ns = "shop"})),
      identity(factory.informer<Pod>({.label_selector = "app=web"})),
      identity(factory.informer<Pod>({.field_selector = "spec.nodeName=n1"})),
      identity(factory.informer<Pod>({.projection = api::Projection::without_managed_fields()}))};
  const std::set<SharedIndexInformer*> distinct(others.begin(), others.end());
  EXPECT_EQ(distinct.size(), others.size());
  EXPECT_EQ(identity(factory.informer<Pod>({.ns = "shop"})), others[3]);
}

TEST_F(SharedInformerFactoryTest, ClusterScopedKindsIgnoreTheNamespace) {
  auto& factory = make({.ns = "shop"});
  const auto nodes = factory.informer<Node>();
  EXPECT_EQ(identity(factory.informer<Node>({.ns = "bank"})), identity(nodes));
  EXPECT_EQ(identity(nodes)->name(), "nodes");
  EXPECT_EQ(identity(factory.informer<Pod>())->name(), "pods in shop");
}

TEST_F(SharedInformerFactoryTest, AScopeInheritsTheFactorysSettings) {
  FactoryOptions options;
  options.ns = "shop";
  options.label_selector = "app=web";
  options.field_selector = "spec.nodeName=n1";
  options.projection = api::Projection::without_managed_fields();
  options.metadata_only = true;
  auto& factory = make(options);
  const auto pods = identity(factory.informer<Pod>());
  EXPECT_EQ(pods->name(), "pods in shop, metadata, app=web, spec.nodeName=n1");
  // Each repeats one of the factory's settings.
  const std::vector<Scope> same = {{},
                                   {.ns = "shop"},
                                   {.label_selector = "app=web"},
                                   {.field_selector = "spec.nodeName=n1"},
                                   {.projection = api::Projection::without_managed_fields()},
                                   {.metadata_only = true}};
  for (const auto& scope : same) EXPECT_EQ(identity(factory.informer<Pod>(scope)), pods);
  const auto name = [&](const Scope& scope) {
    return identity(factory.informer<Pod>(scope))->name();
  };
  EXPECT_EQ(name({.ns = "bank"}), "pods in bank, metadata, app=web, spec.nodeName=n1");
  EXPECT_EQ(name({.ns = ""}), "pods, metadata, app=web, spec.nodeName=n1");
  EXPECT_EQ(name({.label_selector = ""}), "pods in shop, metadata, spec.nodeName=n1");
  EXPECT_EQ(name({.label_selector = "app=db"}), "pods in shop, metadata, app=db, spec.nodeName=n1");
  EXPECT_EQ(name({.field_selector = ""}), "pods in shop, metadata, app=web");
  EXPECT_EQ(name({.metadata_only = false}), "pods in shop, app=web, spec.nodeName=n1");
  EXPECT_EQ(name({.projection = api::Projection()}),
            "pods in shop, metadata, app=web, spec.nodeName=n1, 2");
}

TEST_F(SharedInformerFactoryTest, EqualProjectionsShareAnInformer) {
  auto& factory = make();
  const auto with = [&](const api::Projection& projection) {
    return identity(factory.informer<Pod>({.projection = projection}));
  };
  using api::Projection;
  const auto spec = with(Projection::keep({"spec.nodeName", "metadata.labels"}));
  EXPECT_EQ(with(Projection::keep({"metadata.labels", "spec.nodeName"})), spec);
  EXPECT_NE(with(Projection::keep({"spec", "metadata.labels"})), spec);
  EXPECT_EQ(with(Projection()), identity(factory.informer<Pod>()));
  const auto metadata = factory.for_resource(Pod::kResource, {.metadata_only = true});
  EXPECT_EQ(factory.for_resource(Pod::kResource, {.projection = Projection::keep({"metadata"}),
                                                  .metadata_only = true}),
            metadata);
  EXPECT_EQ(factory.informers().size(), 4u);
}

TEST_F(SharedInformerFactoryTest, InformersWithDifferentNamesAreDistinct) {
  auto& factory = make();
  factory.informer<Pod>({.ns = "shop"});
  factory.informer<Pod>({.label_selector = "app=web"});
  factory.informer<Pod>({.ns = "shop", .field_selector = "spec.nodeName=n1"});
  factory.informer<Pod>({.projection = api::Projection::without_managed_fields()});
  factory.for_resource(Pod::kResource, {.metadata_only = true});
  factory.for_resource(api::GroupVersionResource{"", "v2", "pods"});
  factory.informer<Pod>();
  std::vector<std::string> names;
  for (const auto& informer : factory.informers()) names.push_back(informer->name());
  EXPECT_THAT(names, ElementsAre("pods in shop", "pods, app=web", "pods in shop, spec.nodeName=n1",
                                 "pods", "pods, metadata", "pods, 2", "pods, 3"));
  factory.start();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(factory.wait_for_cache_sync(stop.get_token()).synced.size(), names.size());
}

TEST_F(SharedInformerFactoryTest, RequestsItsScope) {
  auto& factory =
      make({.ns = "shop", .label_selector = "app=web", .field_selector = "spec.nodeName=n1"});
  factory.informer<Pod>();
  factory.informer<k8s::apps::v1::Deployment>({.ns = "bank", .label_selector = ""});
  factory.informer<Node>();
  factory.start();
  EXPECT_TRUE(factory.wait_for_cache_sync());
  for (const char* part : {"pods?", "deployments?", "nodes?"})
    EXPECT_TRUE(server_.wait_for(part, 2));
  const auto requests = server_.requests();
  EXPECT_THAT(requests, Contains(AllOf(StartsWith("/api/v1/namespaces/shop/pods?"),
                                       HasSubstr("labelSelector=app%3Dweb"),
                                       HasSubstr("fieldSelector=spec.nodeName%3Dn1"),
                                       HasSubstr("resourceVersion=0"), HasSubstr("limit=500"))));
  EXPECT_THAT(requests,
              Contains(AllOf(StartsWith("/api/v1/namespaces/shop/pods?"), HasSubstr("watch="),
                             HasSubstr("labelSelector=app%3Dweb"), HasSubstr("resourceVersion=10"),
                             HasSubstr("allowWatchBookmarks="))));
  EXPECT_THAT(requests, Contains(AllOf(StartsWith("/apis/apps/v1/namespaces/bank/deployments?"),
                                       testing::Not(HasSubstr("labelSelector")),
                                       HasSubstr("fieldSelector=spec.nodeName%3Dn1"))));
  EXPECT_THAT(requests, Contains(StartsWith("/api/v1/nodes?")));
}

TEST_F(SharedInformerFactoryTest, StartsEachInformerOnce) {
  auto& factory = make();
  factory.start();
  const auto pods = factory.informer<Pod>();
  EXPECT_FALSE(identity(pods)->started());
  EXPECT_TRUE(factory.wait_for_cache_sync()) << "nothing has been started";
  factory.start();
  factory.start();
  EXPECT_TRUE(factory.wait_for_cache_sync());
  const auto nodes = factory.informer<Node>();
  EXPECT_FALSE(identity(nodes)->started());
  factory.start();
  EXPECT_TRUE(nodes.wait_for_sync());
  EXPECT_TRUE(server_.wait_for("watch=", 2));
  EXPECT_EQ(server_.requests().size(), 4u) << "a list and a watch each";
}

TEST_F(SharedInformerFactoryTest, HoldsTheObjectsOfTheServer) {
  server_.answer_lists(200, test::kTwoPods);
  auto& factory = make();
  const auto pods = factory.informer<Pod>();
  pods.add_index("app", [](const Pod& p) { return p.labels()["app"].as_string(); });
  std::vector<std::string> added;
  const auto registration = pods.add_handler({.on_add = [&](const Pod& p, Origin origin) {
    added.push_back(p.key() + (origin == Origin::kInitialList ? "i" : ""));
  }});
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_TRUE(registration.wait_for_sync());
  EXPECT_THAT(added, UnorderedElementsAre("shop/xi", "bank/yi"));
  EXPECT_EQ(pods.lister().list().size(), 2u);
  EXPECT_EQ(pods.lister().ns("shop").get("x").resource_version(), "7");
  EXPECT_EQ(pods.by_index("app", "web").size(), 1u);
  EXPECT_THROW(pods.lister().ns("shop").get("y"), api::StatusError);
}

TEST_F(SharedInformerFactoryTest, PassesItsOptionsOn) {
  server_.answer_lists(200, test::kTwoPods);
  std::promise<std::string> failed;
  FactoryOptions options;
  options.transform = [](const api::Object& object) {
    return api::Object::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":")" +
                              std::string(object.ns()) + R"(","name":")" +
                              std::string(object.name()) + R"(","uid":"made"}})");
  };
  options.watch_error_handler = [&](std::string_view name, const std::exception& e) {
    if (name == "nodes") failed.set_value(e.what());
  };
  auto& factory = make(options);
  const auto pods = factory.informer<Pod>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  for (const auto& p : pods.lister().list()) EXPECT_EQ(p.uid(), "made");

  server_.answer_lists(
      403, api::StatusError::forbidden("", "nodes", "", "not you").status().to_object().to_json());
  factory.informer<Node>();
  factory.start();
  EXPECT_THAT(lookout::test::get(failed.get_future()), HasSubstr("not you"));
}

TEST_F(SharedInformerFactoryTest, PassesBackOffAndFirstVersionOn) {
  server_.answer_lists(500, "{}");
  FactoryOptions options;
  options.newest_first_list = true;
  options.backoff.initial = options.backoff.max = 7s;
  options.backoff.jitter = 0;
  auto& factory = make(options);
  factory.informer<Pod>();
  factory.start();
  EXPECT_TRUE(lookout::test::eventually([&] { return clock_->next_wake() == 7s; }));
  EXPECT_THAT(server_.requests(), ElementsAre(testing::Not(HasSubstr("resourceVersion="))));
}

TEST_F(SharedInformerFactoryTest, NamesInformersThatHaveNotSynced) {
  auto& factory = make();
  EXPECT_THAT(factory.unsynced(), IsEmpty());
  factory.informer<Pod>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  server_.answer_lists(500, "{}");
  factory.informer<Node>();
  factory.informer<k8s::apps::v1::Deployment>();
  EXPECT_THAT(factory.unsynced(), IsEmpty()) << "they have not been started";
  factory.start();
  EXPECT_THAT(factory.unsynced(), UnorderedElementsAre("nodes", "deployments.apps"));
  EXPECT_FALSE(lookout::test::stopped(
      [&](const std::stop_token& stop) { return factory.wait_for_cache_sync(stop); }));
}

TEST_F(SharedInformerFactoryTest, WaitForSyncReturnsTheStateOfEachInformer) {
  auto& factory = make();
  factory.informer<Pod>();
  factory.start();
  const auto all = factory.wait_for_cache_sync();
  EXPECT_TRUE(all);
  EXPECT_THAT(all.synced, ElementsAre(testing::Pair("pods", true)));
  EXPECT_EQ(all.message(), "");

  server_.answer_lists(500, "{}");
  factory.informer<Node>();
  factory.informer<k8s::apps::v1::Deployment>();
  factory.start();
  std::stop_source stop;
  stop.request_stop();
  const auto some = factory.wait_for_cache_sync(stop.get_token());
  EXPECT_FALSE(some);
  EXPECT_THAT(some.synced, ElementsAre(testing::Pair("deployments.apps", false),
                                       testing::Pair("nodes", false), testing::Pair("pods", true)));
  EXPECT_THAT(some.unsynced(), ElementsAre("deployments.apps", "nodes"));
  EXPECT_EQ(some.message(), "failed to sync all caches: deployments.apps, nodes");
}

TEST_F(SharedInformerFactoryTest, InformersAndHandlersCanBeWaitedForTogether) {
  auto& factory = make();
  const auto pods = factory.informer<Pod>();
  const auto nodes = factory.informer<Node>();
  const auto handler = pods.add_handler({});
  std::stop_source stop;
  factory.start();
  EXPECT_TRUE(wait_for_sync(stop.get_token(), pods, nodes, handler));
  const auto never = factory.informer<k8s::apps::v1::Deployment>();
  stop.request_stop();
  EXPECT_FALSE(wait_for_sync(stop.get_token(), pods, never, handler));
}

// --------------------------------------------------------------------------- kinds of informers

TEST_F(SharedInformerFactoryTest, UsesWatchListsIfTheServerSupportsThem) {
  server_.answer_streams(
      R"({"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"x","resourceVersion":"7"}}})"
      "\n"
      R"({"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}})"
      "\n");
  auto& factory = make_streaming();
  const auto pods = factory.informer<Pod>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_EQ(pods.lister().ns("shop").get("x").resource_version(), "7");
  EXPECT_THAT(server_.requests(),
              ElementsAre(AllOf(HasSubstr("watch=true"), HasSubstr("sendInitialEvents=true"),
                                HasSubstr("resourceVersionMatch=NotOlderThan"),
                                HasSubstr("allowWatchBookmarks=true"))));
}

TEST_F(SharedInformerFactoryTest, ListsIfTheServerRejectsWatchLists) {
  server_.answer_lists(200, test::kTwoPods);
  auto& factory = make_streaming();
  const auto pods = factory.informer<Pod>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_EQ(pods.lister().list().size(), 2u);
  EXPECT_TRUE(server_.wait_for("watch=", 2));
  EXPECT_EQ(server_.requests().size(), 3u);
}

TEST_F(SharedInformerFactoryTest, ListOptionsCanBeTweaked) {
  FactoryOptions options;
  options.label_selector = "app=web";
  options.tweak_list_options = [](rest::ListOptions& list) {
    list.label_selector += ",tier=front";
    list.field_selector = "spec.nodeName=n7";
  };
  auto& factory = make(options);
  factory.informer<Pod>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_TRUE(server_.wait_for("watch="));
  EXPECT_THAT(server_.requests(),
              testing::Each(AllOf(HasSubstr("labelSelector=app%3Dweb%2Ctier%3Dfront"),
                                  HasSubstr("fieldSelector=spec.nodeName%3Dn7"))));
}

TEST_F(SharedInformerFactoryTest, StoresMetadataOnly) {
  server_.answer_lists(
      200,
      lookout::test::read_file(lookout::test::testdata("kube-1.36/list/v1_pods.partialmeta.json")));
  auto& factory = make();
  const auto pods = factory.for_resource(Pod::kResource, {.metadata_only = true});
  EXPECT_NE(pods.get(), factory.for_resource(Pod::kResource).get());
  EXPECT_EQ(pods.get(), factory.for_resource(Pod::kResource, {.metadata_only = true}).get());
  pods->start();
  ASSERT_TRUE(pods->wait_for_sync());
  EXPECT_TRUE(server_.wait_for("watch="));
  EXPECT_THAT(server_.accepted(),
              ElementsAre(HasSubstr(",application/json;as=PartialObjectMetadataList;"),
                          HasSubstr(",application/json;as=PartialObjectMetadata;")));
  ASSERT_GT(pods->store().size(), 0u);
  for (const auto& object : pods->store().snapshot()) {
    EXPECT_EQ(object.kind(), "PartialObjectMetadata");
    EXPECT_FALSE(object.uid().empty());
  }
}

TEST_F(SharedInformerFactoryTest, KeepsOnlyTheMetadataOfWholeObjects) {
  server_.answer_lists(
      200, lookout::test::read_file(lookout::test::testdata("kube-1.36/list/v1_pods.json")));
  auto& factory = make();
  const auto pods = factory.for_resource(Pod::kResource, {.metadata_only = true});
  pods->start();
  ASSERT_TRUE(pods->wait_for_sync());
  ASSERT_GT(pods->store().size(), 0u);
  for (const auto& object : pods->store().snapshot()) {
    EXPECT_FALSE(object.uid().empty());
    EXPECT_FALSE(object["spec"].exists()) << "there is no room for what nobody asked for";
  }
}

TEST_F(SharedInformerFactoryTest, RejectsATable) {
  server_.answer_lists(
      200, lookout::test::read_file(lookout::test::testdata("kube-1.36/list/v1_pods.table.json")));
  std::promise<std::string> failed;
  FactoryOptions options;
  options.watch_error_handler = [&, once = false](std::string_view,
                                                  const std::exception& e) mutable {
    if (!std::exchange(once, true)) failed.set_value(e.what());
  };
  auto& factory = make(options);
  factory.informer<Pod>();
  factory.start();
  EXPECT_THAT(lookout::test::get(failed.get_future()), HasSubstr("Table"));
  EXPECT_THAT(factory.unsynced(), ElementsAre("pods"));
}

TEST_F(SharedInformerFactoryTest, WatchesAResourceNamedByItsGvr) {
  server_.answer_lists(200, R"({"kind":"WidgetList","apiVersion":"example.com/v1",
    "metadata":{"resourceVersion":"10"},"items":[{"kind":"Widget","apiVersion":"example.com/v1",
    "metadata":{"namespace":"shop","name":"w","resourceVersion":"7"}}]})");
  auto& factory = make();
  EXPECT_EQ(factory.for_resource(api::GroupVersionResource{"", "v1", "pods"}).get(),
            identity(factory.informer<Pod>()))
      << "of what is built in the rest is known";
  const auto widgets = factory.for_resource(
      api::GroupVersionResource{"example.com", "v1", "widgets"}, {.ns = "shop"});
  widgets->start();
  ASSERT_TRUE(widgets->wait_for_sync());
  EXPECT_EQ(widgets->store().get("shop", "w").kind(), "Widget");
  EXPECT_THAT(server_.requests(),
              Contains(StartsWith("/apis/example.com/v1/namespaces/shop/widgets?")));
}

/// Untyped informers: of a resource that is known by name only, and of metadata.
struct Untyped {
  const char* name;
  api::GroupVersionResource resource;
  bool metadata_only;
  const char* type;    // of an object
  const char* path;    // of requests
  const char* accept;  // in their headers
};
class UntypedInformerTest : public SharedInformerFactoryTest,
                            public testing::WithParamInterface<Untyped> {
 protected:
  static std::string object(std::string_view name, int version) {
    return fmt::format(
        R"({{{},"metadata":{{"namespace":"shop","name":"{}","resourceVersion":"{}"}}}})",
        GetParam().type, name, version);
  }
  static std::string event(const char* type, const std::string& object) {
    return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
  }
  static std::string end_of_state(int version) {
    return event(
        "BOOKMARK",
        fmt::format(
            R"({{{},"metadata":{{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}})",
            GetParam().type, version));
  }
  std::shared_ptr<SharedIndexInformer> begin(SharedInformerFactory& factory) {
    const auto informer = factory.for_resource(
        GetParam().resource, {.ns = "shop", .metadata_only = GetParam().metadata_only});
    informer->add_handler(recorder_.handler()).release();
    factory.start();
    return informer;
  }

  test::Recorder recorder_;
};

TEST_P(UntypedInformerTest, UsesWatchListsAndNotifiesHandlers) {
  server_.answer_streams(event("ADDED", object("x", 7)) + end_of_state(10) +
                         event("MODIFIED", object("x", 11)) + event("ADDED", object("y", 12)) +
                         event("DELETED", object("x", 13)));
  auto& factory = make_streaming();
  const auto informer = begin(factory);
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_THAT(recorder_.wait(4),
              ElementsAre("+shop/x@7i", "~shop/x@7>11", "+shop/y@12", "-shop/x@13"));
  EXPECT_THAT(informer->store().list_keys(), ElementsAre("shop/y"));
  EXPECT_THAT(server_.requests(),
              ElementsAre(AllOf(StartsWith(GetParam().path), HasSubstr("watch=true"),
                                HasSubstr("sendInitialEvents=true"))));
  EXPECT_THAT(server_.accepted(), testing::Each(HasSubstr(GetParam().accept)));
}

TEST_P(UntypedInformerTest, ListsIfTheServerRejectsWatchLists) {
  server_.answer_lists(200, fmt::format(R"({{"kind":"List","apiVersion":"v1",
      "metadata":{{"resourceVersion":"10"}},"items":[{}]}})",
                                        object("x", 7)));
  auto& factory = make_streaming();
  const auto informer = begin(factory);
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_THAT(recorder_.wait(1), ElementsAre("+shop/x@7i"));
  EXPECT_TRUE(server_.wait_for("watch=", 2));
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_THAT(requests, testing::Each(StartsWith(GetParam().path)));
  EXPECT_THAT(requests[0], HasSubstr("sendInitialEvents=true"));
  EXPECT_THAT(requests[1], testing::Not(HasSubstr("watch=")));
  EXPECT_THAT(requests[2],
              AllOf(HasSubstr("resourceVersion=10"), testing::Not(HasSubstr("sendInitial"))));
  EXPECT_THAT(server_.accepted(), testing::Each(HasSubstr(GetParam().accept)));
}

INSTANTIATE_TEST_SUITE_P(
    , UntypedInformerTest,
    testing::Values(Untyped{"Dynamic",
                            {"example.com", "v1", "widgets"},
                            false,
                            R"("kind":"Widget","apiVersion":"example.com/v1")",
                            "/apis/example.com/v1/namespaces/shop/widgets?",
                            "application/json"},
                    Untyped{"Metadata",
                            {"", "v1", "pods"},
                            true,
                            R"("kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1")",
                            "/api/v1/namespaces/shop/pods?",
                            "as=PartialObjectMetadata"}),
    [](const auto& test) { return test.param.name; });

TEST_F(SharedInformerFactoryTest, TypesMayHaveResyncPeriodsOfTheirOwn) {
  auto& factory = make(
      {.resync_period = 10min, .custom_resync = {{Node::kResource, 1min}, {Pod::kResource, 0min}}});
  const auto period = [&](const auto& informer) {
    return informer.add_handler({}).resync_period();
  };
  EXPECT_EQ(period(factory.informer<k8s::apps::v1::Deployment>()), 10min);
  EXPECT_EQ(period(factory.informer<Node>()), 1min);
  EXPECT_EQ(period(factory.informer<Pod>()), 0min);
}

TEST_F(SharedInformerFactoryTest, AnInformerOfNamespacesRequestsEach) {
  auto& factory = make();
  const auto pods =
      factory.informer_for_namespaces<Pod>({"shop", "bank"}, {.label_selector = "a=b"});
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_TRUE(server_.wait_for("/api/v1/namespaces/shop/pods?watch"));
  EXPECT_TRUE(server_.wait_for("/api/v1/namespaces/bank/pods?watch"));
  EXPECT_THAT(server_.requests(), Each(HasSubstr("labelSelector=a%3Db")));
  pods.set_namespaces({"shop", "farm"});
  EXPECT_TRUE(server_.wait_for("/api/v1/namespaces/farm/pods"));
  EXPECT_EQ(pods.untyped_informer().name(), "pods in several namespaces, a=b");
  EXPECT_THROW(factory.for_namespaces(Node::kResource, {"shop"}), InvalidArgument);
  factory.shutdown();
  pods.set_namespaces({"sea"});
}

TEST_F(SharedInformerFactoryTest, AnInformerOfNamespacesCanBeStoppedAlone) {
  auto& factory = make();
  const auto shop = factory.informer_for_namespaces<Pod>({"shop"});
  const auto bank = factory.informer_for_namespaces<Pod>({"bank"});
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_TRUE(factory.stop_informer(shop));
  EXPECT_TRUE(shop.untyped_informer().stopped());
  EXPECT_FALSE(bank.untyped_informer().stopped());
  EXPECT_EQ(factory.informers().size(), 1u);
  EXPECT_FALSE(factory.stop_informer(shop)) << "it is not there any more";
  EXPECT_FALSE(factory.stop_informer(SharedInformer<Pod>())) << "there is none";
}

TEST_F(SharedInformerFactoryTest, AResourceKnownAtRunTimeHasAnInformerWithListers) {
  server_.answer_lists(200, test::kTwoPods);
  auto& factory = make();
  const auto pods = factory.informer(api::Resource(Pod::kResource));
  const auto handler = pods.add_handler({.on_add = [](const api::Object&) {}});
  EXPECT_EQ(identity(pods), identity(factory.informer<Pod>()));
  EXPECT_NE(identity(pods), identity(factory.informer(Pod::kResource, {.ns = "shop"})));
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_EQ(pods.lister().list().size(), 2u);
  pods.shutdown();
  EXPECT_TRUE(pods.untyped_informer().stopped());
}

}  // namespace
}  // namespace lookout::informer
