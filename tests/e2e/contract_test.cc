// client-go's cache contract against the embedded server and against a real kube-apiserver: the
// same scenarios for both, over a connection that can be cut.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/memory.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "lookout/tools/cache/lister_watcher.h"
#include "tests/e2e/kube_apiserver.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"
#include "tests/support/tcp_relay.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;
using informer::SharedIndexInformer;
using k8s::core::v1::ConfigMap;
using test::eventually;
using testing::Ge;

// ----------------------------------------------------------------------------------- the servers

class ApiServer {
 public:
  virtual ~ApiServer() = default;
  virtual rest::Config config() const = 0;
  virtual int port() const = 0;
  /// Crashes and restarts with its objects.
  virtual void kill() = 0;
  virtual void start() = 0;
  /// A restart without history: watches from earlier versions get 410 Gone.
  virtual void forget() = 0;
  /// True if it supports watch lists (WatchList).
  virtual bool streams() const = 0;
  virtual bool takes_custom_resources() const { return true; }
};

class EmbeddedServer : public ApiServer {
 public:
  EmbeddedServer() { start(); }

  rest::Config config() const override { return server_->client_config(); }
  int port() const override { return port_; }
  void kill() override { server_->stop(0ms); }
  void start() override {
    apiserver::ServerOptions options;
    options.storage = storage_;
    options.port = port_;
    options.bookmark_interval = 500ms;
    server_ = std::make_unique<apiserver::Server>(options);
    port_ = server_->port();
  }
  void forget() override {
    // Make enough changes to exceed the history.
    const rest::Client client{config()};
    const auto maps = client.resource<ConfigMap>("default");
    maps.create(api::Object::parse(
        R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"busy-"}})"));
    const std::string name(maps.list().items.front().name());
    for (std::size_t i = 0; i <= kHistory; ++i) {
      maps.patch(name, rest::PatchType::kMerge, fmt::format(R"({{"data":{{"k":"{}"}}}})", i));
    }
    maps.remove(name);
  }
  bool streams() const override { return true; }

 private:
  static constexpr std::size_t kHistory = 200;

  const std::shared_ptr<apiserver::storage::Backend> storage_ =
      std::make_shared<apiserver::storage::MemoryBackend>(
          apiserver::storage::MemoryOptions{.history = kHistory});
  std::unique_ptr<apiserver::Server> server_;
  std::uint16_t port_ = 0;
};

class RealServer : public ApiServer {
 public:
  explicit RealServer(const std::filesystem::path& program) : server_(program) {}

  rest::Config config() const override { return server_.config(); }
  int port() const override { return server_.port(); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void forget() override {
    server_.compact();
    server_.kill();
    server_.start();
  }
  bool streams() const override { return false; }  // not supported by 1.20
  // Built with Go 1.18 or later, 1.20 crashes when it writes a custom resource (modern-go/reflect2
  // before 1.0.2).
  bool takes_custom_resources() const override { return false; }

 private:
  test::KubeApiserver server_;
};

// --------------------------------------------------------------------------------- the handlers

/// Records a handler's notifications, and inconsistent ones.
class Story {
 public:
  template <class T = api::Object>
  informer::EventHandler<T> handler(std::string name = "story") {
    informer::EventHandler<T> out;
    out.name = std::move(name);
    out.on_add = [this](const T& object, informer::Origin origin) {
      const std::lock_guard lock(mutex_);
      if (!known_.emplace(object.name(), object.resource_version()).second)
        errors_.push_back(fmt::format("{} added twice", object.name()));
      events_.push_back(
          fmt::format("+{}{}", object.name(), origin == informer::Origin::kInitialList ? "i" : ""));
    };
    out.on_update = [this](const T& before, const T& after) {
      const std::lock_guard lock(mutex_);
      auto& version = known_[std::string(after.name())];
      if (version != before.resource_version())
        errors_.push_back(fmt::format("{} updated from another state", after.name()));
      const bool same = before.resource_version() == after.resource_version();
      version = after.resource_version();
      events_.push_back(fmt::format("{}{}", same ? "=" : "~", after.name()));
    };
    out.on_delete = [this](const T& last, informer::FinalState final_state) {
      const std::lock_guard lock(mutex_);
      if (known_.erase(std::string(last.name())) == 0)
        errors_.push_back(fmt::format("{} deleted, but not known", last.name()));
      events_.push_back(fmt::format("-{}{}", last.name(),
                                    final_state == informer::FinalState::kUnknown ? "?" : ""));
    };
    return out;
  }

