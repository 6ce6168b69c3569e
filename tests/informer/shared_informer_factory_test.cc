#include "lookout/informer/shared_informer_factory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/testing/fake_clock.h"
#include "tests/informer/recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/gate.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"
#include "tests/support/own_resources.h"

namespace lookout::informer {
namespace {

using namespace std::chrono_literals;
using k8s::core::v1::Node;
using k8s::core::v1::Pod;

/// An API server with a test's list responses, which keeps watches open.
class ApiServer {
 public:
  /// Initially there are no objects.
  void answer_lists(int status, std::string body) {
    const std::lock_guard lock(mutex_);
    answer_ = {status, std::move(body)};
  }

  /// The targets of the requests so far ("/api/v1/pods?limit=500...").
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// Waits until this many requests with the text in their target have been received.
  bool wait_for(std::string_view part, std::ptrdiff_t count = 1) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] {
      return std::count_if(requests_.begin(), requests_.end(), [&](const std::string& request) {
               return request.find(part) != std::string::npos;
             }) >= count;
    });
  }

  /// The events of the next watch-list requests; empty: they are rejected.
  void answer_streams(std::string body) {
    const std::lock_guard lock(mutex_);
    stream_ = std::move(body);
  }
  /// The Accept headers of the requests.
  std::vector<std::string> accepted() const {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }

  rest::Config config() const {
    rest::Config config;
    config.server = server_.url();
    return config;
  }

 private:
  void serve(lookout::test::HttpConnection& connection) {
    while (const auto request = connection.read_request()) {
      std::unique_lock lock(mutex_);
      requests_.push_back(request->target);
      accepted_.push_back(request->header("Accept"));
      changed_.notify_all();
      const lookout::test::HttpResponse answer = answer_;
      const std::string stream = stream_;
      lock.unlock();
      if (request->target.find("watch=") == std::string::npos) {
        connection.respond(answer);
      } else if (request->target.find("sendInitialEvents=") == std::string::npos) {
        connection.begin_chunks();
        return connection.wait_for_close();
      } else if (stream.empty()) {
        connection.respond({422, api::StatusError::invalid("meta.k8s.io", "ListOptions", "", {})
                                     .status()
                                     .to_object()
                                     .to_json()});
      } else {
        connection.begin_chunks();
        connection.chunk(stream);
        return connection.wait_for_close();
      }
    }
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> requests_;  // guarded by mutex_, as is what follows
  std::vector<std::string> accepted_;
  std::string stream_;
  lookout::test::HttpResponse answer_{// guarded by mutex_
                                      200,
                                      R"({"kind":"List","apiVersion":"v1",
                                 "metadata":{"resourceVersion":"10"},"items":[]})"};
  lookout::test::HttpServer server_{
      [this](lookout::test::HttpConnection& connection) { serve(connection); }};
};

constexpr const char* kTwoPods = R"({"kind":"PodList","apiVersion":"v1",
  "metadata":{"resourceVersion":"10"},"items":[
  {"metadata":{"namespace":"shop","name":"x","resourceVersion":"7","labels":{"app":"web"}}},
  {"metadata":{"namespace":"bank","name":"y","resourceVersion":"8"}}]})";

class SharedInformerFactoryTest : public testing::Test {
 protected:
  SharedInformerFactory& make(FactoryOptions options = {}) {
    options.use_watch_list = false;
    return make_streaming(std::move(options));
  }
  SharedInformerFactory& make_streaming(FactoryOptions options = {}) {
    options.clock = clock_;
    factory_ = std::make_unique<SharedInformerFactory>(client_, std::move(options));
    return *factory_;
  }
  template <class T>
  static SharedIndexInformer* identity(const SharedInformer<T>& informer) {
    return &informer.untyped_informer();
  }

  ApiServer server_;
  const std::shared_ptr<lookout::test::FakeClock> clock_ =
      std::make_shared<lookout::test::FakeClock>();
  rest::Client client_{server_.config(), std::make_shared<EventLoop>(2)};
  std::unique_ptr<SharedInformerFactory> factory_;
};