  /// "+x" added ("i": initial), "~x" updated, "=x" resynced, "-x" deleted ("?": final state
  /// unknown).
  std::vector<std::string> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  std::vector<std::string> errors() const {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  /// The handler's current objects, by name.
  std::map<std::string, std::string> known() const {
    const std::lock_guard lock(mutex_);
    return known_;
  }
  bool has(const std::string& event) const {
    const auto all = events();
    return std::find(all.begin(), all.end(), event) != all.end();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
  std::vector<std::string> errors_;
  std::map<std::string, std::string> known_;  // resourceVersion by name
};

// ------------------------------------------------------------------------------------- the tests

enum class Kind { kEmbedded, kReal };

class ContractTest : public testing::TestWithParam<Kind> {
 protected:
  /// One server of each kind serves all tests; each test has its own namespace.
  static ApiServer* server_of(Kind kind) {
    auto& server = servers_[kind];
    if (server) return server.get();
    if (kind == Kind::kEmbedded) {
      server = std::make_unique<EmbeddedServer>();
    } else if (const auto program = test::KubeApiserver::find_program()) {
      server = std::make_unique<RealServer>(*program);
    }
    return server.get();
  }
  static void TearDownTestSuite() { servers_.clear(); }

  void SetUp() override {
    server_ = server_of(GetParam());
    if (server_ == nullptr) {
      GTEST_SKIP() << "*** no kube-apiserver or no etcd: run scripts/build-kube-apiserver.sh and "
                      "install etcd-server to run this test ***";
    }
    relay_.emplace(server_->port());
    rest::Config cuttable = server_->config();
    const std::string port = std::to_string(server_->port());
    cuttable.server.replace(cuttable.server.rfind(port), port.size(),
                            std::to_string(relay_->port()));
    client_.emplace(cuttable);
    direct_.emplace(server_->config());
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    name.resize(name.find('/'));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return static_cast<char>(std::tolower(c)); });
    ns_ = make_namespace(name);
  }
  std::string make_namespace(const std::string& name) const {
    direct_->resource<k8s::core::v1::Namespace>().create(api::Object::parse(fmt::format(
        R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})", name)));
    return name;
  }

  rest::TypedClient<ConfigMap> maps() const { return direct_->resource<ConfigMap>(ns_); }
  void create(const std::string& name, const std::string& colour = "red") const {
    maps().create(api::Object::parse(fmt::format(
        R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","labels":{{"colour":"{}"}}}},"data":{{"k":"v"}}}})",
        name, colour)));
  }
  void paint(const std::string& name, const std::string& colour) const {
    maps().patch(name, rest::PatchType::kMerge,
                 fmt::format(R"({{"metadata":{{"labels":{{"colour":"{}"}}}}}})", colour));
  }
  void remove(const std::string& name) const { maps().remove(name); }

  /// The server's objects, by name.
  std::map<std::string, std::string> listed() const {
    std::map<std::string, std::string> out;
    for (const auto& map : maps().list().items) out.emplace(map.name(), map.resource_version());
    return out;
  }
  /// Waits until the store and the stories equal the server's state.
  template <class... Stories>
  void expect_all_like_the_server(const SharedIndexInformer& informer, const Stories&... stories) {
    const auto expected = listed();
    EXPECT_TRUE(eventually([&] {
      std::map<std::string, std::string> stored;
      for (const auto& object : informer.store().snapshot())
        stored.emplace(object.name(), object.resource_version());
      return stored == expected;
    }));
    EXPECT_TRUE(eventually([&] { return ((stories.known() == expected) && ...); }));
    std::vector<std::string> errors;
    [[maybe_unused]] const auto collect = [&](const Story& story) {
      for (auto& error : story.errors()) errors.push_back(std::move(error));
    };
    (collect(stories), ...);
    EXPECT_THAT(errors, IsEmpty());
  }

  informer::FactoryOptions here() const {
    informer::FactoryOptions options;
    options.ns = ns_;
    options.backoff.max = 1s;  // keeps the test short
    return options;
  }
  /// A synced informer whose handler records a story.
  struct Told {
    Told(const rest::Client& client, const informer::FactoryOptions& options)
        : factory(client, options) {
      informer.add_handler(story.handler<ConfigMap>()).release();
      factory.start();
      EXPECT_TRUE(factory.wait_for_cache_sync());
    }

    Story story;  // in use until the factory ends
    informer::SharedInformerFactory factory;
    informer::SharedInformer<ConfigMap> informer = factory.informer<ConfigMap>();
  };

  /// A separate informer, over the connection that can be cut.
  std::unique_ptr<SharedIndexInformer> informer_with(cache::ReflectorOptions reflector) {
    reflector.name = ns_;
    reflector.backoff.max = 1s;
    if (!pool_) pool_ = std::make_shared<informer::HandlerPool>(client_->shared_loop());
    auto source = std::make_shared<cache::ListWatch>(client_->resource<ConfigMap>(ns_).dynamic());
    return std::make_unique<SharedIndexInformer>(
        std::move(source), informer::InformerOptions{.reflector = std::move(reflector)},
        client_->shared_loop(), pool_);
  }

  inline static std::map<Kind, std::unique_ptr<ApiServer>> servers_;
  ApiServer* server_ = nullptr;
  std::optional<test::TcpRelay> relay_;
  std::optional<rest::Client> client_;  // through the relay
  std::optional<rest::Client> direct_;
  std::shared_ptr<informer::HandlerPool> pool_;
  std::string ns_;
  int turn_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, ContractTest, testing::Values(Kind::kEmbedded, Kind::kReal),
                         [](const auto& test) {
                           return test.param == Kind::kEmbedded ? "Embedded" : "Real";
                         });

TEST_P(ContractTest, UsesWatchListsOrLists) {
  for (int i = 0; i < 30; ++i) create(fmt::format("map-{}", i));
  informer::SharedInformerFactory factory(*client_, here());
  const auto informer = factory.informer<ConfigMap>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  const auto& stats = informer.untyped_informer().stats();
  EXPECT_EQ(informer.lister().list().size(), 30u);
  EXPECT_EQ(stats.streamed_lists, server_->streams() ? 1u : 0u);
  EXPECT_EQ(stats.errors, 0u) << "that a server does not stream is no error";
  remove("map-3");
  paint("map-4", "blue");
  create("new");
  expect_all_like_the_server(informer.untyped_informer());
  if (server_->streams()) {
    EXPECT_EQ(stats.watches, 1u) << "the same watch goes on";
  }
}

TEST_P(ContractTest, ListOptionsCanBeTweaked) {
  create("in");
  create("out", "blue");
  auto options = here();
  options.tweak_list_options = [](rest::ListOptions& list) { list.label_selector = "colour=red"; };
  informer::SharedInformerFactory factory(*client_, std::move(options));
  const auto informer = factory.for_resource(api::GroupVersionResource{"", "v1", "configmaps"});
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  EXPECT_THAT(informer->store().list_keys(), ElementsAre(ns_ + "/in"));
  paint("out", "red");
  paint("in", "blue");
  EXPECT_TRUE(
      eventually([&] { return informer->store().list_keys() == std::vector{ns_ + "/out"}; }));
}

TEST_P(ContractTest, ListsInPages) {
  for (int i = 0; i < 25; ++i) create(fmt::format("map-{}", i));
  cache::ReflectorOptions options;
  options.use_watch_list = false;
  options.page_size = 7;
  const auto informer = informer_with(options);
  Story story;
  informer->add_handler(story.handler()).release();
  informer->start();
  ASSERT_TRUE(informer->wait_for_sync());
  create("new");
  expect_all_like_the_server(*informer, story);
  EXPECT_EQ(informer->stats().lists, 1u);
}

TEST_P(ContractTest, HandlersAreAddedAndRemoved) {
  create("a");
  create("b");
  informer::SharedInformerFactory factory(*client_, here());
  const auto informer = factory.informer<ConfigMap>();
  Story early;
  Story removed;
  Story late;
  const auto synced = informer.add_handler(early.handler<ConfigMap>("early"));
  auto registration = informer.add_handler(removed.handler<ConfigMap>("removed"));
  factory.start();
  ASSERT_TRUE(synced.wait_for_sync());
  EXPECT_THAT(early.events(), UnorderedElementsAre("+ai", "+bi"));
  paint("a", "blue");
  EXPECT_TRUE(eventually([&] { return removed.has("~a"); }));
  registration.remove();
  create("c");
  EXPECT_TRUE(eventually([&] { return early.has("+c"); }));
  EXPECT_FALSE(removed.has("+c"));
  const auto told_late = informer.add_handler(late.handler<ConfigMap>("late"));
  EXPECT_TRUE(told_late.wait_for_sync());
  EXPECT_THAT(late.events(), UnorderedElementsAre("+ai", "+bi", "+ci"));
  remove("b");
  paint("c", "blue");
  expect_all_like_the_server(informer.untyped_informer(), early, late);
  EXPECT_THAT(late.events(), AllOf(Contains("-b"), Contains("~c")));
}

TEST_P(ContractTest, FiltersFollowChanges) {
  create("in");
  create("out", "blue");
  informer::SharedInformerFactory factory(*client_, here());
  const auto informer = factory.informer<ConfigMap>();
  Story story;
  auto handler = story.handler<ConfigMap>();
  handler.filter = [](const ConfigMap& map) { return map.labels()["colour"].as_string() == "red"; };
  informer.add_handler(std::move(handler)).release();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  paint("in", "blue");   // leaves
  paint("in", "green");  // outside of every filter
  paint("out", "red");   // enters
  maps().patch("out", rest::PatchType::kMerge, R"({"data":{"k":"w"}})");
  remove("in");
  remove("out");
  EXPECT_TRUE(eventually([&] { return story.has("-out"); }));
  EXPECT_THAT(story.events(), ElementsAre("+ini", "-in", "+out", "~out", "-out"));
}

TEST_P(ContractTest, ResyncsMakeNoRequests) {
  create("a");
  auto options = here();
  options.resync_period = 1s;
  informer::SharedInformerFactory factory(*client_, options);
  const auto informer = factory.informer<ConfigMap>();
  Story story;
  Story never;
  informer.add_handler(story.handler<ConfigMap>()).release();
  informer.add_handler(never.handler<ConfigMap>(), {.resync_period = 0ms}).release();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  const auto lists = informer.untyped_informer().stats().lists.load();
  EXPECT_TRUE(eventually([&] {
    const auto events = story.events();
    return std::count(events.begin(), events.end(), "=a") >= 2;
  }));
  EXPECT_THAT(never.events(), ElementsAre("+ai"));
  EXPECT_EQ(informer.untyped_informer().stats().lists, lists);
}

TEST_P(ContractTest, ABrokenConnectionLosesNothing) {
  create("a");
  create("b");
  const Told told(*client_, here());
  const auto& stats = told.informer.untyped_informer().stats();
  // (A watch that breaks before any event is followed by a relist.)
  create("first");
  EXPECT_TRUE(eventually([&] { return told.story.has("+first"); }));
  const auto lists = stats.lists.load();
  for (int i = 0; i < 3; ++i) {
    relay_->cut();
    EXPECT_TRUE(eventually([&] { return !told.informer.untyped_informer().live_since(); }))
        << "it knows that it may be behind";
    paint("a", fmt::format("colour-{}", i));
    create(fmt::format("new-{}", i));
    relay_->mend();
    EXPECT_TRUE(eventually([&] { return told.story.has(fmt::format("+new-{}", i)); }));
  }
  remove("b");
  expect_all_like_the_server(told.informer.untyped_informer(), told.story);
  EXPECT_THAT(told.story.events(), Contains("-b"));
  EXPECT_EQ(stats.lists, lists) << "it watched on from where it was";
  EXPECT_TRUE(told.informer.live());
}

TEST_P(ContractTest, ARelistFindsMissedChanges) {
  for (const char* name : {"changes", "comes-again", "gone", "stays"}) create(name);
  const Told told(*client_, here());
  const auto& stats = told.informer.untyped_informer().stats();
  const auto lists = stats.lists.load();
  relay_->cut();
  EXPECT_TRUE(eventually([&] { return !told.informer.untyped_informer().live_since(); }));
  remove("gone");
  paint("changes", "blue");
  remove("comes-again");
  create("comes-again");
  create("new");
  server_->forget();
  relay_->mend();
  expect_all_like_the_server(told.informer.untyped_informer(), told.story);
  EXPECT_THAT(told.story.events(),
              AllOf(Contains("-gone?"), Contains("~changes"), Contains("~comes-again"),
                    Contains("+new"), Not(Contains("-comes-again"))));
  EXPECT_GT(stats.lists.load(), lists) << "410 Gone";
  EXPECT_GE(stats.errors.load(), 1u);
}

TEST_P(ContractTest, FollowsAServerAfterItsCrash) {
  create("a");
  create("b");
  const Told told(*client_, here());
  server_->kill();
  EXPECT_TRUE(eventually([&] { return !told.informer.untyped_informer().live_since(); }));
  EXPECT_EQ(told.informer.lister().list().size(), 2u) << "what it knew, it still knows";
  server_->start();
  create("c");
  remove("a");
  expect_all_like_the_server(told.informer.untyped_informer(), told.story);
  EXPECT_TRUE(
      eventually([&] { return told.informer.untyped_informer().live_since().has_value(); }));
}

TEST_P(ContractTest, ScopesEqualTheServersSelections) {
  const std::string other = make_namespace(ns_ + "-other");
  create("x");
  create("y", "blue");
  direct_->resource<ConfigMap>(other).create(api::Object::parse(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"colour":"red"}}})"));
  informer::FactoryOptions options = here();
  options.ns.clear();
  informer::SharedInformerFactory factory(*client_, options);
  const auto mine = factory.informer<ConfigMap>({.ns = ns_});
  const auto red = factory.informer<ConfigMap>({.ns = ns_, .label_selector = "colour=red"});
  const auto named = factory.informer<ConfigMap>({.field_selector = "metadata.name=x"});
  const auto namespaces = factory.informer<k8s::core::v1::Namespace>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  const auto keys = [](const auto& informer) {
    return informer.untyped_informer().store().list_keys();
  };
  EXPECT_THAT(keys(mine), UnorderedElementsAre(ns_ + "/x", ns_ + "/y"));
  EXPECT_THAT(keys(red), ElementsAre(ns_ + "/x"));
  EXPECT_THAT(keys(named), UnorderedElementsAre(ns_ + "/x", other + "/x"));
  EXPECT_THAT(keys(namespaces), AllOf(Contains(ns_), Contains(other)));
  EXPECT_EQ(namespaces.lister().get(ns_).name(), ns_);
  paint("y", "red");
  paint("x", "blue");
  EXPECT_TRUE(eventually([&] { return keys(red) == std::vector{ns_ + "/y"}; }));
}