TEST_F(SharedInformerFactoryTest, WhoeverAsksForTheSameGetsTheSame) {
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

TEST_F(SharedInformerFactoryTest, ANamespaceMeansNothingToWhatLivesInNone) {
  auto& factory = make({.ns = "shop"});
  const auto nodes = factory.informer<Node>();
  EXPECT_EQ(identity(factory.informer<Node>({.ns = "bank"})), identity(nodes));
  EXPECT_EQ(identity(nodes)->name(), "nodes");
  EXPECT_EQ(identity(factory.informer<Pod>())->name(), "pods in shop");
}

TEST_F(SharedInformerFactoryTest, WhatAScopeDoesNotSayIsTheFactorys) {
  FactoryOptions options;
  options.ns = "shop";
  options.label_selector = "app=web";
  options.field_selector = "spec.nodeName=n1";
  options.projection = api::Projection::without_managed_fields();
  options.metadata_only = true;
  auto& factory = make(options);
  const auto pods = identity(factory.informer<Pod>());
  EXPECT_EQ(pods->name(), "pods in shop, metadata, app=web, spec.nodeName=n1");
  // Each says of one thing what the factory says already.
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

TEST_F(SharedInformerFactoryTest, ProjectionsThatAreEqualShareAnInformer) {
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

TEST_F(SharedInformerFactoryTest, NamesTellInformersApart) {
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

TEST_F(SharedInformerFactoryTest, AsksTheServerForItsScope) {
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

TEST_F(SharedInformerFactoryTest, StartsEachOnceAndLaterOnesLater) {
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

TEST_F(SharedInformerFactoryTest, KeepsWhatTheServerHas) {
  server_.answer_lists(200, kTwoPods);
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
  server_.answer_lists(200, kTwoPods);
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

TEST_F(SharedInformerFactoryTest, SaysWhatHasNotSynced) {
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
  std::stop_source stop;
  auto waiting =
      std::async(std::launch::async, [&] { return factory.wait_for_cache_sync(stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(lookout::test::get(waiting));
}

TEST_F(SharedInformerFactoryTest, AWaitSaysWhatHasSyncedAndWhatHasNot) {
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

TEST_F(SharedInformerFactoryTest, StreamsTheStateWhereTheServerCan) {
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

TEST_F(SharedInformerFactoryTest, ListsWhereTheServerRefusesToStream) {
  server_.answer_lists(200, kTwoPods);
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

TEST_F(SharedInformerFactoryTest, KeepsMetadataOnly) {
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

TEST_F(SharedInformerFactoryTest, KeepsMetadataOnlyOfWhatAServerSendsWhole) {
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

TEST_F(SharedInformerFactoryTest, ATableIsNoList) {
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

TEST_F(SharedInformerFactoryTest, FollowsWhatIsNamedByGroupVersionAndResource) {
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

/// Informers without types: of a resource that is known by its name only, and of metadata.
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

TEST_P(UntypedInformerTest, StreamsTheStateAndTellsHandlersOfEverything) {
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

TEST_P(UntypedInformerTest, ListsWhereTheServerRefusesToStream) {
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

TEST_F(SharedInformerFactoryTest, AShutdownEndsEverything) {
  auto& factory = make();
  const auto pods = factory.informer<Pod>();
  const auto never_started = factory.informer<Node>();
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  factory.shutdown();
  factory.shutdown();
  EXPECT_TRUE(identity(pods)->stopped());
  EXPECT_TRUE(identity(never_started)->stopped());
  EXPECT_THROW(factory.informer<Pod>(), InvalidArgument);
  EXPECT_THROW(pods.add_handler({}).release(), InvalidArgument);
  const auto requests = server_.requests().size();
  factory.start();
  EXPECT_EQ(server_.requests().size(), requests);
  EXPECT_TRUE(factory.wait_for_cache_sync());
}

TEST_F(SharedInformerFactoryTest, AShutdownEndsWaiting) {
  server_.answer_lists(500, "{}");
  auto& factory = make();
  factory.informer<Pod>();
  factory.start();
  auto waiting = std::async(std::launch::async, [&] { return factory.wait_for_cache_sync(); });
  EXPECT_TRUE(server_.wait_for("pods"));
  factory.shutdown();
  EXPECT_FALSE(lookout::test::get(waiting));
}

TEST_F(SharedInformerFactoryTest, LeavesNoThread) {
  const auto before = lookout::test::thread_count();
  {
    SharedInformerFactory factory(rest::Client(server_.config()),
                                  {.use_watch_list = false, .clock = clock_});
    const auto pods = factory.informer<Pod>();
    const auto registration = pods.add_handler({});
    factory.start();
    EXPECT_TRUE(registration.wait_for_sync());
    EXPECT_TRUE(server_.wait_for("watch="));
  }
  // But for those of the server, for the connections that are gone, all have ended.
  EXPECT_TRUE(
      lookout::test::eventually([&] { return lookout::test::thread_count() <= before + 2; }));
}

TEST_F(SharedInformerFactoryTest, ReferencesGoInAnyOrder) {
  server_.answer_lists(200, kTwoPods);
  for (const int first : {0, 1, 2}) {
    auto client = std::make_unique<rest::Client>(server_.config());
    auto factory = std::make_unique<SharedInformerFactory>(
        *client, FactoryOptions{.use_watch_list = false, .clock = clock_});
    auto pods = std::make_unique<SharedInformer<Pod>>(factory->informer<Pod>());
    auto registration = pods->add_handler({});
    factory->start();
    EXPECT_TRUE(registration.wait_for_sync());
    if (first == 0) client.reset();
    if (first == 1) pods.reset();
    factory.reset();
    client.reset();
    if (pods) {
      EXPECT_EQ(pods->lister().list().size(), 2u) << "what it knew, it still knows";
      EXPECT_TRUE(identity(*pods)->stopped());
    }
    registration.remove();
  }
}

TEST_F(SharedInformerFactoryTest, CanBeNeverStarted) {
  make().informer<Pod>().add_handler({}).release();
  factory_.reset();
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(SharedInformerFactoryTest, OnTheEventLoopNothingWaitsForItself) {
  auto& factory = make();
  factory.informer<Pod>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  std::promise<void> done;
  boost::asio::post(client_.loop().context(), [&] {
    EXPECT_THROW(factory.shutdown(), InvalidArgument);
    EXPECT_TRUE(factory.wait_for_cache_sync()) << "no need to wait";
    factory_.reset();
    done.set_value();
  });
  lookout::test::wait_for(done.get_future());
}

// ------------------------------------------------------------------------- informers that end

TEST_F(SharedInformerFactoryTest, AnInformerThatIsStoppedMayBeAskedForAnew) {
  server_.answer_lists(200, kTwoPods);
  auto& factory = make();
  const auto first = factory.informer<Pod>();
  const auto nodes = factory.informer<Node>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_TRUE(factory.stop_informer<Pod>());
  EXPECT_TRUE(first.untyped_informer().stopped());
  EXPECT_EQ(first.lister().list().size(), 2u) << "its store stays with those who hold it";
  EXPECT_FALSE(nodes.untyped_informer().stopped());
  EXPECT_EQ(factory.informers().size(), 1u);
  EXPECT_FALSE(factory.stop_informer<Pod>()) << "it is not there any more";

  const auto second = factory.informer<Pod>();
  EXPECT_NE(identity(second), identity(first));
  std::promise<void> synced;
  const auto handler = second.add_handler({.on_synced = [&] { synced.set_value(); }});
  factory.start();
  lookout::test::wait_for(synced.get_future());
  EXPECT_EQ(second.lister().list().size(), 2u);
}

TEST_F(SharedInformerFactoryTest, OneThatWasStoppedByItselfIsForgottenWhenAskedFor) {
  auto& factory = make();
  auto first = factory.informer<Pod>({.ns = "shop"});
  first.stop();
  const auto second = factory.informer<Pod>({.ns = "shop"});
  EXPECT_NE(identity(second), identity(first));
  EXPECT_EQ(identity(factory.informer<Pod>({.ns = "shop"})), identity(second));
}

TEST_F(SharedInformerFactoryTest, AShutdownEndsThoseThatWereStoppedBeforeToo) {
  server_.answer_lists(200, kTwoPods);
  auto& factory = make();
  auto first = factory.informer<Pod>();
  const auto captured = std::make_shared<int>(0);
  auto handler = first.add_handler({.on_add = [captured](const Pod&) {}});
  handler.release();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  first.stop();
  const auto second = factory.informer<Pod>();
  EXPECT_GT(captured.use_count(), 1);
  factory.shutdown();
  EXPECT_EQ(captured.use_count(), 1) << "nothing is left of the handlers of the first one";
}

TEST_F(SharedInformerFactoryTest, AStopWaitsForHandlers) {
  server_.answer_lists(200, kTwoPods);
  auto& factory = make();
  const auto pods = factory.informer<Pod>();
  std::promise<void> begun;
  std::promise<void> go_on;
  std::atomic<int> calls{0};
  auto told = go_on.get_future().share();
  pods.add_handler({.on_add =
                        [&, told](const Pod&) {
                          if (++calls == 1) begun.set_value();
                          lookout::test::wait_for(told);
                        }})
      .release();
  factory.start();
  lookout::test::wait_for(begun.get_future());
  auto stopped = lookout::test::start([&] { return factory.stop_informer<Pod>(); });
  EXPECT_EQ(stopped.wait_for(50ms), std::future_status::timeout);
  go_on.set_value();
  EXPECT_TRUE(lookout::test::get(stopped));
  EXPECT_EQ(calls, 1);
}

TEST_F(SharedInformerFactoryTest, AnInformerIsForgottenWithoutAWait) {
  auto& factory = make();
  const auto pods = factory.for_resource(Pod::kResource);
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  // On the event loop, where to wait would be to wait for itself.
  const auto forget = [&]() -> Awaitable<bool> { co_return factory.forget(pods); };
  EXPECT_TRUE(client_.loop().run(forget()));
  EXPECT_TRUE(pods->stopped());
  EXPECT_FALSE(factory.forget(pods));
  EXPECT_THAT(factory.informers(), IsEmpty());
  const auto again = factory.for_resource(Pod::kResource);
  EXPECT_NE(again, pods);
  factory.start();
  EXPECT_TRUE(again->wait_for_sync());
}

TEST_F(SharedInformerFactoryTest, AnInformerForNamespacesAsksForEach) {
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

TEST_F(SharedInformerFactoryTest, AnInformerForNamespacesIsStoppedByItself) {
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
  server_.answer_lists(200, kTwoPods);
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