TEST_P(ContractTest, KeepsMetadataOnlyOrProjectedFields) {
  create("x");
  informer::SharedInformerFactory factory(*client_, here());
  const auto metadata =
      factory.for_resource(ConfigMap::kResource, {.ns = ns_, .metadata_only = true});
  const auto some = factory.for_resource(
      ConfigMap::kResource, {.ns = ns_, .projection = api::Projection::keep({"metadata.labels"})});
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  for (const auto& informer : {metadata, some}) {
    const auto object = informer->store().get(ns_, "x");
    ASSERT_TRUE(object);
    EXPECT_EQ(object.labels()["colour"].as_string(), "red");
    EXPECT_FALSE(object["data"].exists());
  }
  EXPECT_EQ(metadata->store().get(ns_, "x").kind(), "PartialObjectMetadata");
  EXPECT_FALSE(metadata->store().get(ns_, "x").uid().empty());
  paint("x", "blue");
  create("y");
  for (const auto& informer : {metadata, some}) {
    EXPECT_TRUE(eventually([&] {
      return informer->store().size() == 2 &&
             lookout::test::held(informer->store().get(ns_, "x")).labels()["colour"].as_string() ==
                 "blue";
    }));
  }
}

TEST_P(ContractTest, FollowsCustomResources) {
  if (!server_->takes_custom_resources()) GTEST_SKIP() << "this server has no custom resources";
  const auto definitions =
      direct_->resource(api::Resource{"apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                                      "customresourcedefinitions", false});
  definitions.create(api::Object::parse(R"({
      "apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":"widgets.example.com"},
      "spec":{"group":"example.com","scope":"Namespaced",
        "names":{"plural":"widgets","singular":"widget","kind":"Widget"},
        "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
          "type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})"));
  const auto widgets =
      direct_->resource(api::Resource{"example.com", "v1", "Widget", "widgets", true}, ns_);
  const auto widget = [](const std::string& name, int size) {
    return api::Object::parse(fmt::format(
        R"({{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{}"}},"spec":{{"size":{}}}}})",
        name, size));
  };
  EXPECT_TRUE(eventually([&] {
    try {
      widgets.create(widget("first", 1));
      return true;
    } catch (const api::StatusError&) {
      return false;  // not served yet
    }
  }));
  informer::SharedInformerFactory factory(*client_, here());
  const auto informer =
      factory.for_resource(api::GroupVersionResource{"example.com", "v1", "widgets"});
  informer->add_indexers({{"size", [](const api::Object& object, cache::IndexValues& values) {
                             values.add(std::to_string(object["spec"]["size"].as_int()));
                           }}});
  Story story;
  informer->add_handler(story.handler()).release();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  widgets.create(widget("second", 2));
  widgets.patch("first", rest::PatchType::kMerge, R"({"spec":{"size":2}})");
  EXPECT_TRUE(eventually([&] { return informer->store().by_index("size", "2").size() == 2; }));
  EXPECT_THAT(informer->store().index_values("size"), ElementsAre("2"));
  widgets.remove("first");
  EXPECT_TRUE(eventually([&] { return story.has("-first"); }));
  EXPECT_THAT(story.events(), ElementsAre("+firsti", "+second", "~first", "-first"));
  EXPECT_THAT(story.errors(), IsEmpty());
}

TEST_P(ContractTest, IndexesFollowTheObjects) {
  create("a");
  create("b", "blue");
  informer::SharedInformerFactory factory(*client_, here());
  const auto informer = factory.informer<ConfigMap>();
  const auto colour = [](const ConfigMap& map) { return map.labels()["colour"].as_string(); };
  informer.add_index("before", colour);
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  informer.add_index("after", colour);
  paint("a", "blue");
  create("c", "green");
  for (const char* index : {"before", "after"}) {
    EXPECT_TRUE(eventually([&] {
      return informer.by_index(index, "blue").size() == 2 &&
             informer.by_index(index, "green").size() == 1 &&
             informer.by_index(index, "red").empty();
    })) << index;
  }
}

TEST_P(ContractTest, EndedWatchesAndBookmarksNeedNoRelist) {
  const auto elsewhere = direct_->resource<ConfigMap>(make_namespace(ns_ + "-busy"));
  elsewhere.create(
      api::Object::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"busy"}})"));
  create("a");
  const auto first = std::stoull(listed().at("a"));
  cache::ReflectorOptions options;
  options.min_watch_timeout = 3s;  // a real server sends a bookmark shortly before the end
  const auto informer = informer_with(options);
  Story story;
  informer->add_handler(story.handler()).release();
  informer->start();
  ASSERT_TRUE(informer->wait_for_sync());
  const auto& stats = informer->stats();
  const auto watches = stats.watches.load();
  const auto lists = stats.lists.load();
  EXPECT_TRUE(eventually([&] {
    // A server sends bookmarks only after changes of other objects.
    elsewhere.patch("busy", rest::PatchType::kMerge,
                    fmt::format(R"({{"data":{{"turn":"{}"}}}})", ++turn_));
    return stats.bookmarks >= 2 && stats.watches >= watches + 2;
  })) << stats.bookmarks
      << " bookmarks, " << stats.watches - watches << " more watches";
  EXPECT_GT(std::stoull(informer->last_sync_resource_version()), first);
  create("b");
  expect_all_like_the_server(*informer, story);
  EXPECT_EQ(stats.lists, lists);
  EXPECT_EQ(stats.errors, 0u);
  EXPECT_THAT(story.events(), ElementsAre("+ai", "+b"));
}

TEST_P(ContractTest, AWatchListEqualsAList) {
  if (!server_->streams()) GTEST_SKIP() << "this server streams nothing";
  for (int i = 0; i < 20; ++i) create(fmt::format("map-{}", i));
  cache::ReflectorOptions options;
  options.check_consistency = true;
  const auto informer = informer_with(options);
  informer->start();
  ASSERT_TRUE(informer->wait_for_sync());
  EXPECT_EQ(informer->store().size(), 20u);
  EXPECT_EQ(informer->stats().streamed_lists, 1u);
  EXPECT_EQ(informer->stats().inconsistencies, 0u);
}

TEST_P(ContractTest, ACoalescingHandlerReceivesTheLatestState) {
  create("a");
  create("b");
  informer::SharedInformerFactory factory(*client_, here());
  const auto informer = factory.informer<ConfigMap>();
  Story quick;
  Story slow;
  std::promise<void> go;
  const auto gone = go.get_future().share();
  auto handler = slow.handler<ConfigMap>();
  handler.on_add = [gone, add = handler.on_add](const ConfigMap& map, informer::Origin origin) {
    test::wait_for(gone);
    add(map, origin);
  };
  informer.add_handler(quick.handler<ConfigMap>()).release();
  const auto held_up = informer.add_handler(std::move(handler), {.coalesce = true});
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  for (int i = 0; i < 20; ++i) paint("a", fmt::format("colour-{}", i));
  remove("b");
  expect_all_like_the_server(informer.untyped_informer(), quick);
  EXPECT_LE(held_up.backlog(), 3u) << "no more than there are objects, and what it has in hand";
  go.set_value();
  expect_all_like_the_server(informer.untyped_informer(), quick, slow);
  EXPECT_THAT(quick.events().size(), Ge(23u));
  EXPECT_LE(slow.events().size(), 6u);
}

}  // namespace
}  // namespace lookout
